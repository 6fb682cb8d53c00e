package audit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A step runs while a call is being handled by the inner layers.
type step func(ctx context.Context)

type insideKey struct{}

func nothing(context.Context) {}

// handle handles a frame with a new Call.
func handle(h middleware.Handler, line string, inside step) {
	var scanner wire.Scanner
	var m wire.Message
	m.Reset(wire.Client, []byte(line+"\n"))
	scanner.Look(&m)
	var call relayed.Call
	call.Reset(noRelay{}, m.Kind() == wire.Request)
	_ = h(&relayed.Context{Context: context.WithValue(context.Background(), insideKey{}, inside), Call: &call}, &m)
}

// reply gives a call its reply.
func reply(ctx context.Context) {
	for _, hook := range relayed.From(ctx).Hooks() {
		_ = hook(ctx, wire.NewMessage(wire.Server, []byte(answer)))
	}
}

// Late notes and replies of a recorded call are not in the record of the next call that
// uses its entry.
func TestLateWordsAreOfNoOtherCall(t *testing.T) {
	late := middleware.Note{Layer: "late", Act: middleware.Refused}
	rehearsed := late
	rehearsed.DryRun = true
	note := func(ctx context.Context) { middleware.CallFrom(ctx).Note(late) }
	view := &sessionstate.Context{Session: sessionstate.Fact{Value: "late"}}
	for _, test := range []struct {
		name      string
		cancelled bool // whether the first call is cancelled; otherwise it has a reply
		late      step
	}{
		{"a note", false, note},
		{"a note of a dry run", false, func(ctx context.Context) { middleware.CallFrom(ctx).Note(rehearsed) }},
		{"a note of a cancelled call", true, note},
		{"the reply of a cancelled call", true, reply},
		{"a second reply", false, reply},
		{"the return of the handler", false, nothing},
	} {
		t.Run(test.name, func(t *testing.T) {
			const rounds = 50 // because the pool seldom returns the same entry immediately
			log, path := newLog(t, nil)
			a := newAudit(t, everything(log))
			h := middleware.Chain(func(ctx context.Context, _ *wire.Message) error {
				ctx.Value(insideKey{}).(step)(ctx)
				return nil
			}, a.Layer())
			for range rounds {
				handle(h, echo, func(first context.Context) {
					if test.cancelled {
						handle(h, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, nothing)
					} else {
						reply(first)
					}
					<-log.Commit([]byte(`{"kind":"mark"}`)).Done() // and the record before it
					middleware.CallFrom(first).SetValue(sessionstate.ContextKey{}, view)
					handle(h, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"next"}}`, func(context.Context) { test.late(first) })
				})
			}
			check(t, a.Close(time.Minute))
			n := 0
			for line := range strings.Lines(records(t, path)) {
				if !strings.Contains(line, `"tool":"next"`) {
					continue
				}
				n++
				if strings.Contains(line, "late") || !strings.Contains(line, `"decision":"allowed","result":"none"`) {
					t.Errorf("got %s", line)
				}
			}
			if n != rounds {
				t.Errorf("%d records, want %d", n, rounds)
			}
		})
	}
}

// A record contains nothing of the call before it.
func TestEntriesAreEmptied(t *testing.T) {
	log, path := newLog(t, nil)
	a := newAudit(t, everything(log))
	h := middleware.Chain(func(ctx context.Context, _ *wire.Message) error {
		ctx.Value(insideKey{}).(step)(ctx)
		return nil
	}, a.Layer())
	for range 50 { // because the pool seldom returns the same entry immediately
		handle(h, echo, func(ctx context.Context) {
			call := middleware.CallFrom(ctx)
			call.Note(middleware.Note{Act: middleware.Edited, Path: []string{"params", "name"}, After: []byte(`"other"`)})
			call.Note(middleware.Note{Act: middleware.Refused, DryRun: true})
			reply(ctx)
		})
		<-log.Commit([]byte(`{"kind":"mark"}`)).Done() // and the record before it
		handle(h, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"next"}}`, reply)
	}
	check(t, a.Close(time.Minute))
	for line := range strings.Lines(records(t, path)) {
		if next := strings.Contains(line, `"tool":"next"`); next && strings.ContainsAny(line, "[") ||
			next && !strings.Contains(line, `"tool":"next","decision":"allowed","result":"ok"`) {
			t.Errorf("got %s", line)
		}
	}
}

// A call that was cancelled on its way to the gate is recorded, and is not sent.
func TestCancelledBeforeTheGate(t *testing.T) {
	log, path := newLog(t, nil)
	a := newAudit(t, audit.Options{Log: log, Required: true})
	cancel := func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			handle(a.Layer().Wrap(next), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, nothing)
			return next(ctx, m)
		}
	}
	h := middleware.Chain(func(_ context.Context, m *wire.Message) error {
		if m.MethodIs("tools/call") {
			t.Error("it was sent")
		}
		return nil
	}, a.Layer(), middleware.Layer{Name: "cancel", Wrap: cancel}, a.Gate())
	handle(h, echo, nothing)
	check(t, a.Close(time.Minute))
	if got := records(t, path); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"result":"cancelled"`) {
		t.Errorf("got %s", got)
	}
}

// A record has only the notes of its own call, however calls end and even if the log is full.
func TestRecordsKeepApart(t *testing.T) {
	const calls = 2000
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a := newAudit(t, audit.Options{Log: chain.New(chain.Options{File: path, Linger: time.Microsecond, Queue: 32 << 10})})
	s := proxytest.Start(t, a.Layer(), middleware.Layer{Name: "inside", Wrap: talkative})
	in, out := s.Server.Raw()
	go serve(in, out)
	for i := range calls {
		s.Client.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool %d"}}`, i, i))
		if i%3 == 0 {
			s.Client.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
		}
	}
	s.Client.Send(`{"jsonrpc":"2.0","id":"last","method":"ping"}`)
	for !strings.Contains(string(s.Client.Next()), `"last"`) {
	}
	lost := a.Close(time.Minute)
	text, err := os.ReadFile(path)
	check(t, err)
	n := 0
	for line := range strings.Lines(string(text)) {
		var r struct {
			Kind, Tool string
			Rules      []struct{ Rule string }
		}
		check(t, json.Unmarshal([]byte(line), &r))
		if r.Kind != "call" {
			continue
		}
		n++
		for _, rule := range r.Rules {
			if rule.Rule != r.Tool {
				t.Errorf("a note of %q: %s", rule.Rule, line)
			}
		}
	}
	if n > calls || n < calls && lost == nil {
		t.Errorf("%d records of %d calls, and %v", n, calls, lost)
	}
}

// talkative adds notes at every step of a call.
func talkative(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		call := middleware.CallFrom(ctx)
		tool := m.Name().Text()
		if tool == "" {
			return next(ctx, m)
		}
		n := middleware.Note{Layer: "inside", Rule: tool, Act: middleware.Allowed}
		call.OnReply(func(context.Context, *wire.Message) error { call.Note(n); return nil })
		call.Note(n)
		err := next(ctx, m)
		call.Note(n)
		return err
	}
}

// serve answers every request with an id.
func serve(in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct{ ID json.RawMessage }
		if json.Unmarshal(lines.Bytes(), &m) == nil && m.ID != nil {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", m.ID)
		}
	}
}

// A record names the caller of its call, also if the call before it had another one.
func TestRecordsNameTheirCaller(t *testing.T) {
	log, path := newLog(t, nil)
	a := newAudit(t, everything(log))
	view := map[string]*sessionstate.Context{}
	for _, user := range []string{"ada", "bob"} {
		view[user] = &sessionstate.Context{Principal: &sessionstate.Principal{User: user}}
	}
	h := middleware.Chain(func(ctx context.Context, m *wire.Message) error {
		middleware.CallFrom(ctx).SetValue(sessionstate.ContextKey{}, view[m.Name().Text()])
		reply(ctx)
		return nil
	}, a.Layer())
	callers := []string{"ada", "ada", "bob", "ada", "bob", "bob"}
	for _, user := range callers {
		handle(h, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+user+`"}}`, nothing)
	}
	check(t, a.Close(time.Minute))
	var got []string
	for line := range strings.Lines(records(t, path)) {
		var r struct{ User, Tool string }
		check(t, json.Unmarshal([]byte(line), &r))
		if r.Tool != "" {
			got = append(got, r.User)
		}
	}
	if !slices.Equal(got, callers) {
		t.Errorf("the records name %q, want %q", got, callers)
	}
}
