// Package statetest is the test suite for implementations of [sessionstate.Turns]. The test of
// an implementation calls [Run] with a function that makes an empty one:
//
//	func TestTurns(t *testing.T) {
//		statetest.Run(t, func(t *testing.T, now func() time.Time) sessionstate.Turns {
//			return mystore.New(t.TempDir(), now)
//		})
//	}
package statetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
)

// A New makes empty Turns whose only clock is now. It releases their resources with t.Cleanup.
type New func(t *testing.T, now func() time.Time) sessionstate.Turns

// Run runs the suite. Each part gets new Turns.
func Run(t *testing.T, newTurns New) {
	parts := []struct {
		name string
		run  func(*testing.T, *subject)
	}{
		{"the first taker gets the turn", firstTaker},
		{"of many takers one gets the turn", manyTakers},
		{"keys are independent", independentKeys},
		{"an open turn is free again", openTurn},
		{"a seen turn is closed", seenTurn},
		{"an unseen turn is free again and counted", unseenTurn},
		{"settling without holding counts", settleUnheld},
		{"a turn that is not settled is free after its lease", leaseExpires},
		{"a late holder does not reopen a closed turn", lateHolder},
		{"a sweep removes idle keys", sweepIdle},
		{"a sweep keeps used and held keys", sweepKeeps},
		{"an idle key is free", unusedKey},
		{"keys are any text", anyKey},
		{"invalid arguments are errors", mistakes},
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			clock := &clock{}
			part.run(t, &subject{t: t, clock: clock, turns: newTurns(t, clock.Now)})
		})
	}
}

// clock is a clock that only advance moves.
type clock struct{ passed atomic.Int64 }

// Now returns the time of the clock.
func (c *clock) Now() time.Time {
	return time.Date(2026, 7, 28, 9, 0, 0, 0, time.UTC).Add(time.Duration(c.passed.Load()))
}

func (c *clock) advance(d time.Duration) { c.passed.Add(int64(d)) }

// subject has the Turns under test and their clock.
type subject struct {
	t     *testing.T
	clock *clock
	turns sessionstate.Turns
}

// take calls Take and fails the test if the result is not want.
func (s *subject) take(key string, want bool) {
	s.t.Helper()
	got, _, err := s.turns.Take(s.t.Context(), key, 0)
	if err != nil || got != want {
		s.t.Fatalf("Take(%.40q) = %v, %v; want %v", key, got, err, want)
	}
}

// takeUnseen calls Take, and fails the test if the result is not want and wantUnseen.
func (s *subject) takeUnseen(key string, idle time.Duration, want bool, wantUnseen int) {
	s.t.Helper()
	got, unseen, err := s.turns.Take(s.t.Context(), key, idle)
	if err != nil || got != want || unseen != wantUnseen {
		s.t.Fatalf("Take(%q, %v) = %v, %d, %v; want %v, %d", key, idle, got, unseen, err, want, wantUnseen)
	}
}

func (s *subject) settle(key string, o sessionstate.Outcome) {
	s.t.Helper()
	if err := s.turns.Settle(s.t.Context(), key, o); err != nil {
		s.t.Fatalf("Settle(%.40q, %d): %v", key, o, err)
	}
}

func (s *subject) sweep(idle time.Duration, want int) {
	s.t.Helper()
	got, err := s.turns.Sweep(s.t.Context(), idle)
	if err != nil || got != want {
		s.t.Fatalf("Sweep(%v) = %d, %v; want %d", idle, got, err, want)
	}
}

// unusedKey checks that an idle key is free, swept or not, unless it is held.
func unusedKey(_ *testing.T, s *subject) {
	s.takeUnseen("a", time.Hour, true, 0)
	s.settle("a", sessionstate.Unseen)
	s.clock.advance(59 * time.Minute)
	s.takeUnseen("a", time.Hour, true, 1)
	s.settle("a", sessionstate.Seen)
	for range 2 {
		s.clock.advance(59 * time.Minute)
		s.takeUnseen("a", time.Hour, false, 1)
	}
	s.clock.advance(time.Hour)
	s.takeUnseen("a", time.Hour, true, 0)
	s.clock.advance(30 * time.Second)
	s.takeUnseen("a", time.Second, false, 0)
	s.settle("a", sessionstate.Open)
	s.takeUnseen("a", time.Hour, true, 0) // it is no longer closed
}

func firstTaker(_ *testing.T, s *subject) {
	s.take("a", true)
	s.take("a", false)
}

func manyTakers(t *testing.T, s *subject) {
	const takers = 100
	var got, failed atomic.Int64
	round := func() {
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range takers {
			wg.Go(func() {
				<-start
				ok, _, err := s.turns.Take(t.Context(), "a", 0)
				if err != nil {
					failed.Add(1)
				}
				if ok {
					got.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
	}
	for i := range 3 {
		round()
		if got.Load() != int64(i+1) || failed.Load() > 0 {
			t.Fatalf("round %d: %d takers got the turn, %d failed; want one and none", i+1, got.Load()-int64(i), failed.Load())
		}
		s.settle("a", sessionstate.Open)
	}
}

func independentKeys(_ *testing.T, s *subject) {
	s.take("a", true)
	s.take("b", true)
	s.settle("a", sessionstate.Seen)
	s.take("b", false)
	s.settle("b", sessionstate.Open)
	s.take("b", true)
	s.take("a", false)
}

func openTurn(_ *testing.T, s *subject) {
	for range 10 {
		s.take("a", true)
		s.settle("a", sessionstate.Open)
	}
	s.take("a", true)
}

func seenTurn(_ *testing.T, s *subject) {
	s.take("a", true)
	s.settle("a", sessionstate.Seen)
	s.take("a", false)
	s.clock.advance(10 * sessionstate.Lease)
	s.take("a", false)
}

func unseenTurn(_ *testing.T, s *subject) {
	for i := range 5 {
		s.takeUnseen("a", 0, true, i)
		s.settle("a", sessionstate.Open) // is not counted
		s.takeUnseen("a", 0, true, i)
		s.take("a", false)
		s.settle("a", sessionstate.Unseen)
	}
	s.takeUnseen("a", 0, true, 5)
	s.takeUnseen("a", 0, false, 5)
	s.settle("a", sessionstate.Seen)
	s.take("a", false)
}

func settleUnheld(_ *testing.T, s *subject) {
	s.settle("a", sessionstate.Open)
	s.take("a", true)
	s.settle("b", sessionstate.Seen)
	s.take("b", false)
	s.settle("c", sessionstate.Unseen)
	s.take("c", true)
}

func leaseExpires(_ *testing.T, s *subject) {
	s.take("a", true)
	s.clock.advance(sessionstate.Lease - time.Second)
	s.take("a", false)
	s.clock.advance(time.Second)
	s.take("a", true)
	s.take("a", false)
	s.clock.advance(sessionstate.Lease)
	s.take("a", true)
}

func lateHolder(_ *testing.T, s *subject) {
	s.take("a", true)
	s.clock.advance(2 * sessionstate.Lease)
	s.take("a", true)
	s.settle("a", sessionstate.Seen) // by one of the two holders
	s.settle("a", sessionstate.Open) // by the other
	s.take("a", false)
	s.settle("a", sessionstate.Unseen)
	s.take("a", false)
}

func sweepIdle(_ *testing.T, s *subject) {
	s.sweep(time.Hour, 0)
	for _, key := range []string{"a", "b", "c"} {
		s.take(key, true)
		s.settle(key, sessionstate.Seen)
	}
	s.clock.advance(time.Hour - time.Second)
	s.sweep(time.Hour, 0)
	s.take("a", false)
	s.clock.advance(time.Second)
	s.sweep(time.Hour, 2)
	s.sweep(time.Hour, 0)
	s.take("a", false)
	s.take("b", true)
}

func sweepKeeps(_ *testing.T, s *subject) {
	s.take("held", true)
	s.take("refused", true)
	s.settle("refused", sessionstate.Seen)
	s.take("unseen", true)
	s.settle("unseen", sessionstate.Unseen)
	s.sweep(0, 2)
	s.take("held", false)

	s.take("refused", true)
	s.settle("refused", sessionstate.Seen)
	for range 5 {
		s.clock.advance(40 * time.Minute)
		s.take("refused", false)
		s.settle("held", sessionstate.Seen)
		s.sweep(time.Hour, 0)
	}
	s.take("refused", false)
	s.take("held", false)
}

func anyKey(_ *testing.T, s *subject) {
	long := strings.Repeat("k", 1<<20)
	keys := []string{
		" ", "a ", "A", "a", "a\x00b", "a\nb", "'; DROP TABLE turns; --", "../../etc/passwd", "%s", "\xff\xfe", "ключ",
		long + "1", long + "2",
	}
	for _, key := range keys {
		s.take(key, true)
	}
	for _, key := range keys {
		s.take(key, false)
		s.settle(key, sessionstate.Seen)
		s.take(key, false)
	}
}

func mistakes(t *testing.T, s *subject) {
	if ok, _, err := s.turns.Take(t.Context(), "", 0); ok || !errors.Is(err, sessionstate.ErrNoKey) {
		t.Errorf("Take of the empty key = %v, %v; want ErrNoKey", ok, err)
	}
	if err := s.turns.Settle(t.Context(), "", sessionstate.Seen); !errors.Is(err, sessionstate.ErrNoKey) {
		t.Errorf("Settle of the empty key = %v; want ErrNoKey", err)
	}
	s.take("a", true)
	if err := s.turns.Settle(t.Context(), "a", sessionstate.Unseen+1); err == nil {
		t.Error("Settle accepts an unknown outcome")
	}
	s.take("a", false)

	over, cancel := context.WithCancel(t.Context())
	cancel()
	if ok, _, err := s.turns.Take(over, "b", 0); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("Take with a cancelled context = %v, %v; want context.Canceled", ok, err)
	}
	s.take("b", true)
	if n, err := s.turns.Sweep(over, 0); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Sweep with a cancelled context = %v, %v; want context.Canceled", n, err)
	}
}
