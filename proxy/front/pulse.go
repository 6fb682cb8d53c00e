package front

import (
	"sync"
	"time"
)

// A pulse reminds the streams of a front that have been silent. A timer for each request
// would cost more than the rest of the wait: most are answered long before it is due.
type pulse struct {
	mu      sync.Mutex
	first   *stream // of a list
	beating bool
}

// beatTime is the time between two looks at the streams, and so how late a reminder is.
const beatTime = time.Second

// add has a stream reminded, for the first time after quickTime.
func (p *pulse) add(t *stream) {
	due := time.Now().Add(quickTime)
	t.mu.Lock()
	t.due = due
	t.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.next = p.first; t.next != nil {
		t.next.before = t
	}
	p.first = t
	if !p.beating {
		p.beating = true
		time.AfterFunc(beatTime, p.beat)
	}
}

func (p *pulse) remove(t *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.next != nil {
		t.next.before = t.before
	}
	if t.before != nil {
		t.before.next = t.next
	} else {
		p.first = t.next
	}
	t.next, t.before = nil, nil
}

// beat looks at all streams, and does so again as long as there are any.
func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for t := p.first; t != nil; t = t.next {
		t.remind(now)
	}
	if p.beating = p.first != nil; p.beating {
		time.AfterFunc(beatTime, p.beat)
	}
}
