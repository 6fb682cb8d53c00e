package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A stuckWriter blocks in its first Write until free is closed, and counts.
type stuckWriter struct {
	free   chan struct{}
	stuck  chan struct{} // closed in the first Write
	writes atomic.Int64
}

func (w *stuckWriter) Write(b []byte) (int, error) {
	if w.writes.Add(1) == 1 {
		close(w.stuck)
	}
	<-w.free
	return len(b), nil
}

// A counter counts log records.
type counter struct{ atomic.Int64 }

func (c *counter) Write(b []byte) (int, error) { c.Add(1); return len(b), nil }

// When Run has returned nothing is written, watched, logged or given to a layer,
// whatever is stuck at that moment: in a write to the client, in one to the server,
// or in a read of what the server left behind.
func TestNothingAfterRun(t *testing.T) {
	t.Parallel()
	out := &stuckWriter{free: make(chan struct{}), stuck: make(chan struct{})}
	var watched, seen atomic.Int64
	logged := new(counter)
	in, serverOut := mempipe.New(0), mempipe.New(0)
	hook := layer("hook", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		seen.Add(1)
		if string(m.ID()) == "4" { // while the client does not read, the answer waits
			return call.Answer(ctx, wire.ErrorReply(m.ID(), wire.CodeInternalError, "no"))
		}
		call.OnReply(func(context.Context, *wire.Message) error { seen.Add(1); return nil })
		return next(ctx, m)
	})
	ctx, cancel := context.WithCancel(t.Context())
	up := &fixedUpstream{stdout: serverOut}
	done := make(chan error)
	go func() {
		done <- proxy.Run(ctx, proxy.Options{
			ClientIn: in, ClientOut: out,
			Start: func(context.Context) (proxy.Upstream, error) {
				// The server answers the first call, and it alone, as soon as it is started.
				io.WriteString(serverOut, `{"jsonrpc":"2.0","id":0,"method":"ping"}`+"\n")
				return up, nil
			},
			Layers: []middleware.Layer{hook},
			Watch:  func(proxy.Point, []byte) { watched.Add(1) },
			Log:    slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
	}()
	for i := range 5 {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"x"}`+"\n", i)
	}
	<-out.stuck
	cancel()
	<-done
	counts := func() string {
		return fmt.Sprintf("writes %d, watched %d, logged %d, seen %d", out.writes.Load(), watched.Load(), logged.Load(), seen.Load())
	}
	before := counts()
	io.WriteString(in, `{"jsonrpc":"2.0","id":9,"method":"x"}`+"\n{\n")
	io.WriteString(serverOut, "noise\n"+`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n")
	close(out.free)
	in.CloseWrite()
	serverOut.CloseWrite()
	awaitNoRelay(t)
	if after := counts(); after != before {
		t.Errorf("when Run returned: %s; later: %s", before, after)
	}
}

// awaitNoRelay returns when no goroutine runs in package proxy or its parts.
func awaitNoRelay(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for begin := time.Now(); ; runtime.Gosched() {
		all := stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(all, []byte("/proxy.(*")) && !bytes.Contains(all, []byte("/proxy/internal/")) {
			return
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("a goroutine of the relay is left:\n%s", all)
		}
	}
}

// partialWriter takes a number of bytes, and then no more.
type partialWriter struct{ takes int }

func (w *partialWriter) Write(b []byte) (int, error) {
	if len(b) <= w.takes {
		w.takes -= len(b)
		return len(b), nil
	}
	n := w.takes
	w.takes = 0
	return n, syscall.EPIPE
}

func (w *partialWriter) Close() error { return nil }

type partialUpstream struct {
	fixedUpstream
	in partialWriter
}

func (u *partialUpstream) Stdin() io.WriteCloser { return &u.in }

// Of lines that were written together and not wholly, those are answered that the
// server cannot have read: the one that was cut, and those behind it.
func TestPartialWrite(t *testing.T) {
	line := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`+"\n", id) }
	n := len(line(1))
	for takes, lost := range map[int]string{
		0: "1 2 3", 1: "1 2 3", n - 1: "1 2 3", n: "2 3", n + 1: "2 3", 2*n - 1: "2 3", 2 * n: "3", 3*n - 1: "3",
	} {
		synctest.Test(t, func(t *testing.T) {
			in, serverOut := mempipe.New(0), mempipe.New(0)
			var out bytes.Buffer
			up := &partialUpstream{fixedUpstream{stdout: serverOut}, partialWriter{takes}}
			done := make(chan error)
			go func() {
				done <- proxy.Run(t.Context(), proxy.Options{
					ClientIn: in, ClientOut: &out,
					Start: func(context.Context) (proxy.Upstream, error) { return up, nil },
				})
			}()
			io.WriteString(in, line(1)+line(2)+line(3))
			synctest.Wait()
			var got []string
			for l := range strings.Lines(out.String()) {
				var m wire.Message
				m.Reset(wire.Server, []byte(l))
				m.LookEnvelope()
				got = append(got, string(m.ID()))
			}
			if text := strings.Join(got, " "); text != lost {
				t.Errorf("the server took %d bytes: answered %s, want %s", takes, text, lost)
			}
			in.CloseWrite()
			serverOut.CloseWrite()
			<-done
		})
	}
}

// A session that waits for its peers costs little, its peers in memory included, so
// that one process can have thousands.
func TestIdleSessionIsSmall(t *testing.T) {
	const sessions = 200
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools keep goes with the second
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var all []*proxytest.Session
	for range sessions {
		s := proxytest.Start(t, hooked())
		s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		s.Server.Expect(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		s.Server.Send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		s.Client.Expect(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		all = append(all, s)
	}
	each := int64(heap()-before) / sessions
	t.Logf("%d bytes of heap a session", each)
	if each > 64<<10 {
		t.Errorf("an idle session has %d bytes of heap", each)
	}
	runtime.KeepAlive(all)
}

// ServerExit is watched when the server ends the session, and when nobody else has.
func TestServerExitIsWatched(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(*proxytest.Session)
		want int
	}{
		{"the server ends", func(s *proxytest.Session) { s.Exit(errors.New("exit status 3")) }, 1},
		{"the client leaves", func(s *proxytest.Session) { s.Client.Close(); s.Server.ExpectEOF(); s.Exit(nil) }, 0},
		{"the context ends", func(s *proxytest.Session) { s.Cancel() }, 0},
		{"the client's output breaks", func(s *proxytest.Session) {
			s.Client.CloseInput()
			s.Server.Send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var exits []string
				s := proxytest.Setup{Options: proxy.Options{Watch: func(p proxy.Point, line []byte) {
					if p == proxy.ServerExit {
						exits = append(exits, string(line))
					}
				}}}.Start(t)
				call := `{"jsonrpc":"2.0","id":1,"method":"x"}`
				s.Client.Send(call)
				s.Server.Expect(call)
				test.end(s)
				_ = s.Wait()
				if len(exits) != test.want {
					t.Errorf("ServerExit was watched with %q, want %d times", exits, test.want)
				}
			})
		})
	}
}
