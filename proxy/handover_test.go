package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A pushFunc hands over the messages of a client.
type pushFunc func(to wire.Sink)

func (f pushFunc) Push(to wire.Sink) {
	go func() {
		defer to.End()
		f(to)
	}()
}

// hand hands over a message by Try where the relay can take it so, else by Line.
func hand(t *testing.T, to wire.Sink, m *wire.Message) {
	if try, ok := to.(wire.Trier); ok && try.Try(m) {
		return
	}
	if err := to.Line(m, false); err != nil {
		t.Error(err)
	}
}

// A keepingTape is a tape that takes messages and keeps their lines.
type keepingTape struct {
	*tape
	kept *[][]byte
}

func (u keepingTape) Stdin() io.WriteCloser { return u }

// Take implements wire.MessageTaker.
func (u keepingTape) Take(m *wire.Message) bool {
	line, _ := m.KeepLine()
	*u.kept = append(*u.kept, line)
	return true
}

// runPushed runs a relay for a client that pushes, and returns the lines that its server has kept,
// and what the client was sent.
func runPushed(t *testing.T, o proxy.Options, push pushFunc) (kept [][]byte, client string) {
	t.Helper()
	var out lockedBuffer
	o.ClientLines, o.ClientOut = push, &out
	o.Start = func(context.Context) (proxy.Upstream, error) {
		return keepingTape{newTape(bytes.NewReader(nil)), &kept}, nil
	}
	if err := proxy.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return kept, string(out.Bytes())
}

// A server keeps a line itself if nobody writes to its bytes again. It keeps a copy if a layer has
// edited the line, or if the client uses the bytes for its next one.
func TestKeptLines(t *testing.T) {
	const messages = 30
	edits := middleware.Layer{Name: "edits", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			if edit := m.Get("params", "edit"); edit.Exists() {
				if err := m.Set(edit.Raw, "params", "edited"); err != nil {
					t.Error(err)
				}
			}
			return next(ctx, m)
		}
	}}
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
			hand(t, to, &m)
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
			t.Errorf("line %d is the client's own: %t", n, shared)
		}
	}
}

// A message is looked at again if that was done for other rules than those that it meets: also a
// message that was handed over before they were replaced.
func TestLookedAtForOtherRules(t *testing.T) {
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
		hand(t, to, message(1))          // looked at for no rules
		hand(t, to, message(2, "path"))  // ambiguous for other rules
		hand(t, to, message(3, "other")) // for these
		again := message(4, "other")
		control.Replace(needs("other", "place"))
		hand(t, to, again)
		hand(t, to, message(5, "other", "place"))
		control.Replace(needs("other"))
		hand(t, to, message(6, "other", "place"))
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
