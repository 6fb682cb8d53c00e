package hangup

import (
	"testing"
	"testing/synctest"
	"time"
)

// A plan is a session whose events happen at fixed times. A zero time means never.
type plan struct {
	began    time.Time
	answered time.Duration // when the last call is answered
	closes   time.Duration // when the client closes the end from which it reads
	blind    bool          // the system cannot report that
	moves    time.Duration // until then the upstream reads
	held     time.Duration // until then a frame is held back
	idle     bool          // no call is in flight
}

func (p *plan) since() time.Duration { return time.Since(p.began) }

func (p *plan) Unanswered() bool { return !p.idle && (p.answered == 0 || p.since() < p.answered) }
func (p *plan) Holds() bool      { return p.since() < p.held }
func (p *plan) Moved() int64     { return 1 + int64(min(p.since(), p.moves)) }

func (p *plan) Settled() <-chan struct{} {
	if p.answered == 0 {
		return make(chan struct{})
	}
	return at(p.answered - p.since())
}

// reads returns the function that reports whether the client still reads, nil if the system
// cannot tell.
func (p *plan) reads() func() bool {
	if p.blind {
		return nil
	}
	return func() bool { return p.closes == 0 || p.since() < p.closes }
}

// at returns a channel that is closed after d, and never if d is 0.
func at(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	if d != 0 {
		time.AfterFunc(d, func() { close(c) })
	}
	return c
}

const ms = time.Millisecond

func TestAwaitAnswers(t *testing.T) {
	for _, test := range []struct {
		name string
		plan plan
		over time.Duration
		want time.Duration
	}{
		{"nothing is in flight", plan{idle: true}, 0, 0},
		{"the client has hung up", plan{closes: -1}, 0, 0},
		{"the last call is answered between two checks", plan{answered: 3100 * ms}, 0, 3100 * ms},
		{"the client hangs up", plan{closes: 10100 * ms}, 0, 10250 * ms},
		{"no answer comes", plan{}, 0, time.Hour},
		{"no answer comes, and the system cannot tell", plan{blind: true}, 0, time.Minute},
		{"an answer comes, and the system cannot tell", plan{blind: true, answered: 50 * time.Second}, 0, 50 * time.Second},
		{"the session must end", plan{}, 2100 * ms, 2100 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := test.plan
				p.began = time.Now()
				AwaitAnswers(&p, p.reads(), at(test.over))
				if got := p.since(); got != test.want {
					t.Errorf("it returned after %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestAwaitStall(t *testing.T) {
	for _, test := range []struct {
		name               string
		plan               plan
		gone, over, ending time.Duration
		stall              bool
		want               time.Duration
	}{
		{"nobody reads", plan{idle: true}, 1000 * ms, 0, 0, true, 2500 * ms},
		{"the upstream reads for a while", plan{idle: true, moves: 4000 * ms}, 1000 * ms, 0, 0, true, 5500 * ms},
		{"a frame is held back for a while", plan{idle: true, held: 5000 * ms}, 1000 * ms, 0, 0, true, 7000 * ms},
		{"the client waits for an answer, and hangs up", plan{closes: 5000 * ms}, 1000 * ms, 0, 0, true, 5500 * ms},
		{"the client waits for an answer for ever", plan{}, 1000 * ms, 0, 0, true, time.Hour + 1000*ms},
		{"the system cannot tell", plan{blind: true}, 1000 * ms, 0, 0, true, time.Minute + 1000*ms},
		{"the client has its answer", plan{answered: 3000 * ms}, 1000 * ms, 0, 0, true, 4000 * ms},
		{"the session ends before the client hangs up", plan{}, 5000 * ms, 0, 1000 * ms, false, 1000 * ms},
		{"the session ends afterwards", plan{}, 1000 * ms, 0, 2000 * ms, false, 2000 * ms},
		{"all messages have reached the upstream", plan{}, 1000 * ms, 2000 * ms, 0, false, 2000 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := test.plan
				p.began = time.Now()
				stall := AwaitStall(&p, at(test.gone), p.reads(), at(test.over), at(test.ending))
				if got := p.since(); got != test.want || stall != test.stall {
					t.Errorf("after %v it returned %t, want %t after %v", got, stall, test.stall, test.want)
				}
			})
		})
	}
}
