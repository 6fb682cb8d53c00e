package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A connListener accepts the connections sent on it.
type connListener chan net.Conn

func (l connListener) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l connListener) Close() error { close(l); return nil }

func (l connListener) Addr() net.Addr { return &net.TCPAddr{} }

// A countedConn counts one-byte reads.
type countedConn struct {
	net.Conn
	single *atomic.Int64
}

func (c countedConn) Read(b []byte) (int, error) {
	if len(b) == 1 {
		c.single.Add(1)
	}
	return c.Conn.Read(b)
}

// dialHandler serves a handler as a service does, on one connection. It returns the client's end of
// the connection, and the number of one-byte reads by the server.
func dialHandler(t *testing.T, h http.HandlerFunc) (client net.Conn, single *atomic.Int64) {
	s := &service{Options: Options{Log: slog.New(slog.DiscardHandler)}, quiet: quietTimer{quiet: func() {}}, counts: map[string]*counts{otherPaths: {}}}
	server := &http.Server{Handler: s.logRequests(h)}
	s.arrivals.watch(server)
	l := make(connListener, 1)
	go server.Serve(&listener{Listener: l})
	ours, theirs := net.Pipe()
	single = new(atomic.Int64)
	l <- countedConn{ours, single}
	t.Cleanup(func() {
		theirs.Close()
		server.Close()
	})
	return theirs, single
}

const shortRequest = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"

// The context of a request ends when its client disconnects, but not before watchAfter, because the
// connection is not read until then.
func TestWatch(t *testing.T) {
	for _, c := range []struct{ disconnect, detected time.Duration }{
		{0, watchAfter},
		{watchAfter / 2, watchAfter},
		{4 * watchAfter, 4 * watchAfter},
		{time.Hour, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			detected := make(chan time.Duration, 1)
			client, _ := dialHandler(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				began := time.Now()
				<-r.Context().Done()
				detected <- time.Since(began)
			})
			fmt.Fprint(client, shortRequest)
			synctest.Wait()
			time.Sleep(c.disconnect)
			client.Close()
			if took := <-detected; took != c.detected {
				t.Errorf("a client disconnected after %v, and its context ended after %v", c.disconnect, took)
			}
		})
	}
}

// Requests on one connection are answered in order and completely. The next request may arrive while attache handles
// one, or only after its answer. While attache handles a short request, it does not watch the connection.
func TestRequestsDuringWatch(t *testing.T) {
	for i, takes := range []time.Duration{0, 0, watchAfter / 2, watchAfter / 2, 5 * watchAfter, 5 * watchAfter} {
		oneByOne := i%2 == 1
		synctest.Test(t, func(t *testing.T) {
			n := 0
			client, single := dialHandler(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				time.Sleep(takes)
				n++
				fmt.Fprintf(w, "%d %s %v %v", n, body, err, r.Context().Err())
			})
			const all = 4
			answered := make(chan struct{}, all)
			go func() {
				for range all {
					fmt.Fprint(client, shortRequest)
					if oneByOne {
						<-answered
					}
				}
			}()
			in := bufio.NewReader(client)
			for i := range all {
				resp, err := http.ReadResponse(in, nil)
				check(t, err)
				if got, err := io.ReadAll(resp.Body); string(got) != fmt.Sprintf("%d {} <nil> <nil>", i+1) || err != nil {
					t.Errorf("answer %d, each after %v: %s (%v)", i+1, takes, got, err)
				}
				synctest.Wait()
				answered <- struct{}{}
			}
			if watched := single.Load() > 0; takes > 0 && watched != (takes > watchAfter) {
				t.Errorf("with requests that took %v, the server made %d one-byte reads", takes, single.Load())
			}
		})
	}
}

// Two requests arrive together. A third that arrives while the first is watched is read completely,
// although the HTTP server has already buffered the second and does not read in between.
func TestPipelinedDuringWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := dialHandler(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			time.Sleep(2 * watchAfter)
			fmt.Fprintf(w, "%s %s %v", r.Method, body, err)
		})
		go func() {
			fmt.Fprint(client, shortRequest+shortRequest)
			time.Sleep(watchAfter + watchAfter/2)
			fmt.Fprint(client, shortRequest)
		}()
		expectAnswers(t, client, "POST {} <nil>", 3)
	})
}

// The HTTP server's buffer may have room for only the last byte of a trailer. The watch must not
// take that read for a background read.
func TestTrailerIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := dialHandler(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %v", r.Method, body, err)
		})
		go func() {
			fmt.Fprint(client, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\n{}\r\n0\r\n")
			synctest.Wait()
			trailer := "X: " + strings.Repeat("a", 4096-len("X: \r\n\r\n")) + "\r\n\r\n"
			fmt.Fprint(client, trailer[:4095])
			synctest.Wait()
			fmt.Fprint(client, trailer[4095:])
		}()
		expectAnswers(t, client, "POST {} <nil>", 1)
	})
}

// expectAnswers reads n answers and checks their bodies.
func expectAnswers(t *testing.T, client net.Conn, want string, n int) {
	t.Helper()
	in := bufio.NewReader(client)
	for i := range n {
		resp, err := http.ReadResponse(in, nil)
		check(t, err)
		if got, err := io.ReadAll(resp.Body); string(got) != want || err != nil {
			t.Errorf("answer %d: %d %s (%v)", i+1, resp.StatusCode, got, err)
		}
	}
}

// Closing the server ends the context of a request that is not watched yet.
func TestCloseEndsHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		var closeConn context.CancelFunc
		client, _ := dialHandler(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			own := r.Context().Value(connectionKey{}).(*connection)
			closeConn = func() { own.Close() }
			<-r.Context().Done()
			close(ended)
		})
		fmt.Fprint(client, shortRequest)
		synctest.Wait()
		closeConn()
		<-ended
	})
}
