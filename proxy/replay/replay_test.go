package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
)

// recording returns a recording of lines "AT LINE".
func recording(lines ...string) *record.Session {
	s := &record.Session{Header: record.Header{Version: 1, Era: "legacy", IDPrefix: "own-", Scrubbed: []string{}}}
	for i, l := range lines {
		at, frame, _ := strings.Cut(l, " ")
		s.Events = append(s.Events, record.Event{T: float64(i), At: at, Line: []byte(frame + "\n")})
	}
	return s
}

// playRecording plays a recording through the layers.
func playRecording(t *testing.T, s *record.Session, layers ...middleware.Layer) *Result {
	t.Helper()
	r, err := Play(t.Context(), s, Options{Proxy: proxy.Options{Layers: layers}, Patience: grace})
	testkit.Check(t, err)
	return r
}

const (
	call  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`
	reply = `{"jsonrpc":"2.0","id":1,"result":{}}`
	ping  = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	pong  = `{"jsonrpc":"2.0","id":2,"result":{}}`
)

var plainSession = recording("client-in "+call, "server-in "+call, "client-in "+ping, "server-in "+ping,
	"server-out "+pong, "client-out "+pong, "server-out "+reply, "client-out "+reply)

// edit is a layer that edits calls of tools.
func edit() middleware.Layer {
	return middleware.Layer{Name: "edit", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			if m.MethodIs("tools/call") {
				if err := m.Set([]byte("1"), "params", "arguments", "a"); err != nil {
					return err
				}
			}
			return next(ctx, m)
		}
	}}
}

// refuse is a layer that answers calls of tools.
func refuse() middleware.Layer {
	return middleware.Layer{Name: "refuse", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			if m.MethodIs("tools/call") {
				return middleware.CallFrom(ctx).Answer(ctx, wire.ResultReply(m.ID(), []byte(`"no"`)))
			}
			return next(ctx, m)
		}
	}}
}

func TestNoDifferences(t *testing.T) {
	r := playRecording(t, plainSession)
	if len(r.Differences) > 0 {
		t.Errorf("differences: %v", r.Differences)
	}
	if !reflect.DeepEqual(r.Session, plainSession) {
		t.Errorf("played:\n%s\nrecorded:\n%s", text(r.Session), text(plainSession))
	}
}

func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		layer middleware.Layer
		want  []string
	}{
		"edited":  {edit(), []string{"server-in: another line\n  want …:\"tools/call\""}},
		"refused": {refuse(), []string{"server-in: a line that did not come\n  want " + call, "client-out: a line that was not recorded\n  got  " + strings.Replace(reply, "{}", `"no"`, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := playRecording(t, plainSession, c.layer)
			if len(r.Differences) != len(c.want) {
				t.Fatalf("%d differences, want %d: %v", len(r.Differences), len(c.want), r.Differences)
			}
			for i, d := range r.Differences {
				if !strings.HasPrefix(d.String(), c.want[i]) {
					t.Errorf("difference %d:\n%s\nwant\n%s", i, d, c.want[i])
				}
			}
			// The recording of the replay has no differences when it is played.
			if again := playRecording(t, r.Session, c.layer); len(again.Differences) > 0 {
				t.Errorf("played again: %v\n%s", again.Differences, text(r.Session))
			}
		})
	}
}

func text(s *record.Session) string {
	var b bytes.Buffer
	s.Write(&b)
	return b.String()
}

// ask is a layer that sends the server a request before each call.
func ask() middleware.Layer {
	return middleware.Layer{Name: "ask", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			if !m.MethodIs("tools/call") {
				return next(ctx, m)
			}
			c, ready := middleware.CallFrom(ctx), make(chan struct{})
			c.Ask(wire.Server, "tools/list", nil, defaultPatience, func(*wire.Message) { close(ready) })
			c.Suspend(m, ready, defaultPatience, next)
			return nil
		}
	}}
}

// attache's own requests get the recorded ids.
func TestOwnRequests(t *testing.T) {
	s := recording("client-in "+call,
		`server-in {"jsonrpc":"2.0","id":"own-1","method":"tools/list"}`,
		`server-out {"jsonrpc":"2.0","id":"own-1","result":{}}`,
		"server-in "+call, "server-out "+reply, "client-out "+reply)
	if r := playRecording(t, s, ask()); len(r.Differences) > 0 {
		t.Errorf("differences: %v", r.Differences)
	}
}

// Only lines that were in flight at the same time may arrive in another order.
func TestOrder(t *testing.T) {
	together := recording("client-in "+call, "client-in "+ping, "server-in "+ping, "server-in "+call)
	if r := playRecording(t, together); len(r.Differences) > 0 {
		t.Errorf("differences: %v", r.Differences)
	}
	const note = `{"jsonrpc":"2.0","method":"x"}`
	three := recording("client-in "+call, "client-in "+ping, "client-in "+note, "server-in "+note, "server-in "+ping, "server-in "+call)
	if r := playRecording(t, three); len(r.Differences) > 0 {
		t.Errorf("differences: %v", r.Differences)
	}
	apart := recording("client-in "+call, "server-in "+ping, "client-in "+ping, "server-in "+call)
	if r := playRecording(t, apart); len(r.Differences) == 0 {
		t.Error("no difference, although one line arrived too late")
	}
}

func TestScrubbed(t *testing.T) {
	s := recording(`client-in {"jsonrpc":"2.0","id":1,"method":"a","params":"/home/user"}`, `server-in {"jsonrpc":"2.0","id":1,"method":"a","params":"/home/user"}`)
	sc := record.NewScrubber(record.Secrets{Home: "/home/alice"})
	r, err := Play(t.Context(), s, Options{Scrub: sc.Line})
	if err != nil || len(r.Differences) > 0 {
		t.Errorf("%v, differences: %v", err, r.Differences)
	}
}

func TestOversize(t *testing.T) {
	s := recording("client-in " + call)
	s.Events[0].Line = nil
	if _, err := Play(t.Context(), s, Options{}); err != ErrOversize {
		t.Errorf("err = %v", err)
	}
}

// A recording without its last answers can be played. The answers are reported as additional lines.
func TestIncompleteRecording(t *testing.T) {
	s := recording("client-in "+call, "server-in "+call, "server-out "+reply)
	r := playRecording(t, s)
	if len(r.Differences) != 1 || r.Differences[0].Want != nil || r.Differences[0].At != record.ClientOut {
		t.Errorf("differences: %v", r.Differences)
	}
	s = recording("client-in "+call, "server-in "+call, "server-out "+reply, `server-out {"jsonrpc":"2.0","method":"x"}`, "client-out "+reply)
	r = playRecording(t, s)
	if n := len(r.Session.Events); n != 6 {
		t.Errorf("the new recording has %d events:\n%s", n, text(r.Session))
	}
}

// A call that was in flight at the end gets the error that says how the server ended.
func TestStop(t *testing.T) {
	s := recording("client-in "+call, "server-in "+call, `server-stop {"exit":"exit status 3"}`,
		`client-out {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server ended before it answered: exit status 3","data":{"source":"attache"}}}`)
	if r := playRecording(t, s); len(r.Differences) > 0 {
		t.Errorf("differences: %v", r.Differences)
	}
}

// Only requests are among the lines that a server has not read, alone or in an array.
func TestIsUnsent(t *testing.T) {
	exit := record.Exit{Unsent: []json.RawMessage{json.RawMessage(`1`), json.RawMessage(`"a"`)}}
	for line, want := range map[string]bool{
		call: true, ping: false, reply: false, `{"jsonrpc":"2.0","method":"x"}`: false, "?": false,
		`{"jsonrpc":"2.0","id":"a","method":"x"}`: true, "[" + ping + "," + call + "]": true, "[" + ping + "]": false,
	} {
		if got := isUnsent(exit, []byte(line+"\n")); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}

func TestEmptyRecording(t *testing.T) {
	if r := playRecording(t, recording()); len(r.Differences) > 0 {
		t.Errorf("differences: %v", r.Differences)
	}
}

// A recording may contain an incomplete last line, CRLF, and bytes that are not UTF-8.
func TestUnusualBytes(t *testing.T) {
	s := recording("client-in "+call+"\r", "server-in "+call+"\r", "server-out "+reply+"\r", "client-out "+reply+"\r")
	s.Events = append(s.Events,
		record.Event{At: record.ClientIn, Line: []byte("\xff\xfe\n")}, record.Event{At: record.ServerIn, Line: []byte("\xff\xfe\n")},
		record.Event{At: record.ClientIn, Line: []byte(`{"half`)}, record.Event{At: record.ServerIn, Line: []byte(`{"half`)})
	if r := playRecording(t, s); len(r.Differences) > 0 {
		t.Errorf("differences: %v", r.Differences)
	}
}
