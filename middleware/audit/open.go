package audit

import (
	"bytes"
	"sync"
)

// open are the calls in flight. The zero value is that there are none.
//
// A call is asked for by its id when the client cancels it, and by nothing else, so
// they need no table: putting one in and taking it out again costs no hash.
type open struct {
	mu          sync.Mutex
	first, last *entry // the oldest and the youngest
}

// add puts a call among those in flight.
func (o *open) add(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.before = o.last; o.last != nil {
		o.last.next = e
	} else {
		o.first = e
	}
	o.last = e
}

// remove takes a call out that is over.
func (o *open) remove(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removeLocked(e)
}

func (o *open) removeLocked(e *entry) {
	if e.before != nil {
		e.before.next = e.next
	} else {
		o.first = e.next
	}
	if e.next != nil {
		e.next.before = e.before
	} else {
		o.last = e.before
	}
	e.before, e.next = nil, nil
}

// cancel finishes the oldest call with the id, spelt one way, that has no reply, and
// takes it out. It returns nil if there is none.
func (o *open) cancel(id []byte) *entry {
	return o.finish(resultCancelled, func(e *entry) bool { return bytes.Equal(e.id, id) })
}

// end is cancel for the oldest of all, which will have no reply any more.
func (o *open) end() *entry {
	return o.finish(resultNone, func(*entry) bool { return true })
}

// finish keeps what came of the oldest call that is meant. What is in the list is of
// one call as long as the list is locked; one that has its reply has yet to be taken
// out by whoever gave it.
func (o *open) finish(kind string, meant func(*entry) bool) *entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	for e := o.first; e != nil; e = e.next {
		if meant(e) && e.finish(nil, nil, outcome{kind: kind}) {
			o.removeLocked(e)
			return e
		}
	}
	return nil
}
