package front

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/internal/body"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A silentServer answers initialize alone, and drops what it reads.
type silentServer struct {
	sink   wire.Sink
	exited chan struct{}
}

func (s *silentServer) Stdin() io.WriteCloser       { return s }
func (s *silentServer) Stdout() io.Reader           { return nil }
func (s *silentServer) Push(sink wire.Sink)         { s.sink = sink }
func (s *silentServer) Stop()                       {}
func (s *silentServer) Wait() error                 { <-s.exited; return nil }
func (s *silentServer) Write(b []byte) (int, error) { return len(b), nil }

// Take implements wire.MessageTaker.
func (s *silentServer) Take(m *wire.Message) bool {
	if m.MethodIs("initialize") {
		var reply wire.Message
		reply.Reset(wire.Server, []byte(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`+"\n"))
		go s.sink.Line(&reply, false)
	}
	return true
}

// Close implements io.Closer.
func (s *silentServer) Close() error {
	go func() {
		s.sink.End()
		close(s.exited)
	}()
	return nil
}

// A call that runs for long does not hold the memory of its body: bodies are counted only until the relay has them.
func TestBodiesOfRunningCalls(t *testing.T) {
	for name, size := range map[string]int{"allocated": body.Large / 2, "lent": 8 * body.Large} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := New(Options{Open: func(Opening) (Relay, error) {
					return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
						return &silentServer{exited: make(chan struct{})}, nil
					}}}, nil
				}})
				var all sync.WaitGroup
				session := ""
				post := func(head, tail string) *httptest.ResponseRecorder {
					w := httptest.NewRecorder()
					r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(head), strings.NewReader(tail)))
					r.ContentLength = int64(len(head) + len(tail))
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Accept", "application/json, text/event-stream")
					if session != "" {
						r.Header.Set(sessionHeader, session)
					}
					all.Go(func() { f.ServeHTTP(w, r) })
					synctest.Wait()
					return w
				}
				session = post(`{"jsonrpc":"2.0","id":0,`, `"method":"initialize"}`).Header().Get(sessionHeader)
				tail := `"method":"tools/call","params":{"text":"` + strings.Repeat("x", size) + `"}}`
				const calls = 64
				before := testkit.Heap()
				for i := range calls {
					post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, i+1), tail)
				}
				if held := testkit.Heap() - before; held > calls*(size/4+16<<10) {
					t.Errorf("%d calls with %d bytes each hold %d bytes", calls, size, held)
				}
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				f.Drain(ctx)
				all.Wait()
			})
		})
	}
}
