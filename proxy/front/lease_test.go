package front

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/internal/body"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A testLease leases memory that is overwritten when its last holder releases it.
type testLease struct {
	bytes    []byte
	holders  atomic.Int32
	released func()
}

func (l *testLease) Hold() { l.holders.Add(1) }

func (l *testLease) Release() {
	if n := l.holders.Add(-1); n == 0 {
		copy(l.bytes, bytes.Repeat([]byte("#"), len(l.bytes)))
		l.released()
	} else if n < 0 {
		panic("released too often")
	}
}

// An echoServer answers each request with its params. It keeps the lines it receives, and its
// answers are in leased memory.
type echoServer struct {
	t      *testing.T
	sink   wire.Sink
	mu     sync.Mutex // held while sink is called
	leases *atomic.Int64
	exited chan struct{}
	all    sync.WaitGroup
}

func (e *echoServer) Stdin() io.WriteCloser { return e }
func (e *echoServer) Stdout() io.Reader     { return nil }
func (e *echoServer) Push(sink wire.Sink)   { e.sink = sink }
func (e *echoServer) Stop()                 {}
func (e *echoServer) Wait() error           { <-e.exited; return nil }

func (e *echoServer) Write(b []byte) (int, error) {
	e.t.Errorf("a line was written and not passed to Take: %.100q", b)
	return len(b), nil
}

// Take implements wire.MessageTaker.
func (e *echoServer) Take(m *wire.Message) bool {
	line, lease := m.KeepLine()
	if large := len(line) > body.Large; large != (lease != nil) {
		e.t.Errorf("a line of %d bytes has a lease: %t", len(line), lease != nil)
	}
	e.all.Go(func() {
		m := wire.Parse(wire.Client, line)
		if m.Kind() == wire.Request {
			e.answer(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","echo":%s}}`+"\n", m.ID(), m.Params().Raw))
		}
		if lease != nil {
			lease.Release()
		}
	})
	return true
}

func (e *echoServer) answer(line []byte) {
	e.leases.Add(1)
	l := &testLease{bytes: line, released: func() { e.leases.Add(-1) }}
	l.Hold()
	defer l.Release()
	m := wire.Parse(wire.Server, line)
	m.Lease = l
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.sink.Line(m, false)
}

// Close implements io.Closer.
func (e *echoServer) Close() error {
	go func() {
		e.all.Wait()
		e.sink.End()
		close(e.exited)
	}()
	return nil
}

// Memory leased for large messages is reused only after its last reader releases it, and all of it
// is released.
func TestLeasedMemory(t *testing.T) {
	const clients, calls = 8, 30
	var leases atomic.Int64
	f := New(Options{Open: func(Opening) (Relay, error) {
		return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
			return &echoServer{t: t, leases: &leases, exited: make(chan struct{})}, nil
		}}}, nil
	}})
	server := httptest.NewServer(f)
	defer server.Close()
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			c := &sessionClient{t: t, url: server.URL}
			c.call("initialize", `{"n":0}`)
			for i := range calls {
				size := []int{10, body.Large, 3 * body.Large}[(n+i)%3]
				c.call("tools/call", fmt.Sprintf(`{"n":"%d-%d","text":"%s"}`, n, i, strings.Repeat(string(rune('a'+(n*calls+i)%26)), size)))
			}
		})
	}
	all.Wait()
	f.Drain(t.Context())
	server.Close() // a client may have the whole answer before its handler releases the memory
	if n := leases.Load(); n != 0 {
		t.Errorf("the memory of %d messages was not released", n)
	}
}

// A sessionClient sends its requests in one session.
type sessionClient struct {
	t            *testing.T
	url, session string
}

// call makes a call and checks that the answer echoes its params.
func (c *sessionClient) call(method, params string) {
	r, err := http.NewRequest("POST", c.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
	if err != nil {
		c.t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set(sessionHeader, c.session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if want := `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","echo":` + params + `}}`; string(b) != want || err != nil {
		c.t.Errorf("got %.100q, %v, want %.100q", b, err, want)
	}
	c.session = resp.Header.Get(sessionHeader)
}
