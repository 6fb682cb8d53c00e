package outbox

import (
	"sync"
	"time"
)

// A Pulse reminds the streams that are being read of their silence. A timer for each of them would
// cost more than the rest of the wait, and most are answered long before it fires. The zero value is
// ready to use.
type Pulse struct {
	mu      sync.Mutex // the mutex of a Stream may be locked while it is held, not the other way round
	first   *Stream    // of a list in the streams themselves, so that to join needs no memory
	beating bool       // a timer is running
}

// Join adds a stream. Its first comment is due after quickTime. Call Leave once after it.
func (p *Pulse) Join(t *Stream) {
	t.begin()
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

// Leave removes a stream.
func (p *Pulse) Leave(t *Stream) {
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

// beat reminds all streams, and starts the next timer if there are any.
func (p *Pulse) beat() {
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
