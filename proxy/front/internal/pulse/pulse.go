// Package pulse periodically calls the streams that wait for an answer. A timer for each request
// would cost more than the rest of the wait, and most requests are answered long before it fires.
package pulse

import (
	"sync"
	"time"
)

// A Pulse calls its members every BeatTime. The zero value is ready to use.
type Pulse struct {
	mu      sync.Mutex
	first   *Member // of a list
	beating bool    // a timer is running
}

// A Member is an element of a Pulse's list, guarded by the mutex of the Pulse.
type Member struct {
	next, before *Member
	reminded     Reminded
}

// A Reminded is called with the current time. Remind must not block.
type Reminded interface{ Remind(now time.Time) }

// BeatTime is the interval between two calls of a member, and so the most that a call is late.
const BeatTime = time.Second / 4

// Add makes the Pulse call r until m is removed.
func (p *Pulse) Add(m *Member, r Reminded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.reminded = r
	if m.next = p.first; m.next != nil {
		m.next.before = m
	}
	p.first = m
	if !p.beating {
		p.beating = true
		time.AfterFunc(BeatTime, p.beat)
	}
}

// Remove removes m. Call it once after Add.
func (p *Pulse) Remove(m *Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.next != nil {
		m.next.before = m.before
	}
	if m.before != nil {
		m.before.next = m.next
	} else {
		p.first = m.next
	}
	m.next, m.before = nil, nil
}

// beat calls all members, and starts the next timer if there are any.
func (p *Pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for m := p.first; m != nil; m = m.next {
		m.reminded.Remind(now)
	}
	if p.beating = p.first != nil; p.beating {
		time.AfterFunc(BeatTime, p.beat)
	}
}
