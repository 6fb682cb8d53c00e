package sessionstate_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
)

// table returns Sessions with a clock that only advance moves.
func table(limit int) (sessions *sessionstate.Sessions, advance func(time.Duration)) {
	now := time.Date(2026, 7, 28, 9, 0, 0, 0, time.UTC)
	sessions = sessionstate.NewSessions(sessionstate.SessionsOptions{
		TTL: time.Hour, Max: limit, Now: func() time.Time { return now },
	})
	return sessions, func(d time.Duration) { now = now.Add(d) }
}

// name sets the workspace of a session, to distinguish it from a new one.
func name(s *sessionstate.Session, workspace string) {
	s.Update(func(c *sessionstate.Context) *sessionstate.Context {
		return c.WithWorkspace(sessionstate.Fact{Value: workspace, Source: sessionstate.Operator})
	})
}

func TestSessionsGet(t *testing.T) {
	sessions, advance := table(10)
	a, b := sessions.Get("a"), sessions.Get("b")
	if a == b || sessions.Get("a") != a {
		t.Fatal("Get confuses keys or forgets a session")
	}
	if a.Key() != "a" || a.Context() == nil || *a.Context() != (sessionstate.Context{}) {
		t.Errorf("a new session has the key %q and the context %+v", a.Key(), a.Context())
	}
	name(a, "/a")
	if got := b.Context().Workspace.Value; got != "" {
		t.Errorf("session b has %q from session a", got)
	}

	advance(time.Hour - 1)
	if sessions.Get("a") != a {
		t.Error("a session expired too early")
	}
	advance(time.Hour - 1)
	if sessions.Get("a") != a {
		t.Error("use did not keep a session alive")
	}
	if sessions.Len() != 1 {
		t.Errorf("%d sessions, want b to have expired", sessions.Len())
	}
	advance(time.Hour)
	fresh := sessions.Get("a")
	if fresh == a || fresh.Context().Workspace.Value != "" {
		t.Error("Get returned an expired session")
	}
}

func TestSessionsAreBounded(t *testing.T) {
	sessions, advance := table(3)
	first := sessions.Get("0")
	for i := range 100 {
		advance(time.Second)
		sessions.Get(fmt.Sprint(i))
		if sessions.Get("0") != first {
			t.Fatalf("after %d: a session in use was ended, not the one idle longest", i)
		}
	}
	if sessions.Len() != 3 {
		t.Errorf("%d sessions, want 3", sessions.Len())
	}
}

// A client that sends a new conversation and a long workspace each time does not grow the table:
// the sessions idle longest are removed, and those in use stay.
func TestSessionsAreBoundedInBytes(t *testing.T) {
	const limit = 1 << 20
	sessions := sessionstate.NewSessions(sessionstate.SessionsOptions{MaxBytes: limit})
	first := sessions.Get("first")
	for i := range 5000 {
		name(sessions.Get(fmt.Sprint(i)), strings.Repeat("w", 4096)+fmt.Sprint(i))
		if sessions.Get("first") != first {
			t.Fatalf("after %d: a session in use was ended, not the one idle longest", i)
		}
	}
	if n := sessions.Len(); n < 100 || n > limit/4096 {
		t.Errorf("%d sessions of at least 4 KiB in 1 MiB", n)
	}
	sessions.Get("principal").Update(func(c *sessionstate.Context) *sessionstate.Context {
		return c.WithPrincipal(&sessionstate.Principal{User: strings.Repeat("u", limit)})
	})
	if sessions.Get("principal"); sessions.Len() != 1 {
		t.Errorf("%d other sessions next to one that needs all memory", sessions.Len()-1)
	}
}

func TestSessionsOddKeys(t *testing.T) {
	sessions, _ := table(10)
	if a, b := sessions.Get(""), sessions.Get(""); a == b || sessions.Len() != 0 {
		t.Error("two callers with the empty key share a session")
	}
	long := strings.Repeat("k", 1<<20)
	a, b := sessions.Get(long+"a"), sessions.Get(long+"b")
	if a == b || sessions.Get(long+"a") != a {
		t.Error("long keys are confused")
	}
	if len(a.Key()) > 256 {
		t.Errorf("a key of %d bytes is stored", len(a.Key()))
	}
}

func TestSessionUpdate(t *testing.T) {
	sessions := sessionstate.NewSessions(sessionstate.SessionsOptions{})
	s := sessions.Get("a")
	name(s, "/a")
	before := s.Context()
	s.Update(func(*sessionstate.Context) *sessionstate.Context { return nil })
	if s.Context() != before {
		t.Error("an update to nil changed the context")
	}

	// No change of many writers is lost, and readers see consistent snapshots.
	const writers = 50
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			s.Update(func(c *sessionstate.Context) *sessionstate.Context {
				return c.With(func(c *sessionstate.Context) { c.Protocol += "x"; c.Session.Value += "x" })
			})
		})
		wg.Go(func() {
			if c := s.Context(); c.Protocol != c.Session.Value {
				t.Errorf("an inconsistent snapshot: %q and %q", c.Protocol, c.Session.Value)
			}
			sessions.Get("a")
		})
	}
	wg.Wait()
	if got := s.Context().Protocol; got != strings.Repeat("x", writers) {
		t.Errorf("%d of %d updates", len(got), writers)
	}
	if before.Protocol != "" {
		t.Error("an old snapshot changed")
	}
}

func BenchmarkSessionsGet(b *testing.B) {
	sessions := sessionstate.NewSessions(sessionstate.SessionsOptions{})
	for i := range sessionstate.DefaultMax {
		sessions.Get(fmt.Sprint(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		sessions.Get("5000")
	}
}
