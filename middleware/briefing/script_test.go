package briefing_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// TestShared plays testdata/shared.txt: what other servers of a session have to do with
// whose turn it is.
func TestShared(t *testing.T) {
	var beside sessionstate.Store // what the briefing layers of a script share
	proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{
		"session": session,
		"first": func(s *proxytest.Session, how string) middleware.Layer {
			beside = sessionstate.NewMemoryStore(nil)
			return layer(s, how, beside)
		},
		"second": func(s *proxytest.Session, how string) middleware.Layer { return layer(s, how, beside) },
	}}.Play(t, "testdata/*.txt")
}

// session is a capture layer: "session=operator", or "session=connection" for a key that
// no other process can know.
func session(_ *proxytest.Session, whose string) middleware.Layer {
	view := &sessionstate.Context{Protocol: "2024-11-05", Session: sessionstate.Fact{Value: "s1", Source: sessionstate.Operator}}
	if whose == "connection" {
		view.Session.Source = sessionstate.None
	}
	return middleware.Layer{Name: "session", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			middleware.CallFrom(ctx).SetValue(sessionstate.ContextKey{}, view)
			return next(ctx, m)
		}
	}}
}

// layer is a briefing layer whose shared store behaves as how says, and which makes a
// note of each warning.
func layer(s *proxytest.Session, how string, store sessionstate.Store) middleware.Layer {
	shared := &faulty{Store: store, how: how}
	return briefing.New(briefing.Options{
		Source:    onePolicy{},
		Anonymous: true,
		Shared: func() (sessionstate.Store, error) {
			if how == "closed" {
				return nil, errors.New("read-only file system")
			}
			return shared, nil
		},
		Log: slog.New(warnings{s}),
	}).Layer()
}

// faulty is a store with a fault.
type faulty struct {
	sessionstate.Store
	how   string
	taken atomic.Int64
}

func (f *faulty) Take(ctx context.Context, key string) (bool, error) {
	n := f.taken.Add(1)
	switch {
	case f.how == "failing":
		return false, errors.New("disk I/O error")
	case f.how == "stuck":
		<-time.After(time.Minute) // as a file on a network that is gone
	case f.how == "slow":
		<-time.After(100 * time.Millisecond)
	case f.how == "spent", f.how == "held" && n == 1:
		return false, nil
	}
	return f.Store.Take(ctx, key)
}

func (f *faulty) Settle(ctx context.Context, key string, o sessionstate.Outcome) error {
	if f.how == "full" {
		return errors.New("database or disk is full")
	}
	return f.Store.Settle(ctx, key, o)
}

type onePolicy struct{}

func (onePolicy) Effective(context.Context, policy.Query) (policy.Effective, error) {
	return policy.Effective{Objectives: []string{"Ship"}}, nil
}

// warnings makes a note of each log message, with the error in it.
type warnings struct{ s *proxytest.Session }

func (warnings) Enabled(context.Context, slog.Level) bool { return true }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += ": " + a.Value.String(); return true })
	w.s.Note("%s", text)
	return nil
}

func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w warnings) WithGroup(string) slog.Handler      { return w }
