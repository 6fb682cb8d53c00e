package soak

import (
	"sync"
	"time"
)

// A place is a process that is killed and restarted: the server of a client, a front, or the
// remote server. It records when, so that an excused error can be distinguished from a fault. nil
// stands for a process that a client does not use.
type place struct {
	mu     sync.Mutex
	deaths []*death
}

// A death is one kill of a place.
type death struct {
	from, ready time.Time         // ready is zero until the place runs again
	recovered   map[any]time.Time // by client, when it first got an answer from the new process
}

// die records that the place is about to be killed. The caller calls restarted when it runs again.
func (p *place) die() (restarted func()) {
	d := &death{from: time.Now(), recovered: map[any]time.Time{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaths = append(p.deaths, d)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		d.ready = time.Now()
	}
}

// answered records that the place answered a request of a client that was sent at start.
func (p *place) answered(client any, start, end time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.deaths {
		if !d.ready.IsZero() && start.After(d.ready) && d.recovered[client].IsZero() {
			d.recovered[client] = end
		}
	}
}

// excuses reports whether a death can be the cause of an error that a client got for a request of that time.
func (p *place) excuses(client any, start, end time.Time) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.deaths {
		until := d.recovered[client]
		if !end.Before(d.from) && (until.IsZero() || !start.After(until)) {
			return true
		}
	}
	return false
}
