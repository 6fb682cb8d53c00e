// Package limit bounds what the fronts of a process hold at once.
package limit

import (
	"sync"
	"sync/atomic"
)

// Limits bound what the fronts of a process hold at once. Make one with Default and change its
// fields before it is used.
type Limits struct {
	Sessions     int   // open sessions; more are refused with 503
	PerPrincipal int   // of them of one principal that is known; more are refused with 429
	InFlight     int   // requests being served, a GET not counted; more are refused with 503
	Body         int64 // bytes of one body; more are refused with 413
	Bodies       int64 // bytes of all large bodies that are being read; more are refused with 503

	inFlight atomic.Int64

	mu       sync.Mutex
	sessions int
	of       map[string]int
	bytes    int64
}

// Default returns the limits that hold when nobody says otherwise.
func Default() *Limits {
	return &Limits{Sessions: 1000, PerPrincipal: 50, InFlight: 10_000, Body: 8 << 20, Bodies: 256 << 20}
}

// PerSession is how many requests one session may have in flight: no session takes the
// places of all others.
func (l *Limits) PerSession() int { return max(l.InFlight/10, min(l.InFlight, 64)) }

// A Verdict says what a limit makes of a request.
type Verdict uint8

// The verdicts.
const (
	Admitted Verdict = iota
	TooManyOfPrincipal
	TooManyInAll
)

// Open takes a place for a session of the principal.
func (l *Limits) Open(principal string) Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case principal != "" && l.of[principal] >= l.PerPrincipal:
		return TooManyOfPrincipal
	case l.sessions >= l.Sessions:
		return TooManyInAll
	}
	if l.of == nil {
		l.of = map[string]int{}
	}
	l.of[principal]++
	l.sessions++
	return Admitted
}

// Close gives the place of a session back.
func (l *Limits) Close(principal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions--
	if l.of[principal]--; l.of[principal] == 0 {
		delete(l.of, principal)
	}
}

// Begin takes a place for a request.
func (l *Limits) Begin() bool {
	if l.inFlight.Add(1) <= int64(l.InFlight) {
		return true
	}
	l.Finish()
	return false
}

// Finish gives the place of a request back.
func (l *Limits) Finish() { l.inFlight.Add(-1) }

// TakeBytes takes n of the bytes of large bodies. It reports false if there are not so many.
func (l *Limits) TakeBytes(n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes+n > l.Bodies {
		return false
	}
	l.bytes += n
	return true
}

// GiveBytes gives bytes back.
func (l *Limits) GiveBytes(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes -= n
}

// Counts returns how many sessions are open and how many requests are being served.
func (l *Limits) Counts() (sessions, inFlight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sessions, int(l.inFlight.Load())
}
