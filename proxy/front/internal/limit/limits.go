// Package limit bounds the sessions, requests and bytes that the fronts of a process hold at once.
//
// The caller counts everything before it takes it, and gives it back afterwards. Unless the total is small, a known
// principal may take only a part of each total, so that one user cannot shut the others out. Without credentials all
// clients are one unknown principal, and only the total counts.
package limit

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Limits are the limits of the fronts of a process. Make them with Default, and change the
// fields before the first use.
type Limits struct {
	Sessions     int   // open sessions; more are refused with 503
	PerPrincipal int   // open sessions of one known principal; more are refused with 429
	InFlight     int   // requests being served, except GETs, half of them of one known principal; more are refused with 503
	Body         int64 // bytes of one body; more are refused with 413
	Bodies       int64 // bytes of all large bodies that are being read; more are refused with 503

	inFlight atomic.Int64 // without mu: a front without credentials needs no other count for a request

	mu       sync.Mutex // guards the fields below; nothing else is locked while it is held
	sessions counter
	requests counter // of known principals
	bytes    counter
}

// A counter counts something, in all and for each principal.
type counter struct {
	all int64
	of  map[string]int64
}

// add adds n, which may be negative.
func (c *counter) add(principal string, n int64) {
	if c.of == nil {
		c.of = map[string]int64{}
	}
	c.all += n
	if c.of[principal] += n; c.of[principal] == 0 {
		delete(c.of, principal)
	}
}

// Default returns the default limits.
func Default() *Limits {
	return &Limits{Sessions: 1000, PerPrincipal: 50, InFlight: 10_000, Body: 8 << 20, Bodies: 256 << 20}
}

// PerSession returns how many requests one session may have in flight, so that no session
// uses up InFlight.
func (l *Limits) PerSession() int { return max(l.InFlight/10, min(l.InFlight, 64)) }

var (
	// ErrPrincipalFull is returned by Open for a principal that has too many sessions.
	ErrPrincipalFull = errors.New("one principal has as many sessions as serve.limits.per_principal allows")
	// ErrFull is returned by Open if there are too many sessions in all.
	ErrFull = errors.New("as many sessions are open as serve.limits.sessions allows")

	errRequests = errors.New("as many requests are being served as serve.limits.in_flight allows")
	errHalf     = errors.New("one principal has half of the requests that serve.limits.in_flight allows")
)

// Open counts a session of the principal, unless that exceeds a limit. An empty principal is
// unknown.
func (l *Limits) Open(principal string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case principal != "" && l.sessions.of[principal] >= int64(l.PerPrincipal):
		return ErrPrincipalFull
	case l.sessions.all >= int64(l.Sessions):
		return ErrFull
	}
	l.sessions.add(principal, 1)
	return nil
}

// Close ends the session of an Open that returned nil.
func (l *Limits) Close(principal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions.add(principal, -1)
}

// Begin counts a request of a principal. It returns an error, and counts nothing, if that would exceed a
// limit. One known principal may have half of the requests, so that others are served too, but at least
// those of one session.
func (l *Limits) Begin(principal string) error {
	if l.inFlight.Add(1) > int64(l.InFlight) {
		l.inFlight.Add(-1)
		return errRequests
	}
	if principal == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests.of[principal] >= int64(max(l.InFlight/2, l.PerSession())) {
		l.inFlight.Add(-1)
		return fmt.Errorf("%w: %s", errHalf, principal)
	}
	l.requests.add(principal, 1)
	return nil
}

// Finish ends the request of a Begin that returned nil.
func (l *Limits) Finish(principal string) {
	l.inFlight.Add(-1)
	if principal == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests.add(principal, -1)
}

// TakeBytes counts n bytes of a large body of a principal. It returns false, and counts nothing, if that
// would exceed the limit. One known principal may have half of the bytes, but at least one body.
func (l *Limits) TakeBytes(principal string, n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes.all+n > l.Bodies || principal != "" && l.bytes.of[principal]+n > max(l.Bodies/2, l.Body+bodyMargin) {
		return false
	}
	l.bytes.add(principal, n)
	return true
}

// bodyMargin is how many bytes of memory a body may take besides its own.
const bodyMargin = 2

// GiveBytes returns n bytes of TakeBytes.
func (l *Limits) GiveBytes(principal string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes.add(principal, -n)
}

// Counts returns the numbers of open sessions and of requests being served.
func (l *Limits) Counts() (sessions, inFlight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.sessions.all), int(l.inFlight.Load())
}
