package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A pushFunc is a client that pushes messages.
type pushFunc func(to wire.Sink)

func (f pushFunc) Push(to wire.Sink) {
	go func() {
		defer to.End()
		f(to)
	}()
}

// deliver passes a message to the relay with Try, or with Line if Try does not accept it.
func deliver(t *testing.T, to wire.Sink, m *wire.Message) {
	if try, ok := to.(wire.Trier); ok && try.Try(m) {
		return
	}
	if err := to.Line(m, false); err != nil {
		t.Error(err)
	}
}

// A keepingServer is a recordedServer that accepts messages with Take and keeps their lines.
type keepingServer struct {
	*recordedServer
	kept *[][]byte
}

func (u keepingServer) Stdin() io.WriteCloser { return u }

// Take implements wire.MessageTaker.
func (u keepingServer) Take(m *wire.Message) bool {
	line, _ := m.KeepLine()
	*u.kept = append(*u.kept, line)
	return true
}

// runPushed runs a relay for a client that pushes. It returns the lines that the server kept and
// the client's output.
func runPushed(t *testing.T, o proxy.Options, push pushFunc) (kept [][]byte, client string) {
	t.Helper()
	var out lockedBuffer
	o.ClientLines, o.ClientOut = push, &out
	o.Start = func(context.Context) (proxy.Upstream, error) {
		return keepingServer{newRecordedServer(bytes.NewReader(nil)), &kept}, nil
	}
	testkit.Check(t, proxy.Run(t.Context(), o))
	return kept, string(out.Bytes())
}

// KeepLine returns the line itself if its bytes do not change any more. It returns a copy if a layer
// has edited the line, or if the client reuses the bytes for its next line.
func TestKeptLines(t *testing.T) {
	const messages = 30
	edits := layer("edits", func(ctx context.Context, _ *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if edit := m.Get("params", "edit"); edit.Exists() {
			if err := m.Set(edit.Raw, "params", "edited"); err != nil {
				t.Error(err)
			}
		}
		return next(ctx, m)
	})
	var lines [][]byte
	var want []string
	kept, _ := runPushed(t, proxy.Options{Layers: []middleware.Layer{edits}}, func(to wire.Sink) {
		for n := range messages {
			text := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d}}`, n) + "\n"
			padding := strings.Repeat("x", n%2<<20)
			const edited = `{"jsonrpc":"2.0","method":"notifications/x","params":{"edit":%d,"padding":"%s","edited":%d}}` + "\n"
			if n%3 == 1 {
				text = fmt.Sprintf(edited, n, padding, 0)
			}
			line := []byte(text)
			var m wire.Message
			m.Reset(wire.Client, line)
			new(wire.Scanner).Look(&m)
			m.Fixed = n%3 != 2
			deliver(t, to, &m)
			if !m.Fixed {
				clear(line)
			}
			if n%3 == 1 {
				text = fmt.Sprintf(edited, n, padding, n)
			}
			lines, want = append(lines, line), append(want, text)
		}
	})
	if len(kept) != messages {
		t.Fatalf("%d messages reached the server", len(kept))
	}
	for n, line := range kept {
		if string(line) != want[n] {
			t.Errorf("kept %.300q, want %.300q", line, want[n])
		}
		if shared := &line[0] == &lines[n][0]; shared != (n%3 == 0) {
			t.Errorf("line %d shares the client's bytes: %t", n, shared)
		}
	}
}

// A handedOver is a client that pushes. It hands the relay's Sink over to the test.
type handedOver chan wire.Trier

func (c handedOver) Push(to wire.Sink) { c <- to.(wire.Trier) }

// try passes a line to the relay with Try, and checks whether it is accepted.
func (handedOver) try(t *testing.T, to wire.Trier, line string, want bool) {
	t.Helper()
	if got := to.Try(clientMessage(line)); got != want {
		t.Fatalf("Try(%s) = %t", line, got)
	}
}

// clientMessage returns a message of the client that nobody has scanned.
func clientMessage(line string) *wire.Message {
	var m wire.Message
	m.Reset(wire.Client, []byte(line+"\n"))
	return &m
}

// Try accepts a message if there is an upstream and room for a call. The message then reaches the
// upstream without a message behind it, or ends the session.
func TestTry(t *testing.T) { synctest.Test(t, testTry) }

func testTry(t *testing.T) {
	fault := errors.New("a fault of the layer")
	fails := layer("fails", func(ctx context.Context, _ *middleware.Call, m *wire.Message, next middleware.Handler) error {
		if m.MethodIs("fail") {
			return fault
		}
		return next(ctx, m)
	})
	client := make(handedOver, 1)
	s := proxytest.Setup{Options: proxy.Options{ClientLines: client, InFlight: 1, Layers: []middleware.Layer{fails}}}.Start(t)
	to := <-client
	const note, first, second = `{"jsonrpc":"2.0","method":"n"}`, `{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","id":2,"method":"x"}`
	client.try(t, to, note, false) // the upstream was not started
	testkit.Check(t, to.Line(clientMessage(note), false))
	s.Server.Expect(note)
	for i, call := range []string{first, second} {
		client.try(t, to, call, true)
		s.Server.Expect(call)
		client.try(t, to, second, false)
		client.try(t, to, note, false)
		reply := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i+1)
		s.Server.Send(reply)
		s.Client.Expect(reply)
	}
	client.try(t, to, note, true)
	s.Server.Expect(note)
	client.try(t, to, `{"jsonrpc":"2.0","method":"fail"}`, true)
	s.Exit(nil)
	if err := s.Wait(); !errors.Is(err, fault) {
		t.Errorf("the session ended with %v", err)
	}
}

// A request that was gathered before a long line is answered if the server has closed its input, also if nothing
// follows the long line.
func TestUnsentBeforeALongLine(t *testing.T) { synctest.Test(t, testUnsentBeforeALongLine) }

func testUnsentBeforeALongLine(t *testing.T) {
	client := make(handedOver, 1)
	s := proxytest.Setup{Options: proxy.Options{ClientLines: client, Hold: 64}}.Start(t)
	to := <-client
	const note, call = `{"jsonrpc":"2.0","method":"n"}`, `{"jsonrpc":"2.0","id":1,"method":"x"}`
	testkit.Check(t, to.Line(clientMessage(note), false))
	s.Server.Expect(note)
	s.Server.CloseInput()
	long := `{"jsonrpc":"2.0","method":"x","params":"` + strings.Repeat("x", 64) + `"}`
	testkit.Check(t, errors.Join(to.Line(clientMessage(call), true), to.Line(clientMessage(long), false)))
	s.Client.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server has closed its input and takes no more requests","data":{"source":"attache"}}}`)
	to.End()
	s.Server.Close()
}

// Try accepts no message while too many of attache's answers wait for the client.
func TestTryWithABacklog(t *testing.T) {
	client := make(handedOver, 1)
	o := proxy.Options{ClientLines: client, Hold: 1 << 10, Layers: []middleware.Layer{answerAll()}}
	s := proxytest.Setup{PipeSize: pipeSize, Options: o}.Start(t)
	to := <-client
	const note = `{"jsonrpc":"2.0","method":"n"}`
	testkit.Check(t, to.Line(clientMessage(note), false))
	s.Server.Expect(note)
	_, out := s.Server.Raw()
	_, done := flood(out, `{"jsonrpc":"2.0","method":"notifications/message"}`)
	s.Client.AwaitFull()
	for range 2 { // the two answers are over the hold limit
		client.try(t, to, `{"jsonrpc":"2.0","id":"`+strings.Repeat("i", 900)+`","method":"x"}`, true)
	}
	client.try(t, to, note, false)
	to.End()
	s.Server.Close()
	<-done
}

// A message that was scanned for other rules is scanned again, also if it was scanned before the
// rules were replaced.
func TestScannedForOtherRules(t *testing.T) {
	const text = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"Path":1,"Place":2}}}` + "\n"
	needs := func(names ...string) proxy.Rules {
		return proxy.Rules{Layers: []middleware.Layer{{Name: "needs", Enforces: true, ArgumentNames: [][]string{names}}}}
	}
	message := func(id int, names ...string) *wire.Message {
		var m wire.Message
		m.Reset(wire.Client, fmt.Appendf(nil, text, id))
		m.Fixed = true
		(&wire.Scanner{ArgumentNames: [][]string{names}}).Look(&m)
		return &m
	}
	var control proxy.Control
	o := proxy.Options{Control: &control, Layers: needs("other").Layers}
	kept, client := runPushed(t, o, func(to wire.Sink) {
		deliver(t, to, message(1))          // scanned without rules
		deliver(t, to, message(2, "path"))  // ambiguous for other rules
		deliver(t, to, message(3, "other")) // scanned for the current rules
		again := message(4, "other")
		control.Replace(needs("other", "place"))
		deliver(t, to, again)
		deliver(t, to, message(5, "other", "place"))
		control.Replace(needs("other"))
		deliver(t, to, message(6, "other", "place"))
	})
	var want string
	for _, id := range []int{1, 2, 3, 6} {
		want += fmt.Sprintf(text, id)
	}
	if got := string(bytes.Join(kept, nil)); got != want {
		t.Errorf("the server got\n%s, want\n%s", got, want)
	}
	for id := 1; id <= 6; id++ {
		refused := bytes.Contains([]byte(client), fmt.Appendf(nil, `"id":%d,"error":{"code":-32600,"message":"refused: a name differs`, id))
		if refused != (id == 4 || id == 5) {
			t.Errorf("call %d was refused: %t; the client got\n%s", id, refused, client)
		}
	}
}
