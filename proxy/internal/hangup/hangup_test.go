package hangup

import (
	"testing"
	"testing/synctest"
	"time"
)

// A schedule is a session whose events happen at fixed times. A zero time means never.
type schedule struct {
	began    time.Time
	answered time.Duration // when the last call is answered
	closes   time.Duration // when the client closes the end from which it reads
	unknown  bool          // the system cannot report that
	moves    time.Duration // the upstream reads until then
	held     time.Duration // a frame is suspended until then
	idle     bool          // no call is in flight
	slow     time.Duration // the client's messages are read until then
	written  time.Duration // when the client has room for the answers
}

func (p *schedule) since() time.Duration { return time.Since(p.began) }

func (p *schedule) Unanswered() bool { return !p.idle && (p.answered == 0 || p.since() < p.answered) }
func (p *schedule) Holds() bool      { return p.since() < p.held }
func (p *schedule) Blocked() bool    { return p.since() >= p.slow }
func (p *schedule) Moved() int64     { return 1 + int64(min(p.since(), p.moves)) }

func (p *schedule) Written() <-chan struct{} {
	if left := p.written - p.since(); left > 0 {
		return at(left)
	}
	c := make(chan struct{})
	close(c)
	return c
}

func (p *schedule) Settled() <-chan struct{} {
	if p.answered == 0 {
		return make(chan struct{})
	}
	return at(p.answered - p.since())
}

// reads returns the function that reports whether the client still reads, nil if the system
// cannot tell.
func (p *schedule) reads() func() bool {
	if p.unknown {
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
		name     string
		schedule schedule
		over     time.Duration
		want     time.Duration
	}{
		{"nothing is in flight", schedule{idle: true}, 0, 0},
		{"the client has hung up", schedule{closes: -1}, 0, 0},
		{"the last call is answered between two checks", schedule{answered: 3100 * ms}, 0, 3100 * ms},
		{"the client hangs up", schedule{closes: 10100 * ms}, 0, 10250 * ms},
		{"no answer comes", schedule{}, 0, time.Hour},
		{"no answer comes, and the system cannot tell", schedule{unknown: true}, 0, time.Minute},
		{"an answer comes, and the system cannot tell", schedule{unknown: true, answered: 50 * time.Second}, 0, 50 * time.Second},
		{"the session must end", schedule{}, 2100 * ms, 2100 * ms},
		{"the client reads the last answer late", schedule{answered: 1000 * ms, written: 9100 * ms}, 0, 9100 * ms},
		{"the client hangs up and has not read it", schedule{answered: 1000 * ms, written: time.Hour, closes: 5000 * ms}, 0, 5000 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := test.schedule
				p.began = time.Now()
				AwaitAnswers(&p, p.reads(), at(test.over))
				if got := p.since(); got != test.want {
					t.Errorf("AwaitAnswers returned after %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestAwaitReader(t *testing.T) {
	for _, test := range []struct {
		name                         string
		blocked, closes, ended, over time.Duration
		want                         time.Duration
		pauses                       bool // blocked is false at the times of single checks
	}{
		{"the server ends", 0, 0, 20 * ms, 0, 20 * ms, false},
		{"the server does not end", 0, 0, 0, 0, 50 * ms, false},
		{"the client reads late", 5000 * ms, 0, 5010 * ms, 0, 5010 * ms, false},
		{"the client reads late, and the server does not end", 5000 * ms, 0, 0, 0, 5100 * ms, false},
		{"the client reads slowly", 5000 * ms, 0, 5010 * ms, 0, 5010 * ms, true},
		{"the client hangs up", time.Hour, 2000 * ms, 0, 0, 2060 * ms, false},
		{"the session must end", time.Hour, 0, 0, 900 * ms, 900 * ms, false},
		{"the client never reads", 2 * time.Hour, 0, 0, 0, time.Hour + 60*ms, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := schedule{began: time.Now(), closes: test.closes}
				checks := 0
				blocked := func() bool {
					checks++
					return p.since() < test.blocked && !(test.pauses && checks%2 == 1)
				}
				AwaitReader(blocked, p.reads(), at(test.ended), at(test.over))
				if got := p.since(); got != test.want {
					t.Errorf("AwaitReader returned after %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestAwaitStall(t *testing.T) {
	for _, test := range []struct {
		name               string
		schedule           schedule
		gone, over, ending time.Duration
		stall              bool
		want               time.Duration
	}{
		{"nobody reads", schedule{idle: true}, 1000 * ms, 0, 0, true, 2500 * ms},
		{"the upstream reads for a while", schedule{idle: true, moves: 4000 * ms}, 1000 * ms, 0, 0, true, 5500 * ms},
		{"a frame is suspended for a while", schedule{idle: true, held: 5000 * ms}, 1000 * ms, 0, 0, true, 7000 * ms},
		{"the machine is busy for a while", schedule{idle: true, slow: 5000 * ms}, 1000 * ms, 0, 0, true, 7000 * ms},
		{"the client waits for an answer, and hangs up", schedule{closes: 5000 * ms}, 1000 * ms, 0, 0, true, 5500 * ms},
		{"the client waits for an answer for ever", schedule{}, 1000 * ms, 0, 0, true, time.Hour + 1000*ms},
		{"the system cannot tell", schedule{unknown: true}, 1000 * ms, 0, 0, true, time.Minute + 1000*ms},
		{"the client has its answer", schedule{answered: 3000 * ms}, 1000 * ms, 0, 0, true, 4000 * ms},
		{"the session ends before the client hangs up", schedule{}, 5000 * ms, 0, 1000 * ms, false, 1000 * ms},
		{"the session ends afterwards", schedule{}, 1000 * ms, 0, 2000 * ms, false, 2000 * ms},
		{"all messages have reached the upstream", schedule{}, 1000 * ms, 2000 * ms, 0, false, 2000 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := test.schedule
				p.began = time.Now()
				stall := AwaitStall(&p, at(test.gone), p.reads(), at(test.over), at(test.ending))
				if got := p.since(); got != test.want || stall != test.stall {
					t.Errorf("AwaitStall returned after %v: %t, want %t after %v", got, stall, test.stall, test.want)
				}
			})
		})
	}
}
