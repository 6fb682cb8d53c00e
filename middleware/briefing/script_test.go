package briefing_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// TestScripts plays the scripts of testdata.
func TestScripts(t *testing.T) {
	var shared sessionstate.Turns // by the briefing layers of a script
	proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{
		"session": session,
		"first": func(s *proxytest.Session, how string) middleware.Layer {
			shared = sessionstate.NewMemoryTurns(nil)
			return layer(s, how, shared)
		},
		"second": func(s *proxytest.Session, how string) middleware.Layer { return layer(s, how, shared) },
	}}.Play(t, "testdata/*.txt")
}

// session returns a layer that sets the context as capture does: "session=operator", "session=host" for the
// variable of Qwen Code and "session=app" for another one, or "session=connection" for a key that no other process
// can know. After the notification "session" the context is that of another session.
func session(_ *proxytest.Session, whose string) middleware.Layer {
	view := &sessionstate.Context{Protocol: "2024-11-05", Session: sessionstate.Fact{Value: "s1", Source: sessionstate.Operator}}
	switch whose {
	case "host":
		view.Session.Source, view.Session.From = sessionstate.HostEnvironment, "QWEN_CODE_SESSION_ID"
	case "app":
		view.Session.Source, view.Session.From = sessionstate.HostEnvironment, "APP_SESSION"
	case "connection":
		view.Session.Source = sessionstate.None
	}
	return middleware.Layer{Name: "session", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			if m.MethodIs("notifications/test/session") {
				other := *view
				other.Session.Value = "s2"
				view = &other
			}
			middleware.CallFrom(ctx).SetValue(sessionstate.ContextKey{}, view)
			return next(ctx, m)
		}
	}}
}

// layer returns a briefing layer with its own connection, which adds a note for each warning.
// how is a list of words separated by commas: the fault of the shared turns, and options of the
// configuration. A notification replaces the connection by that of a new process: "again" of the same
// server, "other" of another server, "project" of another server in another directory, "resume" of the same server for another process of the client, and
// "unknown" of the same server for a client whose process is not known.
func layer(s *proxytest.Session, how string, turns sessionstate.Turns) middleware.Layer {
	shared := &faultyTurns{Turns: turns}
	o := briefing.Options{Source: onePolicy{}, Anonymous: true, Log: logNotes(s)}
	closed := errors.New("read-only file system")
	o.UserTurns = func(string) (sessionstate.Turns, error) { return shared, nil }
	for word := range strings.SplitSeq(how, ",") {
		switch word {
		case "response":
			o.Response = true
		case "instructions":
			o.Instructions = true
		case "member", "text-only", "defer":
			o.Structured = toolresult.Structured(word)
		case "closed":
			o.UserTurns = func(string) (sessionstate.Turns, error) { return nil, closed }
		case "longer":
			o.Source = twoPolicies{}
		case "nobody":
			o.Anonymous = false
		default:
			shared.how = word
		}
	}
	var conn *briefing.Conn
	running := map[string]*briefing.Conn{} // by server
	var catalog *middleware.Catalog
	client, directory := "4711", "/src/first"
	start := func(server string) {
		process := client
		if earlier := running[server]; earlier != nil {
			earlier.Close()
		}
		catalog = new(middleware.Catalog)
		conn = briefing.Compile(o).Connect(briefing.ConnOptions{
			Catalog:       catalog,
			ClientProcess: func() string { return process },
			Directory:     directory,
			Server:        server,
			Log:           logNotes(s),
		})
		running[server] = conn
	}
	start("this")
	return middleware.Layer{Name: "briefing", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			switch {
			case m.MethodIs("notifications/test/close"):
				conn.Close()
			case m.MethodIs("notifications/test/again"):
				start("this")
			case m.MethodIs("notifications/test/resume"):
				client += "1"
				start("this")
			case m.MethodIs("notifications/test/unknown"):
				client = ""
				start("this")
			case m.MethodIs("notifications/test/project"):
				directory = "/src/second"
				start("third")
			case m.MethodIs("notifications/test/other"):
				start("another")
			}
			return middleware.Chain(next, conn.Layer(), catalog.Layer())(ctx, m)
		}
	}}
}

// faultyTurns are turns with a fault.
type faultyTurns struct {
	sessionstate.Turns
	how   string
	taken atomic.Int64
}

func (f *faultyTurns) Take(ctx context.Context, key string, idle time.Duration) (bool, int, error) {
	n := f.taken.Add(1)
	switch {
	case f.how == "failing", f.how == "busy" && n == 1, f.how == "interrupted" && n == 2, f.how == "lost" && n > 2:
		return false, 0, errors.New("disk I/O error")
	case f.how == "stuck":
		<-time.After(time.Minute) // like a file on a lost network
	case f.how == "slow":
		<-time.After(100 * time.Millisecond)
	case f.how == "spent", f.how == "busy", f.how == "unswept", (f.how == "held" || f.how == "interrupted" || f.how == "lost") && n == 1:
		return false, 0, nil
	}
	return f.Turns.Take(ctx, key, idle)
}

func (f *faultyTurns) Settle(ctx context.Context, key string, o sessionstate.Outcome) error {
	if f.how == "full" {
		return errors.New("database or disk is full")
	}
	return f.Turns.Settle(ctx, key, o)
}

func (f *faultyTurns) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	switch f.how {
	case "unswept":
		return 0, errors.New("statement timeout")
	case "sweeping":
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return f.Turns.Sweep(ctx, idle)
}

// twoPolicies has a longer text than onePolicy.
type twoPolicies struct{}

func (twoPolicies) Effective(context.Context, policy.Query) (policy.Effective, error) {
	return policy.Effective{Objectives: []string{"Ship", "Rest"}}, nil
}

type onePolicy struct{}

func (onePolicy) Effective(context.Context, policy.Query) (policy.Effective, error) {
	return policy.Effective{Objectives: []string{"Ship"}}, nil
}

// logNotes returns a logger that writes each message and its attributes as a note of the script.
func logNotes(s *proxytest.Session) *slog.Logger {
	return slog.New(testkit.LogHandler(func(_ context.Context, r slog.Record) {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool { text += ": " + a.Value.String(); return true })
		s.Note("%s", text)
	}))
}
