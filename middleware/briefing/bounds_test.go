package briefing

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/sessionstate"
)

// slowSource answers when gate is closed, with the path of the workspace as the objective.
type slowSource struct {
	gate                 chan struct{}
	running, most, asked atomic.Int64
}

func (s *slowSource) Effective(_ context.Context, q policy.Query) (policy.Effective, error) {
	s.asked.Add(1)
	n := s.running.Add(1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	<-s.gate
	s.running.Add(-1)
	return policy.Effective{Objectives: []string{q.WorkspacePath}}, nil
}

func sessionOf(key, workspace string) *sessionstate.Context {
	return &sessionstate.Context{
		Session:   sessionstate.Fact{Value: key, Source: sessionstate.RequestMeta},
		Workspace: sessionstate.Fact{Value: workspace, Source: sessionstate.RequestMeta},
	}
}

// Of a thousand conversations that begin at once, eight are looked up at a time, some wait,
// and the others have no briefing until they call again.
func TestLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &slowSource{gate: make(chan struct{})}
		c := Compile(Options{Source: source, Anonymous: true}).Connect(ConnOptions{})
		open := func() (sessions, without int) {
			for i := range 1007 {
				if c.open(sessionOf(fmt.Sprint("conversation ", i), "w"), "") == nil {
					without++
				} else {
					sessions++
				}
			}
			synctest.Wait()
			return sessions, without
		}
		if sessions, without := open(); sessions != maxWaiting || without != 1007-maxWaiting || source.running.Load() != maxLookups {
			t.Errorf("%d are looked up or wait, %d go without, and the source is asked %d times at once", sessions, without, source.running.Load())
		}
		close(source.gate)
		synctest.Wait()
		for range 3 {
			open()
		}
		if sessions, _ := open(); sessions != 1007 {
			t.Errorf("%d of 1007 sessions have a briefing in the end", sessions)
		}
		if source.most.Load() != maxLookups || source.asked.Load() != 1007 {
			t.Errorf("the source was asked %d times, %d at once; want 1007 and %d", source.asked.Load(), source.most.Load(), maxLookups)
		}
	})
}

// The requests of a session alternate between tokens that differ in permissions. The source is asked
// once for each scope and user.
func TestLookupsOfTokens(t *testing.T) {
	gate := make(chan struct{})
	close(gate)
	source := &slowSource{gate: gate}
	c := Compile(Options{Source: source}).Connect(ConnOptions{})
	ask := func(p *sessionstate.Principal) {
		view := sessionOf("s", "w")
		view.Principal = p
		<-c.open(view, "").ready
	}
	for i, step := range []struct{ user, scope string }{{"ada", "acme"}, {"ada", "globex"}, {"eve", "globex"}} {
		for range 10 {
			ask(&sessionstate.Principal{User: step.user, Scope: step.scope})
			ask(&sessionstate.Principal{User: step.user, Scope: step.scope, Permissions: []string{"write"}})
		}
		if got := source.asked.Load(); got != int64(i+1) {
			t.Errorf("for %d owners of tokens the source was asked %d times", i+1, got)
		}
	}
}

// After a reload the source is asked again for the sessions that have had no briefing.
func TestLookupsAfterReload(t *testing.T) {
	gate := make(chan struct{})
	close(gate)
	source := &slowSource{gate: gate}
	before := Compile(Options{Source: source, Anonymous: true})
	c := before.Connect(ConnOptions{})
	briefed, other := sessionOf("briefed", "w"), sessionOf("other", "w")
	for _, view := range []*sessionstate.Context{briefed, other} {
		<-c.open(view, "").ready
	}
	before.sessions.byKey["briefed"].done.Store(true)
	for range 2 {
		before = Compile(Options{Source: source, Anonymous: true, Before: before})
		c = before.Connect(ConnOptions{})
		if c.open(briefed, "") != nil {
			t.Error("a briefed session may be briefed again")
		}
		<-c.open(other, "").ready
	}
	if got := source.asked.Load(); got != 4 {
		t.Errorf("the source was asked %d times, want 2, and 1 after each reload", got)
	}
}

// Many conversations with different briefings of 16 KiB stay within the bounds of memory. If they
// share one text, it is held once.
func TestSessionsAreBounded(t *testing.T) {
	gate := make(chan struct{})
	close(gate)
	tests := []struct {
		name      string
		workspace func(i int) string
		sessions  int
		most      int // that the heap grows
	}{
		{"different texts", func(i int) string { return fmt.Sprint(i, strings.Repeat("x", 16<<10)) }, 1_300, 2 * maxSessionBytes},
		{"one text", func(int) string { return strings.Repeat("x", 16<<10) }, 500, maxSessionBytes / 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := Compile(Options{Source: &slowSource{gate: gate}, Anonymous: true}).Connect(ConnOptions{})
			before := testkit.Heap()
			for i := range test.sessions {
				view := sessionOf(fmt.Sprint("conversation ", i), test.workspace(i))
				s := c.open(view, "")
				<-s.ready
				s.workspace, view = "", nil // capture bounds it
			}
			all := &c.shared.sessions
			all.mu.Lock()
			defer all.mu.Unlock()
			kept := 0
			for key := range all.byKey {
				kept += len(key)
			}
			for text := range all.texts {
				kept += len(text)
			}
			if all.bytes > maxSessionBytes+20<<10 || kept > all.bytes || len(all.byKey) > maxSessions {
				t.Errorf("%d sessions are kept with %d bytes of text, counted as %d", len(all.byKey), kept, all.bytes)
			}
			if grown := testkit.Heap() - before; grown > test.most {
				t.Errorf("the heap has grown by %d bytes, want at most %d", grown, test.most)
			}
		})
	}
}

// sweptTurns counts the calls of Sweep.
type sweptTurns struct {
	sessionstate.Turns
	swept atomic.Int64
}

func (s *sweptTurns) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	s.swept.Add(1)
	return s.Turns.Sweep(ctx, idle)
}

// Many new sessions do not cause many sweeps: nobody gets a turn while one runs.
// The turns of each tenant are swept, whatever the others do.
func TestSweepsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := &sweptTurns{Turns: sessionstate.NewMemoryTurns(nil)}
		c := Compile(Options{UserTurns: func(string) (sessionstate.Turns, error) { return turns, nil }}).Connect(ConnOptions{})
		for round := range int64(3) {
			for i := range 100 {
				view := sessionOf(fmt.Sprint("conversation ", i), "w")
				view.Principal = &sessionstate.Principal{Tenant: []string{"acme", "other"}[i/50]}
				c.turnOf(view, &session{}, "").sweep()
			}
			synctest.Wait()
			if n := turns.swept.Load(); n != 2*(round+1) {
				t.Errorf("swept two tenants %d times after %d minutes", n, round)
			}
			time.Sleep(sweepPause)
		}
	})
}
