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
	"github.com/attache-mcp/attache/proxy/wire"
)

// A loan is memory that is overwritten as soon as nobody holds it.
type loan struct {
	bytes   []byte
	holders atomic.Int32
	over    func()
}

func (l *loan) Hold() { l.holders.Add(1) }

func (l *loan) Release() {
	if n := l.holders.Add(-1); n == 0 {
		copy(l.bytes, bytes.Repeat([]byte("#"), len(l.bytes)))
		l.over()
	} else if n < 0 {
		panic("released too often")
	}
}

// An echo is a server that keeps the lines that it takes, and answers with their params, in memory
// that is lent.
type echo struct {
	t    *testing.T
	to   wire.Sink
	mu   sync.Mutex // held while to is called
	lent *atomic.Int64
	gone chan struct{}
	all  sync.WaitGroup
}

func (e *echo) Stdin() io.WriteCloser { return e }
func (e *echo) Stdout() io.Reader     { return nil }
func (e *echo) Push(to wire.Sink)     { e.to = to }
func (e *echo) Stop()                 {}
func (e *echo) Wait() error           { <-e.gone; return nil }

func (e *echo) Write(b []byte) (int, error) {
	e.t.Errorf("a line was not handed over: %.100q", b)
	return len(b), nil
}

// Take implements wire.MessageTaker.
func (e *echo) Take(m *wire.Message) bool {
	line, lease := m.KeepLine()
	if large := len(line) > largeBody; large != (lease != nil) {
		e.t.Errorf("a line of %d bytes is lent: %t", len(line), lease != nil)
	}
	e.all.Go(func() {
		var m wire.Message
		m.Reset(wire.Client, line)
		m.LookEnvelope()
		if m.Kind() == wire.Request {
			e.answer(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","echo":%s}}`+"\n", m.ID(), m.Params().Raw))
		}
		if lease != nil {
			lease.Release()
		}
	})
	return true
}

func (e *echo) answer(line []byte) {
	e.lent.Add(1)
	l := &loan{bytes: line, over: func() { e.lent.Add(-1) }}
	l.Hold()
	defer l.Release()
	var m wire.Message
	m.Reset(wire.Server, line)
	m.LookEnvelope()
	m.Lease = l
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.to.Line(&m, false)
}

// Close implements io.Closer.
func (e *echo) Close() error {
	go func() {
		e.all.Wait()
		e.to.End()
		close(e.gone)
	}()
	return nil
}

// Memory that is lent for large messages is used again only when nobody reads it any more, and is
// given back.
func TestLentMemory(t *testing.T) {
	const clients, calls = 8, 30
	var lent atomic.Int64
	f := New(Options{Open: func(Opening) (Relay, error) {
		return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
			return &echo{t: t, lent: &lent, gone: make(chan struct{})}, nil
		}}}, nil
	}})
	server := httptest.NewServer(f)
	defer server.Close()
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			c := &lentClient{t: t, url: server.URL}
			c.call("initialize", `{"n":0}`)
			for i := range calls {
				size := []int{10, largeBody, 3 * largeBody}[(n+i)%3]
				c.call("tools/call", fmt.Sprintf(`{"n":"%d-%d","text":"%s"}`, n, i, strings.Repeat(string(rune('a'+(n*calls+i)%26)), size)))
			}
		})
	}
	all.Wait()
	f.Drain(t.Context())
	server.Close() // a client may have the whole answer before its handler gives the memory back
	if n := lent.Load(); n != 0 {
		t.Errorf("the memory of %d messages was not given back", n)
	}
}

// A lentClient is a client with a session.
type lentClient struct {
	t            *testing.T
	url, session string
}

// call makes a call and checks that its answer has the params.
func (c *lentClient) call(method, params string) {
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
