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

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A blockedWriter counts its writes and blocks them until unblock is closed.
type blockedWriter struct {
	unblock chan struct{}
	blocked chan struct{} // closed in the first Write
	writes  atomic.Int64
}

func (w *blockedWriter) Write(b []byte) (int, error) {
	if w.writes.Add(1) == 1 {
		close(w.blocked)
	}
	<-w.unblock
	return len(b), nil
}

// A writeCounter counts log records.
type writeCounter struct{ atomic.Int64 }

func (c *writeCounter) Write(b []byte) (int, error) { c.Add(1); return len(b), nil }

// After Run has returned, nothing is written, watched, logged or passed to a layer, even if a write
// to a peer or a read from the server was blocked when it returned.
func TestNothingAfterRun(t *testing.T) {
	out := &blockedWriter{unblock: make(chan struct{}), blocked: make(chan struct{})}
	var watched, seen atomic.Int64
	logged := new(writeCounter)
	in, serverOut := mempipe.New(0), mempipe.New(0)
	hook := layer("hook", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		seen.Add(1)
		if string(m.ID()) == "4" { // the answer waits, as the client does not read
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
				// The only message of the server before Run returns.
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
	<-out.blocked
	cancel()
	<-done
	counts := func() string {
		return fmt.Sprintf("writes %d, watched %d, logged %d, seen %d", out.writes.Load(), watched.Load(), logged.Load(), seen.Load())
	}
	before := counts()
	io.WriteString(in, `{"jsonrpc":"2.0","id":9,"method":"x"}`+"\n{\n")
	io.WriteString(serverOut, "noise\n"+`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n")
	close(out.unblock)
	in.CloseWrite()
	serverOut.CloseWrite()
	awaitNoGoroutines(t)
	if after := counts(); after != before {
		t.Errorf("when Run returned: %s; later: %s", before, after)
	}
}

// awaitNoGoroutines returns when no goroutine runs in package proxy or its internal packages. A parallel test has
// some, so a test that calls this must not be parallel.
func awaitNoGoroutines(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for begin := time.Now(); ; runtime.Gosched() {
		all := stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(all, []byte("/proxy.(*")) && !bytes.Contains(all, []byte("/proxy/internal/")) {
			return
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("a goroutine of the relay still runs:\n%s", all)
		}
	}
}

// partialWriter accepts room bytes and then returns EPIPE.
type partialWriter struct{ room int }

func (w *partialWriter) Write(b []byte) (int, error) {
	if len(b) <= w.room {
		w.room -= len(b)
		return len(b), nil
	}
	n := w.room
	w.room = 0
	return n, syscall.EPIPE
}

func (w *partialWriter) Close() error { return nil }

type partialUpstream struct {
	fixedUpstream
	in partialWriter
}

func (u *partialUpstream) Stdin() io.WriteCloser { return &u.in }

// If a write of several lines fails in the middle, attache answers the calls that the server cannot
// have read: the incomplete line and the lines after it.
func TestPartialWrite(t *testing.T) {
	line := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`+"\n", id) }
	n := len(line(1))
	for room, lost := range map[int]string{
		0: "1 2 3", 1: "1 2 3", n - 1: "1 2 3", n: "2 3", n + 1: "2 3", 2*n - 1: "2 3", 2 * n: "3", 3*n - 1: "3",
	} {
		synctest.Test(t, func(t *testing.T) {
			in, serverOut := mempipe.New(0), mempipe.New(0)
			var out bytes.Buffer
			up := &partialUpstream{fixedUpstream{stdout: serverOut}, partialWriter{room}}
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
				m := wire.Parse(wire.Server, []byte(l))
				got = append(got, string(m.ID()))
			}
			if text := strings.Join(got, " "); text != lost {
				t.Errorf("the server read %d bytes: answered %s, want %s", room, text, lost)
			}
			in.CloseWrite()
			serverOut.CloseWrite()
			<-done
		})
	}
}

// An idle session uses little memory, including that of its peers in memory, so that one process
// can have thousands of sessions.
func TestIdleSessionIsSmall(t *testing.T) {
	const sessions = 200
	before := testkit.Heap()
	var all []*proxytest.Session
	for range sessions {
		s := proxytest.Start(t, hookLayer())
		s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		s.Server.Expect(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		s.Server.Send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		s.Client.Expect(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		all = append(all, s)
	}
	each := (testkit.Heap() - before) / sessions
	t.Logf("%d bytes of heap a session", each)
	if each > 64<<10 {
		t.Errorf("an idle session uses %d bytes of heap", each)
	}
	runtime.KeepAlive(all)
}

// A session that waits for the next message does not keep the memory of a large one.
func TestLargeMessagesAreNotKept(t *testing.T) { synctest.Test(t, testLargeMessagesAreNotKept) }

func testLargeMessagesAreNotKept(t *testing.T) {
	const size = 4 << 20
	s := proxytest.Setup{PipeSize: pipeSize}.Start(t)
	fromClient, toServer := s.Server.Raw()
	fromServer, toClient := s.Client.Raw()
	before := testkit.Heap()
	for _, way := range []struct {
		out io.Writer
		in  io.Reader
	}{{toClient, fromClient}, {toServer, fromServer}} {
		line := `{"jsonrpc":"2.0","method":"x","params":{"x":"` + strings.Repeat("x", size) + `"}}` + "\n"
		go io.WriteString(way.out, line)
		if n, err := io.CopyN(io.Discard, way.in, int64(len(line))); err != nil {
			t.Fatalf("%d bytes passed: %v", n, err)
		}
	}
	synctest.Wait() // until the relay has done with the last one
	if n := testkit.Heap() - before; n > size/2 {
		t.Errorf("the session keeps %d bytes", n)
	}
}

// A session does not keep the frames that have waited behind a suspended call.
func TestFramesThatHaveWaitedAreNotKept(t *testing.T) {
	const first, frames, size = `{"jsonrpc":"2.0","id":1,"method":"x"}`, 64, 32 << 10
	ready := make(chan struct{})
	hold := layer("hold", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.Kind() != wire.Request {
			return next(ctx, m)
		}
		call.Suspend(m, ready, time.Hour, next)
		return nil
	})
	s := proxytest.Setup{PipeSize: pipeSize, Options: proxy.Options{Layers: []middleware.Layer{hold}}}.Start(t)
	before := testkit.Heap()
	s.Client.Send(first)
	line := `{"jsonrpc":"2.0","method":"x","params":{"x":"` + strings.Repeat("x", size) + `"}}`
	for range frames {
		s.Client.Send(line)
	}
	close(ready)
	s.Server.Expect(first)
	for range frames {
		s.Server.Expect(line)
	}
	if n := testkit.Heap() - before; n > frames*size/2 {
		t.Errorf("the session keeps %d bytes", n)
	}
}

// ServerExit is reported to Watch, and logged, only if the server was the one that ended the session.
// Otherwise ServerStop is reported, because a call runs.
func TestServerExitEvent(t *testing.T) {
	const endsBySignal = "a signal ends the server before the session"
	for _, test := range []struct {
		name string
		end  func(*proxytest.Session)
		want int
	}{
		{"the server ends", func(s *proxytest.Session) { s.Exit(errors.New("exit status 3")) }, 1},
		{endsBySignal, func(s *proxytest.Session) { s.Exit(errors.New("signal SIGTERM")) }, 0},
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
				stops := 0
				log := new(writeCounter)
				restart := proxy.Restart{Wanted: func() bool { return test.name != endsBySignal }}
				s := proxytest.Setup{Options: proxy.Options{Log: slog.New(slog.NewTextHandler(log, nil)), Restart: &restart, Watch: func(p proxy.Point, line []byte) {
					switch p {
					case proxy.ServerExit:
						exits = append(exits, string(line))
					case proxy.ServerStop:
						stops++
					}
				}}}.Start(t)
				call := `{"jsonrpc":"2.0","id":1,"method":"x"}`
				s.Client.Send(call)
				s.Server.Expect(call)
				test.end(s)
				_ = s.Wait()
				if len(exits) != test.want || stops != 1-test.want {
					t.Errorf("ServerExit was reported with %q, want %d times, and ServerStop %d times", exits, test.want, stops)
				}
				if n := log.Load(); n != int64(test.want) {
					t.Errorf("%d lines were logged, want %d", n, test.want)
				}
			})
		})
	}
}
