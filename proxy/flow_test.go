package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

const pipeSize = 64 << 10

// answerAll answers every request from the client except ping.
func answerAll() middleware.Layer {
	return layer("answer all", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.Kind() == wire.Request && !m.MethodIs("ping") {
			return call.Answer(ctx, wire.ResultReply(m.ID(), []byte(`{}`)))
		}
		return next(ctx, m)
	})
}

// flood writes a line again and again until a write fails. written returns the number of bytes.
func flood(out io.Writer, line string) (written func() int, done <-chan struct{}) {
	var mu sync.Mutex
	n := 0
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			if _, err := io.WriteString(out, line+"\n"); err != nil {
				return
			}
			mu.Lock()
			n += len(line) + 1
			mu.Unlock()
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}, over
}

// A peer that does not read slows the other one down. Its own messages still pass, and memory is bounded.
func TestPeerStopsReading(t *testing.T) {
	for _, name := range []string{"client", "server"} {
		t.Run(name, func(t *testing.T) {
			s := proxytest.Setup{PipeSize: pipeSize}.Start(t)
			const first = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
			s.Client.Send(first)
			s.Server.Expect(first)
			deaf, other := s.Client, s.Server
			if name == "server" {
				deaf, other = other, deaf
			}
			_, out := other.Raw()
			written, done := flood(out, `{"jsonrpc":"2.0","method":"notifications/x","params":{"data":"`+strings.Repeat("x", 1000)+`"}}`)
			deaf.AwaitFull()
			for i := range 1000 {
				line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, i)
				deaf.Send(line)
				other.Expect(line)
			}
			if n := written(); n > 8*pipeSize {
				t.Errorf("the relay read %d bytes while the %s did not read", n, name)
			}
			other.Close()
			<-done
		})
	}
}

// The answers of attache itself do not block a client that does not read them, as long as they
// are few.
func TestOwnAnswersDoNotBlock(t *testing.T) {
	s := proxytest.Setup{PipeSize: pipeSize, Options: proxy.Options{Layers: []middleware.Layer{answerAll()}}}.Start(t)
	const calls = 10_000 // their answers are far more than a pipe holds
	for i := range calls {
		s.Client.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, i))
	}
	const ping = `{"jsonrpc":"2.0","id":"p","method":"ping"}`
	s.Client.Send(ping)
	s.Server.Expect(ping)
	for i := range calls {
		s.Client.Expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i))
	}
}

// attache stops reading from a client that causes many answers and reads none of them.
func TestOwnAnswersAreBounded(t *testing.T) {
	for name, line := range map[string]string{
		"answers":  `{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 500) + `","method":"x"}`,
		"refusals": `{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 500) + `","id":2,"method":"x"}`,
		"batches":  `[{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 500) + `","method":"x"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			o := proxy.Options{Layers: []middleware.Layer{answerAll(), enforceLayer}, Hold: pipeSize}
			s := proxytest.Setup{PipeSize: pipeSize, Options: o}.Start(t)
			_, out := s.Client.Raw()
			written, done := flood(out, line)
			s.Client.AwaitFull()
			awaitStuck(t, written)
			if n := written(); n > 16*pipeSize {
				t.Errorf("the relay read %d bytes from a client that reads no answers", n)
			}
			s.Client.Close()
			<-done
		})
	}
}

// awaitStuck returns when the number of written bytes no longer grows.
func awaitStuck(t *testing.T, written func() int) {
	t.Helper()
	last := -1
	for same := 0; same < 20; {
		time.Sleep(5 * time.Millisecond) // polls, because no event reports that the relay waits
		if n := written(); n != last {
			last, same = n, 0
			continue
		}
		same++
	}
}

// Ids that are too long to be kept inline count against the limit for calls in flight.
func TestLongIDsAreBounded(t *testing.T) {
	s := proxytest.Setup{PipeSize: pipeSize, Options: proxy.Options{Hold: pipeSize}}.Start(t)
	in, _ := s.Server.Raw()
	go io.Copy(io.Discard, in)
	_, out := s.Client.Raw()
	written, done := flood(out, `{"jsonrpc":"2.0","id":"`+strings.Repeat("i", 1000)+`","method":"x"}`)
	awaitStuck(t, written)
	if n := written(); n > 2<<20 {
		t.Errorf("%d bytes of calls with long ids are in flight", n)
	}
	s.Client.Close()
	<-done
}

// Calls that wait because of in_flight are bounded in number, too: a short one takes much more memory
// than its line.
func TestWaitingCallsAreBounded(t *testing.T) {
	s := proxytest.Setup{PipeSize: pipeSize, Options: proxy.Options{InFlight: 1}}.Start(t)
	in, _ := s.Server.Raw()
	go io.Copy(io.Discard, in)
	_, out := s.Client.Raw()
	const line = `{"jsonrpc":"2.0","id":1,"method":"x"}`
	written, done := flood(out, line)
	awaitStuck(t, written)
	if n := written() / len(line); n > 10_000 {
		t.Errorf("the relay read %d calls", n)
	}
	s.Client.Close()
	<-done
}

// Ids that are too long to be kept inline stop counting when their calls are answered, also if
// they contain escapes.
func TestLongIDsGiveRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := proxytest.Setup{Options: proxy.Options{Hold: pipeSize}}.Start(t)
		for i := range 1200 { // 1 KiB each; at most 1 MiB may be in flight
			id := fmt.Sprintf(`"\u0069%d%s"`, i, strings.Repeat("i", 1000))
			call, reply := `{"jsonrpc":"2.0","id":`+id+`,"method":"x"}`, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`
			s.Client.Send(call)
			s.Server.Expect(call)
			s.Server.Send(reply)
			s.Client.Expect(reply)
		}
	})
}

// Lines over the hold limit pass without being held, in both directions.
func TestLongLinesAreNotHeld(t *testing.T) {
	const size = 64 << 20
	s := proxytest.Setup{PipeSize: pipeSize, Options: proxy.Options{Hold: 1 << 20}}.Start(t)
	head, tail := `{"jsonrpc":"2.0","params":"`, `","method":"x","id":1}`+"\n"
	before := totalAlloc()
	_, out := s.Client.Raw()
	in, _ := s.Server.Raw()
	passLong(t, out, in, head, tail, size)
	_, out = s.Server.Raw()
	in, _ = s.Client.Raw()
	passLong(t, out, in, `{"result":"`, `","id":1,"jsonrpc":"2.0"}`+"\n", size)
	if grown := totalAlloc() - before; grown > 8<<20 {
		t.Errorf("two lines of %d MiB made the process allocate %d MiB", size>>20, grown>>20)
	}
	// The relay recognized the call and its reply, so nothing is in flight.
	s.Exit(errors.New("exit status 1"))
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	if n := s.Client.Pending(); n != 0 {
		t.Errorf("%d more bytes reached the client: %q", n, s.Client.Next())
	}
}

func totalAlloc() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func longChunk() []byte { return bytes.Repeat([]byte("0123456789abcdef"), 4096) }

// writeLong writes a line with size bytes between head and tail.
func writeLong(out io.Writer, head, tail string, size int) {
	chunk := longChunk()
	io.WriteString(out, head)
	for n := 0; n < size; n += len(chunk) {
		out.Write(chunk)
	}
	io.WriteString(out, tail)
}

// passLong sends a line through the relay and compares each byte.
func passLong(t *testing.T, out io.Writer, in io.Reader, head, tail string, size int) {
	t.Helper()
	go writeLong(out, head, tail, size)
	chunk := longChunk()
	want := func(w []byte) {
		got := make([]byte, len(w))
		if _, err := io.ReadFull(in, got); err != nil || !bytes.Equal(got, w) {
			t.Fatalf("received %q, want %q (%v)", got[:min(100, len(got))], w[:min(100, len(w))], err)
		}
	}
	want([]byte(head))
	got := make([]byte, len(chunk))
	for n := 0; n < size; n += len(chunk) {
		if _, err := io.ReadFull(in, got); err != nil || !bytes.Equal(got, chunk) {
			t.Fatalf("other bytes after offset %d (%v)", n, err)
		}
	}
	want([]byte(tail))
}

// A long reply that must not be streamed is read and discarded.
func TestWithheldLongRepliesAreNotHeld(t *testing.T) {
	const size = 64 << 20
	holds := layer("holds", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		call.MustHold()
		return next(ctx, m)
	})
	s := proxytest.Setup{PipeSize: pipeSize, Options: proxy.Options{Hold: 1 << 20, Layers: []middleware.Layer{holds}}}.Start(t)
	s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	s.Server.Expect(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	before := totalAlloc()
	_, out := s.Server.Raw()
	writeLong(out, `{"result":"`, `","id":1,"jsonrpc":"2.0"}`+"\n", size)
	s.Client.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server's reply is longer than the proxy may hold, and rules must be able to read it; raise limits.hold","data":{"source":"attache"}}}`)
	if grown := totalAlloc() - before; grown > 8<<20 {
		t.Errorf("a withheld line of %d MiB made the process allocate %d MiB", size>>20, grown>>20)
	}
}

// A refused long line is read and discarded.
func TestRefusedLongLinesAreNotHeld(t *testing.T) {
	const size = 64 << 20
	s := proxytest.Setup{PipeSize: pipeSize, Options: proxy.Options{Hold: 1 << 20, Layers: []middleware.Layer{enforceLayer}}}.Start(t)
	before := totalAlloc()
	_, out := s.Client.Raw()
	writeLong(out, `{"jsonrpc":"2.0","params":"`, `","method":"x","id":1}`+"\n", size)
	s.Client.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"refused: the message is longer than the proxy may hold to apply its rules","data":{"source":"attache"}}}`)
	if grown := totalAlloc() - before; grown > 8<<20 {
		t.Errorf("a refused line of %d MiB made the process allocate %d MiB", size>>20, grown>>20)
	}
}

// An array with more members than the relay takes apart passes unchanged, or is refused if a
// layer enforces.
func TestTooManyBatchMembers(t *testing.T) {
	line := "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"x"},`, 5000) + `{"jsonrpc":"2.0","id":2,"method":"x"}]`
	const hello = `{"jsonrpc":"2.0","id":0,"method":"x"}`
	t.Run("passes", func(t *testing.T) {
		s := proxytest.Start(t, hookLayer())
		s.Client.Send(line)
		s.Server.Expect(line)
		reply := strings.ReplaceAll(line, `"method":"x"`, `"result":{}`)
		s.Server.Send(reply)
		s.Client.Expect(reply)
	})
	t.Run("refused", func(t *testing.T) {
		s := proxytest.Start(t, enforceLayer)
		s.Client.Send(line)
		s.Client.Expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"refused: the array has more members than the proxy takes apart","data":{"source":"attache"}}}`)
		s.Client.Send(hello)
		s.Server.Expect(hello)
	})
}

// Messages nested so deep that some parsers fail are refused.
func TestTooDeep(t *testing.T) {
	s := proxytest.Start(t, enforceLayer)
	for _, depth := range []int{600, 1_000_000} {
		s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)
		s.Client.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"refused: nested deeper than 512","data":{"source":"attache"}}}`)
	}
	fine := `{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`
	s.Client.Send(fine)
	s.Server.Expect(fine)
}

// The session ends in bounded time even if the client does not read.
func TestEndWithAClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	s := proxytest.Setup{PipeSize: pipeSize}.Start(t)
	s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	s.Server.Next()
	_, out := s.Server.Raw()
	_, done := flood(out, `{"jsonrpc":"2.0","method":"notifications/message"}`)
	s.Client.AwaitFull()
	begin := time.Now()
	s.Exit(errors.New("exit status 1"))
	<-done
	s.Client.Close()
	s.Wait()
	if d := time.Since(begin); d > time.Minute {
		t.Errorf("the session ended after %v", d)
	}
}

// If the system cannot report whether a client that has closed its end still reads, the session
// waits at most a minute for its answers.
func TestClientReadsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, out, server := mempipe.New(0), mempipe.New(0), mempipe.NewServer(0)
		io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"x"}`+"\n")
		in.CloseWrite()
		begun := time.Now()
		err := proxy.Run(t.Context(), proxy.Options{
			ClientIn: in, ClientOut: out,
			Start: func(context.Context) (proxy.Upstream, error) { return server, nil },
		})
		if d := time.Since(begun); err != nil || d < time.Minute || d > time.Minute+2*time.Second {
			t.Errorf("Run returned %v after %v", err, d)
		}
		const want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server ended before it answered: signal: killed","data":{"source":"attache"}}}` + "\n"
		if got, _ := out.ReadLine(0); string(got) != want {
			t.Errorf("the client got %q", got)
		}
	})
}

// Frames that a layer suspends for longer than the stall time-out are not lost when the client
// hangs up.
func TestClientGoneWhileAFrameIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		close(gone)
		hold := layer("hold", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
			if m.Kind() != wire.Request {
				return next(ctx, m)
			}
			call.Suspend(m, nil, time.Minute, next)
			return nil
		})
		s := proxytest.Setup{Options: proxy.Options{ClientGone: gone, Layers: []middleware.Layer{hold}}}.Start(t)
		s.Client.CloseInput()
		s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		s.Client.Send(`{"jsonrpc":"2.0","method":"notifications/y"}`)
		s.Client.Close()
		s.Server.Expect(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		s.Server.Expect(`{"jsonrpc":"2.0","method":"notifications/y"}`)
		s.Server.ExpectEOF()
		s.Exit(nil)
		if err := s.Wait(); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// The session ends even if the server does not read.
func TestEndWithAServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	s := proxytest.Setup{PipeSize: pipeSize}.Start(t)
	_, out := s.Client.Raw()
	_, done := flood(out, `{"jsonrpc":"2.0","id":1,"method":"x"}`)
	s.Server.AwaitFull()
	s.Cancel()
	s.Wait()
	s.Client.CloseInput()
	s.Client.Close()
	<-done
}

// When the client has hung up and the server does not read, the session ends. As long as the
// server reads, the client's messages are delivered.
func TestClientGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const reads, pause = 8, time.Second // of the server; the pause is shorter than the relay's 1.5 s
		gone := make(chan struct{})
		s := proxytest.Setup{PipeSize: pipeSize, Options: proxy.Options{ClientGone: gone}}.Start(t)
		in, _ := s.Server.Raw()
		_, out := s.Client.Raw()
		// Twice as much as the server reads. If the client wrote forever, the fake clock would not advance.
		line := `{"jsonrpc":"2.0","method":"notifications/x"}` + "\n"
		done := make(chan struct{})
		go func() {
			defer close(done)
			io.WriteString(out, strings.Repeat(line, 2*reads*pipeSize/len(line)))
		}()
		s.Server.AwaitFull()
		close(gone)
		for range reads {
			time.Sleep(pause)
			io.ReadFull(in, make([]byte, pipeSize))
		}
		select {
		case <-s.Over():
			t.Error("the session ended while the server was reading")
		default:
		}
		begun := time.Now()
		if err := s.Wait(); !errors.Is(err, proxy.ErrClientGone) {
			t.Errorf("Run returned %v", err)
		}
		// Two ticks of 1.5 s, and 1.5 s for the server, which does not see the end of its input.
		if d := time.Since(begun); d > 4500*time.Millisecond {
			t.Errorf("the session ended %v after the server read for the last time", d)
		}
		s.Client.Close()
		<-done
	})
}

// What a client has written before it hung up is delivered, even if it is read late, as on a busy machine.
func TestClientGoneIsReadToTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		s := proxytest.Setup{Options: proxy.Options{ClientGone: gone}}.Start(t)
		s.Client.Send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		s.Server.Expect(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		close(gone)
		time.Sleep(10 * time.Second)
		s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		s.Server.Expect(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		s.Server.Send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		s.Client.Expect(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		s.Client.Close()
		s.Server.ExpectEOF()
		s.Exit(nil)
		if err := s.Wait(); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// A client that hangs up while its calls wait for others, which the server does not answer, ends the
// session.
func TestClientGoneWhileCallsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		s := proxytest.Setup{Options: proxy.Options{ClientGone: gone, InFlight: 1}}.Start(t)
		for id := range 3 {
			s.Client.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, id))
		}
		s.Server.Expect(`{"jsonrpc":"2.0","id":0,"method":"x"}`)
		s.Client.CloseInput()
		s.Client.Close()
		close(gone)
		if err := s.Wait(); !errors.Is(err, proxy.ErrClientGone) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// brokenReader returns err in place of io.EOF.
type brokenReader struct {
	io.Reader
	err error
}

func (r *brokenReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if errors.Is(err, io.EOF) {
		err = r.err
	}
	return n, err
}

// A read error is not taken for the end of the client's input.
func TestClientReadError(t *testing.T) {
	broken := errors.New("input/output error")
	var out bytes.Buffer
	serverOut := mempipe.New(0)
	up := &fixedUpstream{stdout: serverOut} // which ends when its input does
	up.stdin.onClose = func() { serverOut.CloseWrite() }
	err := proxy.Run(t.Context(), proxy.Options{
		ClientIn:  &brokenReader{strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n"), broken},
		ClientOut: &out,
		Start:     func(context.Context) (proxy.Upstream, error) { return up, nil },
	})
	if !errors.Is(err, broken) {
		t.Errorf("Run returned %v", err)
	}
	if up.stdin.String() != `{"jsonrpc":"2.0","id":1,"method":"x"}`+"\n" {
		t.Errorf("the server got %q", up.stdin.String())
	}
	if !strings.Contains(out.String(), `"id":1,"error"`) {
		t.Errorf("the client got %q", out.String())
	}
}

// An error of the server's output ends the server's output. It is no error of the session.
func TestServerReadError(t *testing.T) {
	const line = `{"jsonrpc":"2.0","method":"x"}` + "\n"
	var out bytes.Buffer
	up := &fixedUpstream{stdout: &brokenReader{strings.NewReader(line), errors.New("input/output error")}}
	err := proxy.Run(t.Context(), proxy.Options{
		ClientIn:  strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n"),
		ClientOut: &out,
		Start:     func(context.Context) (proxy.Upstream, error) { return up, nil },
	})
	if err != nil || !strings.HasPrefix(out.String(), line) || !strings.Contains(out.String(), `"id":1,"error"`) {
		t.Errorf("Run returned %v, and the client got %q", err, out.String())
	}
}

// fixedUpstream is a server that writes a fixed output and ends.
type fixedUpstream struct {
	stdin  closedBuffer
	stdout io.Reader
}

// closedBuffer is a buffer that calls onClose, unless it is nil, when it is closed.
type closedBuffer struct {
	bytes.Buffer
	onClose func()
}

func (b *closedBuffer) Close() error {
	if b.onClose != nil {
		b.onClose()
	}
	return nil
}

func (u *fixedUpstream) Stdin() io.WriteCloser { return &u.stdin }
func (u *fixedUpstream) Stdout() io.Reader     { return u.stdout }
func (u *fixedUpstream) Stop()                 {}
func (u *fixedUpstream) Wait() error           { return nil }

// A client that has closed its end gets all answers, although it reads none of them for longer than attache waits
// for the end of a session. They are written at once, and the pipe has no room for all.
func TestSlowReaderGetsAllAnswers(t *testing.T) {
	t.Parallel()
	const calls = 20
	var requests, replies strings.Builder
	for id := range calls {
		fmt.Fprintf(&requests, `{"jsonrpc":"2.0","id":%d,"method":"x"}`+"\n", id)
		fmt.Fprintf(&replies, `{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", id)
	}
	out, clientOut := io.Pipe() // a write ends when it was read
	ended := make(chan error, 1)
	go func() {
		defer clientOut.Close()
		ended <- proxy.Run(t.Context(), proxy.Options{
			ClientIn: strings.NewReader(requests.String()), ClientOut: clientOut,
			Start: func(context.Context) (proxy.Upstream, error) {
				return mempipe.Serve(func(in io.Reader, out io.Writer) error {
					if _, err := io.ReadFull(in, make([]byte, requests.Len())); err != nil {
						return err
					}
					_, err := io.WriteString(out, replies.String())
					_, _ = io.Copy(io.Discard, in)
					return err
				}), nil
			},
		})
	}()
	first := make([]byte, 10)
	if _, err := io.ReadFull(out, first); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Fatal("the session ended before its client had read the answers", err)
	case <-time.After(1500 * time.Millisecond):
	}
	rest, err := io.ReadAll(out)
	if got := string(first) + string(rest); err != nil || got != replies.String() {
		t.Errorf("got %d bytes of %d (%v)", len(got), replies.Len(), err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
