// Package pulse reminds streams that have been silent. A timer for each request would cost more
// than the rest of the wait: most are answered long before it is due.
package pulse

import (
	"sync"
	"time"
)

// A Pulse reminds its members every BeatTime. The zero value is ready.
type Pulse struct {
	mu      sync.Mutex
	first   *Member // of a list
	beating bool
}

// A Member is an element of a Pulse's list, which guards it.
type Member struct {
	next, before *Member
	reminded     Reminded
}

// A Reminded looks at the time. It must not wait.
type Reminded interface{ Remind(now time.Time) }

// BeatTime is the time between two looks at the members, and so how late a reminder is.
const BeatTime = time.Second / 4

// Add has r reminded until m is removed.
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

// Remove ends that.
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

// beat looks at all members, and does so again as long as there are any.
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
