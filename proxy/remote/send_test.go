package remote_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy/remote"
)

// A connection that ends after the request was written is an error, and the call is
// executed once at most.
func TestU11ConnectionEnds(t *testing.T) { testConnectionEnds(t, nil) }

// The same holds if the request has a header that makes net/http repeat it, whoever sets that
// header.
func TestU12IdempotencyKey(t *testing.T) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		t.Run(name, func(t *testing.T) {
			testConnectionEnds(t, func(o *remote.Options) { o.Header = http.Header{name: {"x"}} })
		})
		t.Run(name+" from the credentials", func(t *testing.T) {
			testConnectionEnds(t, func(o *remote.Options) { o.Credentials = idempotent(name) })
		})
	}
}

// idempotent is a credential that sets the header with this name.
type idempotent string

func (c idempotent) Set(_ context.Context, h http.Header) error { h.Set(string(c), "x"); return nil }

func (c idempotent) Refused(context.Context, remote.Refusal) (bool, error) { return false, nil }

// testConnectionEnds uses attache's own connections, and those of http.Transport, as for https.
func testConnectionEnds(t *testing.T, change func(*remote.Options)) {
	if change == nil {
		change = func(*remote.Options) {}
	}
	t.Run("own", func(t *testing.T) { testConnectionsEnd(t, change) })
	t.Run("of http", func(t *testing.T) {
		testConnectionsEnd(t, func(o *remote.Options) {
			o.Transport = o.Transport.(*remote.Transport).Transport
			change(o)
		})
	})
}

func testConnectionsEnd(t *testing.T, change func(*remote.Options)) {
	for _, c := range []struct {
		name  string
		write string // sent by the server before it closes the connection
		want  string
	}{
		{"before the answer", "", `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the server closed the connection before it answered; it may have executed the request"…`},
		{"in the head", "HTTP/1.1 200 O", `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the …`},
		{"after a head that is not HTTP", "HTTP/1.1 200 OK\r\n" + strings.Repeat("x", 1000) + "\r\n\r\n", `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the …`},
		{"in the body", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the connection to the server broke in the middle…`},
		{"in a stream", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n: x\n\n", `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the stream of the server's answer broke…`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int32
			cl := connect(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if calls.Add(1) == 1 {
					w.Header().Set("Content-Type", asJSON)
					io.WriteString(w, result)
					return
				}
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(err)
				}
				io.WriteString(conn, c.write)
				conn.Close()
			}, change)
			cl.send(call)
			cl.expect(result)
			cl.send(strings.Replace(call, `"id":1`, `"id":2`, 1)) // on the same connection
			if got := cl.receive(); !strings.HasPrefix(got, strings.TrimSuffix(c.want, "…")) || len(got) > 600 {
				t.Errorf("got %s\nwant %s in at most 600 bytes", got, c.want)
			}
			cl.close()
			if n := calls.Load(); n != 2 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// The client gets the server's Retry-After in the error, and the call is not sent again.
func TestU13RetryAfter(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		l := &legacy{}
		l.answer = func(w http.ResponseWriter, r request) bool {
			if r.method == "tools/call" {
				w.Header().Set("Retry-After", "1")
				http.Error(w, "slow down", status)
			}
			return r.method == "tools/call"
		}
		c := l.open(t, func(o *remote.Options) { o.Wait = patience })
		c.send(call)
		c.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP %d %s; try again after 1 s: slow down"…`, status, http.StatusText(status)))
		c.close()
		if n := len(l.seen("tools/call")); n != 1 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
}

// A redirect to another origin is not followed, whatever its status.
func TestU14Redirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other origin got %s with %v", r.Method, r.Header)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			c := connect(t, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL+"/mcp", status)
			}, func(o *remote.Options) { o.Header = http.Header{"X-Api-Key": {"secret"}} })
			c.send(call)
			c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server redirects to ` + other.URL + `, which is another origin and not followed…`)
			c.close()
		})
		for from, to := range map[string]string{"//127.0.0.1": "//localhost", "http:": "https:"} { // the same port
			t.Run(fmt.Sprint(status, " to ", to), func(t *testing.T) {
				var target string
				var requests atomic.Int32
				c := connect(t, func(w http.ResponseWriter, r *http.Request) {
					requests.Add(1)
					http.Redirect(w, r, target+"/elsewhere", status)
				}, func(o *remote.Options) {
					target = strings.Replace(strings.TrimSuffix(o.URL, "/mcp"), from, to, 1)
				})
				c.send(call)
				c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server redirects to ` + target + `, which is another origin and not followed…`)
				c.close()
				if n := requests.Load(); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		}
	}
	t.Run("GET and DELETE", func(t *testing.T) {
		l := &legacy{answer: func(w http.ResponseWriter, r request) bool {
			if r.verb == http.MethodPost {
				return false
			}
			w.Header().Set("Location", other.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}}
		c := l.open(t, func(o *remote.Options) { o.Header = http.Header{"X-Api-Key": {"secret"}} })
		c.send(call)
		c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
		c.close()
		if gets, deletes := len(l.seen(http.MethodGet)), len(l.seen(http.MethodDelete)); gets == 0 || deletes != 1 {
			t.Errorf("%d GET, %d DELETE", gets, deletes)
		}
	})
	for status, want := range map[int]string{
		307: result, 308: result,
		301: `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server redirects with HTTP 301 Moved Permanently to /mcp/: use that address"…`,
	} {
		t.Run(fmt.Sprint("same origin ", status), func(t *testing.T) {
			c := connect(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/mcp" {
					http.Redirect(w, r, "/mcp/", status)
					return
				}
				if body, _ := io.ReadAll(r.Body); string(body) != call {
					t.Errorf("got %q", body)
				}
				w.Header().Set("Content-Type", asJSON)
				io.WriteString(w, result)
			})
			c.send(call)
			c.expect(want)
			c.close()
		})
	}
	for _, origin := range []string{"http://127.0.0.1", "http://127.0.0.1:80"} { // the server is at port 80
		t.Run("same origin "+origin, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connectInMemory(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/mcp" {
						http.Redirect(w, r, origin+"/mcp/", http.StatusTemporaryRedirect)
						return
					}
					w.Header().Set("Content-Type", asJSON)
					io.WriteString(w, result)
				})
				c.send(call)
				c.expect(result)
				c.close()
			})
		})
	}
	t.Run("circle", func(t *testing.T) {
		c := connect(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
		})
		c.send(call)
		c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server redirects in a circle"…`)
		c.close()
	})
}

// token is a credential that can be renewed once when it is refused.
type token struct {
	mu      sync.Mutex
	value   string
	renewed string
	refused []remote.Refusal
	err     error
}

func (c *token) Set(_ context.Context, h http.Header) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.Set("Authorization", c.value)
	return nil
}

func (c *token) Refused(_ context.Context, r remote.Refusal) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = append(c.refused, r)
	if c.renewed == "" {
		return false, c.err
	}
	c.value, c.renewed = c.renewed, ""
	return true, nil
}

// Credentials are sent with every request. A refused request is sent once more, with renewed
// credentials.
func TestCredentials(t *testing.T) {
	serve := func(calls *atomic.Int32) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			if r.Header.Get("Authorization") != "new" {
				w.Header().Set("WWW-Authenticate", `Bearer scope="a"`)
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			w.Header().Set("Content-Type", asJSON)
			io.WriteString(w, result)
		}
	}
	for _, c := range []struct {
		name  string
		token *token
		want  string
		calls int32
	}{
		{"accepted", &token{value: "new"}, result, 1},
		{"renewed", &token{value: "old", renewed: "new"}, result, 2},
		{"renewed in vain", &token{value: "old", renewed: "older"}, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 401 Unauthorized: it wants a credential, or another one; see server.headers: no"…`, 2},
		{"not renewed", &token{value: "old"}, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 401 Unauthorized…`, 1},
		{"with a reason", &token{value: "old", err: errors.New("log in first")}, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"log in first"…`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int32
			cl := connect(t, serve(&calls), func(o *remote.Options) { o.Credentials = c.token })
			cl.send(call)
			cl.expect(c.want)
			cl.close()
			if n := calls.Load(); n != c.calls {
				t.Errorf("%d requests", n)
			}
			for _, r := range c.token.refused {
				if r.Status != 401 || r.Sent.Get("Authorization") != "old" || r.Said != "no" || strings.Join(r.Challenge, "") != `Bearer scope="a"` {
					t.Errorf("refused: %+v", r)
				}
			}
		})
	}
}

// The transport accepts both forms of an answer, and sends no Accept-Encoding and no Origin. Cookies are sent back in the session that
// got them.
func TestU28WhatIsSent(t *testing.T) {
	l := &legacy{}
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method == "initialize" {
			http.SetCookie(w, &http.Cookie{Name: "route", Value: "a"})
		}
		return false
	}
	c := l.open(t)
	c.send(call)
	c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
	c.close()
	for _, r := range l.requests {
		accept := map[string]string{http.MethodPost: "application/json, text/event-stream", http.MethodGet: "text/event-stream"}[r.verb]
		if got := r.Get("Accept"); got != accept && r.verb != http.MethodDelete {
			t.Errorf("%s %s: accept %q", r.verb, r.method, got)
		}
		for _, name := range []string{"Accept-Encoding", "Origin", "Authorization", "Referer"} {
			if r.Get(name) != "" {
				t.Errorf("%s %s: %s: %s", r.verb, r.method, name, r.Get(name))
			}
		}
		if want := map[bool]string{false: "route=a"}[r.method == "initialize"]; r.Get("Cookie") != want {
			t.Errorf("%s %s: cookie %q", r.verb, r.method, r.Get("Cookie"))
		}
	}
}

// connectBy connects to the server at address by a proxy, whose URL has a password.
func connectBy(t *testing.T, proxy *httptest.Server, address string) *client {
	t.Helper()
	by, err := url.Parse(proxy.URL)
	testkit.Check(t, err)
	by.User = url.UserPassword("ada", "secret")
	return connect(t, nil, func(o *remote.Options) {
		o.URL = address
		o.Transport = remote.NewTransport(remote.TransportOptions{Proxy: http.ProxyURL(by)})
	})
}

// Requests are sent to the proxy, and the server's name is not resolved locally.
func TestU29Proxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "mcp.example.invalid" {
			t.Errorf("the proxy got %s", r.URL)
		}
		w.Header().Set("Content-Type", asJSON)
		io.WriteString(w, result)
	}))
	defer proxy.Close()
	c := connectBy(t, proxy, "http://mcp.example.invalid/mcp")
	c.send(call)
	c.expect(result)
	c.close()
}

// If a proxy does not connect to the server, the error says that it was the proxy.
func TestProxyRefuses(t *testing.T) {
	for status, more := range map[int]string{
		http.StatusForbidden: "", http.StatusProxyAuthRequired: ": put its user and password into the URL of the proxy", http.StatusServiceUnavailable: "",
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodConnect || r.Host != "mcp.example.invalid:443" {
				t.Errorf("the proxy got %s %s", r.Method, r.Host)
			}
			http.Error(w, "no", status)
		}))
		defer proxy.Close()
		c := connectBy(t, proxy, "https://mcp.example.invalid/mcp")
		c.send(call)
		c.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server at mcp.example.invalid cannot be reached: the proxy at %s answered HTTP %d %s%s"…`,
			proxy.Listener.Addr(), status, http.StatusText(status), more))
		c.close()
	}
}

// Without TLS a proxy answers in place of the server. If it wants a password, the error says that it is the proxy's.
func TestProxyWantsPassword(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no", http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	c := connectBy(t, proxy, "http://mcp.example.invalid/mcp")
	c.send(call)
	c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"a proxy answered HTTP 407 Proxy Authentication Required: put its user and password into the URL of the proxy: no"…`)
	c.close()
}

// A server that cannot be reached fails each call, and is logged once, without the query.
func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	closed.Close()
	c := connect(t, nil, func(o *remote.Options) { o.URL = "http://" + closed.Addr().String() + "/mcp?key=secret" })
	for range 2 {
		c.send(call)
		c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server at ` + closed.Addr().String() + ` cannot be reached: …`)
	}
	c.close()
	log := c.log.String()
	if strings.Contains(log, "secret") || strings.Count(log, "level=WARN") != 1 {
		t.Errorf("the log has the secret, or not one warning:\n%s", log)
	}
}

// The error for a server that speaks HTTP at an https address says so.
func TestServerWithoutTLS(t *testing.T) {
	c := connect(t, nil, func(o *remote.Options) { o.URL = strings.Replace(o.URL, "http://", "https://", 1) })
	c.send(call)
	if got := c.receive(); !strings.HasSuffix(got, `: if the server does not use TLS, write http:// in its address","data":{"source":"attache"}}}`) {
		t.Error(got)
	}
	c.close()
}

// With FirstByte, a server must start its answer in time. An answer that has started is not
// limited.
func TestFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); string(body) == call {
				<-r.Context().Done()
				return
			}
			writeEvents(w, ": ok\n\n")
			time.Sleep(10 * time.Second)
			writeEvents(w, "data: "+strings.Replace(result, `"id":1`, `"id":2`, 1)+"\n\n")
		}, func(o *remote.Options) { o.FirstByte = time.Second })
		c.send(call)
		c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server did not begin to answer within 1s (server.timeouts.first_byte)…`)
		c.send(strings.Replace(call, `"id":1`, `"id":2`, 1))
		c.expect(strings.Replace(result, `"id":1`, `"id":2`, 1))
		c.close()
	})
}

// A credential that takes longer than FirstByte is not the server's delay.
func TestFirstByteOfCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer new" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			writeEvents(w, "data: "+result+"\n\n")
		}, func(o *remote.Options) { o.FirstByte, o.Credentials = time.Second, &slowRenewal{} })
		c.send(call)
		c.expect(result)
		c.close()
	})
}

// slowRenewal is a credential that is refused, and takes five seconds to be renewed.
type slowRenewal struct{ renewed atomic.Bool }

func (c *slowRenewal) Set(_ context.Context, h http.Header) error {
	if c.renewed.Load() {
		h.Set("Authorization", "Bearer new")
	}
	return nil
}

func (c *slowRenewal) Refused(context.Context, remote.Refusal) (bool, error) {
	time.Sleep(5 * time.Second)
	return !c.renewed.Swap(true), nil
}

// The pings of HTTP/2 detect a server that no longer responds within 30 s.
func TestU30Blackhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNetwork()
		var silent atomic.Bool
		server := &httptest.Server{Listener: network, EnableHTTP2: true, Config: &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				writeEvents(w, ": ok\n\n")
				silent.Store(true)
				<-r.Context().Done()
			}),
			ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		}}
		server.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		transport := remote.NewTransport(remote.TransportOptions{TLS: &tls.Config{RootCAs: roots}})
		var conns []net.Conn
		transport.DialContext = func(ctx context.Context, kind, address string) (net.Conn, error) {
			conn, err := network.dial(ctx, kind, address)
			conns = append(conns, conn)
			return &blackhole{Conn: conn, silent: &silent}, err
		}
		c := connectTo(t, server, transport)
		t.Cleanup(func() {
			for _, conn := range conns {
				conn.Close()
			}
		})
		c.send(call)
		time.Sleep(30 * time.Second)
		if len(c.lines) != 1 {
			t.Fatalf("the call has no answer after 30 s:\n%s", c.log)
		}
		c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the stream of the server's answer broke: …`)
		c.close()
	})
}

// A server that closes its HTTP/2 connection with GOAWAY during a call still answers that call. Later calls use a
// new connection, and each call is executed once.
func TestU29GoAway(t *testing.T) {
	var mu sync.Mutex
	calls := map[string][]string{} // the connections that brought a call, by its id
	answer := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id := anyID.FindString(string(body))
		mu.Lock()
		calls[id] = append(calls[id], r.Proto+" "+r.RemoteAddr)
		mu.Unlock()
		if id == anyID.FindString(call) {
			w.Header().Set("Connection", "close") // net/http sends GOAWAY
			writeEvents(w, ": ok\n\n")
			<-answer
		}
		writeEvents(w, "data: "+anyID.ReplaceAllString(result, id)+"\n\n")
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c := connectTo(t, server, remote.NewTransport(remote.TransportOptions{TLS: &tls.Config{RootCAs: roots}}))
	c.send(call)
	n, other := 1, false
	for end := time.Now().Add(patience); !other && time.Now().Before(end); { // until GOAWAY has arrived
		n++
		id := fmt.Sprintf(`"id":%d,`, n)
		c.send(anyID.ReplaceAllString(call, id))
		c.expect(anyID.ReplaceAllString(result, id))
		mu.Lock()
		first := calls[anyID.FindString(call)]
		other = len(first) == 1 && strings.HasPrefix(first[0], "HTTP/2") && calls[id][0] != first[0]
		mu.Unlock()
	}
	close(answer)
	c.expect(result)
	c.close()
	if !other || len(calls) != n {
		t.Errorf("%d calls: %v", n, calls)
	}
	for id, from := range calls {
		if len(from) != 1 {
			t.Errorf("%s came by %q", id, from)
		}
	}
}

// A blackhole is a connection that discards writes once silent is set.
type blackhole struct {
	net.Conn
	silent *atomic.Bool
}

func (b *blackhole) Write(p []byte) (int, error) {
	if b.silent.Load() {
		return len(p), nil
	}
	return b.Conn.Write(p)
}

// A headerSwitcher sets the credential in one header first, and in another one after a refusal.
type headerSwitcher struct{ refused atomic.Bool }

func (c *headerSwitcher) Set(_ context.Context, h http.Header) error {
	if c.refused.Load() {
		h.Set("Authorization", "new")
	} else {
		h.Set("X-Api-Key", "old")
	}
	return nil
}

func (c *headerSwitcher) Refused(context.Context, remote.Refusal) (bool, error) {
	return !c.refused.Swap(true), nil
}

// No header of a refused credential is sent with the next one.
func TestRefusedCredentialIsNotSentAgain(t *testing.T) {
	cl := connect(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") == "":
			http.Error(w, "no", http.StatusUnauthorized)
		case r.Header.Get("X-Api-Key") != "":
			http.Error(w, "two credentials", http.StatusBadRequest)
		default:
			w.Header().Set("Content-Type", asJSON)
			io.WriteString(w, result)
		}
	}, func(o *remote.Options) { o.Credentials, o.Header = &headerSwitcher{}, http.Header{"X-Own": {"1"}} })
	cl.send(call)
	cl.expect(result)
	cl.close()
}
