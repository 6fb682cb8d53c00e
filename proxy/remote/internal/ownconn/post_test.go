package ownconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A poster posts messages to a server and counts the connections.
type poster struct {
	t         *testing.T
	transport *Transport
	server    *httptest.Server
	opened    atomic.Int64
	sent      int // how often the last request was written
}

func newPoster(t *testing.T, h http.HandlerFunc) *poster {
	if !checksIdle {
		t.Skip("http.Transport sends all requests here")
	}
	p := &poster{t: t, server: httptest.NewUnstartedServer(h)}
	p.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.opened.Add(1)
		}
	}
	p.server.Start()
	t.Cleanup(p.server.Close)
	p.transport = New(&http.Transport{DialContext: new(net.Dialer).DialContext, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Hour})
	t.Cleanup(p.transport.CloseIdleConnections)
	return p
}

// do posts a message and returns the response, whose body must be closed.
func (p *poster) do(ctx context.Context, message string) (*http.Response, error) {
	p.t.Helper()
	p.sent = 0
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { p.sent++ }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.server.URL, strings.NewReader(message))
	if err != nil {
		p.t.Fatal(err)
	}
	if !p.transport.takesPost(r) {
		p.t.Fatal("http.Transport sends the request")
	}
	return p.transport.RoundTrip(r)
}

// post posts a message and returns the status and the body of the answer.
func (p *poster) post(message string) (status int, body string) {
	p.t.Helper()
	resp, err := p.do(p.t.Context(), message)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	// Another read must not close the connection, which another request may have.
	if _, err := resp.Body.Read(make([]byte, 1)); err != io.EOF {
		p.t.Error(err)
	}
	return resp.StatusCode, string(b)
}

// Messages share a connection if the server does not close it and each answer was read to its end.
func TestPosts(t *testing.T) {
	long := strings.Repeat("x", 2*maxHead)
	for _, test := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		status int
		body   string
		kept   bool
	}{
		{"a short answer", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "all") }, 200, "all", true},
		{"a long answer", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			_, _ = io.WriteString(w, long)
		}, 200, long, true},
		{"in chunks", func(w http.ResponseWriter) {
			for range 3 {
				_, _ = io.WriteString(w, "part ")
				_ = http.NewResponseController(w).Flush()
			}
		}, 200, "part part part ", true},
		{"no body", func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }, 202, "", true},
		{"a refusal", func(w http.ResponseWriter) { http.Error(w, "no", http.StatusNotFound) }, 404, "no\n", true},
		{"early hints", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "all")
		}, 200, "all", true},
		{"another protocol, which nobody asked for", func(w http.ResponseWriter) { w.WriteHeader(http.StatusSwitchingProtocols) }, 101, "", false},
		{"the last on a connection", func(w http.ResponseWriter) {
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "all")
		}, 200, "all", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPoster(t, func(w http.ResponseWriter, r *http.Request) {
				if b, err := io.ReadAll(r.Body); string(b) != "a message" || err != nil {
					t.Errorf("the server got %q (%v)", b, err)
				}
				test.answer(w)
			})
			for range 3 {
				if status, body := p.post("a message"); status != test.status || body != test.body {
					t.Errorf("%d with %d bytes", status, len(body))
				}
			}
			want := int64(3)
			if test.kept {
				want = 1
			}
			if n := p.opened.Load(); n != want || p.sent != 1 {
				t.Errorf("%d connections; the last message was sent %d times", n, p.sent)
			}
			host := strings.TrimPrefix(p.server.URL, "http://")
			if kept := len(p.transport.idle.hosts[host]); kept != 0 != test.kept {
				t.Errorf("%d connections are kept", kept)
			}
			if p.transport.CloseIdleConnections(); p.transport.idle.take(host) != nil {
				t.Error("an idle connection was not closed")
			}
		})
	}
}

// A connection whose answer was not read to its end is not used again.
func TestUnreadAnswer(t *testing.T) {
	p := newPoster(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 10_000)) })
	for range 2 {
		resp, err := p.do(t.Context(), "a message")
		check(t, err)
		if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil || resp.Body.Close() != nil || resp.Body.Close() != nil {
			t.Errorf("the answer: %v", err)
		}
		if err := resp.Body.(*body).c.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the connection is open (%v)", err)
		}
	}
	if n := p.opened.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// A message is not sent on an idle connection that the server has closed or written to.
func TestStaleConnection(t *testing.T) {
	for name, spoil := range map[string]func(net.Conn){
		"closed":  func(c net.Conn) { c.Close() },
		"written": func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 408 Request Timeout\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			check(t, err)
			defer l.Close()
			const n = 2
			go func() {
				for range n {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Read(make([]byte, 4<<10))
					fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nall")
					defer c.Close()
					spoil(c)
				}
			}()
			p := newPoster(t, nil)
			p.server.URL = "http://" + l.Addr().String()
			for range n {
				if status, body := p.post("a message"); status != 200 || body != "all" || p.sent != 1 {
					t.Fatalf("%d %s, sent %d times", status, body, p.sent)
				}
				if kept := p.transport.idle.hosts[l.Addr().String()]; len(kept) == 1 {
					awaitRead(t, kept[0]) // until the data or the end has arrived
				}
			}
		})
	}
}

// awaitRead waits until a read of the connection would not block.
func awaitRead(t *testing.T, c *conn) {
	if err := c.raw.Read(func(fd uintptr) bool { c.lookAt(fd); return !c.open }); err != nil {
		t.Error(err)
	}
}

// A message that the server may have received is not sent again.
func TestNotSentTwice(t *testing.T) {
	var got atomic.Int64
	p := newPoster(t, func(w http.ResponseWriter, _ *http.Request) {
		if got.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "all")
	})
	p.post("first")
	resp, err := p.do(t.Context(), "second")
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the error is %v", err)
	}
	if n := got.Load(); n != 2 || p.sent != 1 {
		t.Errorf("the server got %d messages, the second was sent %d times", n, p.sent)
	}
}

// A brokenConn is a connection whose writes fail once broken is set.
type brokenConn struct {
	*net.TCPConn
	broken atomic.Bool
}

func (c *brokenConn) Write(b []byte) (int, error) {
	if c.broken.Load() {
		return 0, syscall.EPIPE
	}
	return c.TCPConn.Write(b)
}

// If nothing of a message could be written to an idle connection, it is sent on another one.
func TestFailedFirstWrite(t *testing.T) {
	p := newPoster(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	var last *brokenConn
	p.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			last = &brokenConn{TCPConn: c.(*net.TCPConn)}
			c = last
		}
		return c, err
	}
	p.post("first")
	last.broken.Store(true)
	if status, body := p.post("second"); status != 200 || body != "second" || p.opened.Load() != 2 {
		t.Errorf("%d %s on %d connections", status, body, p.opened.Load())
	}
}

// If nothing of a message could be written to a new connection, there is no other try, which would fail
// in the same way.
func TestFailedNewConnection(t *testing.T) {
	p := newPoster(t, nil)
	p.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		check(t, err)
		broken := &brokenConn{TCPConn: c.(*net.TCPConn)}
		broken.broken.Store(true)
		return broken, nil
	}
	if _, err := p.do(t.Context(), "a message"); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
}

// The connection of a GET whose answer has ended is not used for messages.
func TestPostAfterGet(t *testing.T) {
	p := newPoster(t, func(http.ResponseWriter, *http.Request) {})
	p.transport.streams.Store(true)
	resp, err := get(t, t.Context(), p.transport, p.server.URL)
	check(t, err)
	_, err = io.ReadAll(resp.Body)
	check(t, err)
	if status, _ := p.post("a message"); status != 200 {
		t.Errorf("got status %d", status)
	}
}

// Cancelling its context ends a request, before the answer and during its body.
func TestPostCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	atServer := cancel
	p := newPoster(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); string(b) == "begin" {
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
		} else {
			atServer()
		}
		<-r.Context().Done()
	})
	if resp, err := p.do(ctx, "wait"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", resp, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	resp, err := p.do(ctx, "begin")
	check(t, err)
	if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a read after the cancellation: %v", err)
	}
	resp.Body.Close()
	if p.transport.idle.pop(strings.TrimPrefix(p.server.URL, "http://")) != nil {
		t.Error("the connection was kept")
	}
}

// Requests that http.Transport must check, or handles in another way, are sent by it.
func TestTakesPost(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(r *http.Request)
		want   bool
	}{
		{"a message", func(*http.Request) {}, checksIdle},
		{"with headers", func(r *http.Request) {
			r.Header = http.Header{"Mcp-Session-Id": {"1"}, "X-B3-Traceid": {"a b"}, "X-Text": {"caf\xc3\xa9"}}
		}, checksIdle},
		{"a long message", func(r *http.Request) { r.ContentLength = maxPosted + 1 }, false},
		{"unknown length", func(r *http.Request) { r.ContentLength = -1 }, false},
		{"no body", func(r *http.Request) { r.ContentLength = 0 }, false},
		{"a body that cannot be read again", func(r *http.Request) { r.GetBody = nil }, false},
		{"a GET", func(r *http.Request) { r.Method = http.MethodGet }, false},
		{"TLS", func(r *http.Request) { r.URL.Scheme = "https" }, false},
		{"a newline in a header", func(r *http.Request) { r.Header = http.Header{"X-Text": {"a\r\nb: c"}} }, false},
		{"an invalid header name", func(r *http.Request) { r.Header = http.Header{"X Text": {"a"}} }, false},
		{"another invalid header name", func(r *http.Request) { r.Header = http.Header{"X{": {"a"}} }, false},
		{"DEL in a header", func(r *http.Request) { r.Header = http.Header{"X-Text": {"a\x7f"}} }, false},
		{"the longest message", func(r *http.Request) { r.ContentLength = maxPosted }, checksIdle},
		{"Expect: 100-continue", func(r *http.Request) { r.Header = http.Header{"Expect": {"100-continue"}} }, false},
		{"Connection: close", func(r *http.Request) { r.Header = http.Header{"Connection": {"close"}} }, false},
	} {
		r, err := http.NewRequest(http.MethodPost, "http://host/mcp", strings.NewReader("{}"))
		check(t, err)
		test.change(r)
		if got := newTransport(nil).takesPost(r); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// An idleRaw is the syscall.RawConn of a connection without data to read.
type idleRaw struct{ syscall.RawConn }

func (idleRaw) Read(f func(uintptr) bool) error { f(0); return nil }

// Idle connections are kept for a limited time, and only up to a number per host.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := idlePool{limit: 2, time: 4 * time.Second}
		var closed atomic.Int64
		put := func() *conn {
			ours, theirs := net.Pipe()
			c := &conn{Conn: ours, host: "host", raw: idleRaw{}, open: true, look: func(uintptr) bool { return true }}
			go func() { _, _ = theirs.Read(make([]byte, 1)); closed.Add(1) }()
			pool.put(c)
			return c
		}
		check := func(when string, want int64) {
			t.Helper()
			if synctest.Wait(); closed.Load() != want {
				t.Errorf("%s: %d connections are closed, want %d", when, closed.Load(), want)
			}
		}
		put()
		time.Sleep(time.Second)
		second := put()
		check("after the second", 0)
		put()
		check("after the third", 1)
		if pool.take("host") != second || pool.take("elsewhere") != nil {
			t.Error("take did not return the connection that was used last")
		}
		pool.put(second)
		time.Sleep(3 * time.Second)
		check("after 4 s", 2)
		time.Sleep(time.Second)
		check("after 5 s", 3)
		put()
		pool.closeAll()
		check("at the end", 4)
		if pool.take("host") != nil {
			t.Error("there is another connection")
		}
		time.Sleep(time.Minute) // let the timer end
	})
}

// Invalid headers are refused with the errors of http.Transport.
func TestPostHeaderNames(t *testing.T) {
	p := newPoster(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	for _, name := range []string{"X\rText", "X\x10Text", "X Text", ""} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.server.URL, strings.NewReader("{}"))
		check(t, err)
		r.Header = http.Header{name: {"secret"}}
		if _, err := p.transport.RoundTrip(r); err == nil || !strings.Contains(err.Error(), "invalid header field name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The body of a request that cannot be sent is closed, and a read of a closed answer fails.
func TestPostCloses(t *testing.T) {
	p := newPoster(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 10_000)) })
	resp, err := p.do(t.Context(), "a message")
	check(t, err)
	resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != http.ErrBodyReadAfterClose {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	p.transport.CloseIdleConnections()
	p.transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.server.URL, strings.NewReader("{}"))
	check(t, err)
	closed := false
	r.Body = closer{r.Body, &closed}
	if _, err := p.transport.RoundTrip(r); err == nil || !closed {
		t.Errorf("error %v, closed %t", err, closed)
	}
}

type closer struct {
	io.Reader
	closed *bool
}

func (c closer) Close() error { *c.closed = true; return nil }
