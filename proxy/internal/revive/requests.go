package revive

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	// maxRequests bounds how many requests of a server are tracked.
	maxRequests = 10_000
	// maxID is the length in bytes of the longest id of such a request, or of a subscription.
	maxID = 1 << 10
)

// serverRequests tracks the requests of a server that the client has not answered (R15).
// The zero value is empty.
type serverRequests struct {
	some atomic.Bool // there was a request; read without the lock for each reply of the client

	mu   sync.Mutex
	byID map[string]serverRequest // by the id that the client sees
}

type serverRequest struct {
	original []byte // the id that the server used; nil if the client sees it
	orphaned bool   // the server has ended
}

// Asked records a request on its way to the client. If the client has not yet replied to a
// request with the same id from a server that has ended, Asked gives this one the id that
// newID returns: a new server starts counting again.
func (t *serverRequests) Asked(m *wire.Message, newID func() string) error {
	// Some servers write notifications with the id null, which no cancellation can name.
	if m.ID() == nil || len(m.ID()) > maxID {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = map[string]serverRequest{}
		t.some.Store(true)
	}
	var r serverRequest
	id := string(m.ID())
	orphaned := t.byID[id].orphaned
	if len(t.byID) >= maxRequests && !orphaned { // it passes, and is not cancelled when the server ends
		return nil
	}
	if orphaned {
		own := newID()
		if err := m.Set([]byte(own), "id"); err != nil {
			return err
		}
		id, r.original = own, []byte(id)
	}
	t.byID[id] = r
	return nil
}

// Cancelled gives a cancellation of the server the id that the client sees for the request.
func (t *serverRequests) Cancelled(m *wire.Message) error {
	if !t.some.Load() || !m.MethodIs("notifications/cancelled") {
		return nil
	}
	id := m.Get("params", "requestId").Raw
	t.mu.Lock()
	defer t.mu.Unlock()
	for own, r := range t.byID {
		if r.original != nil && !r.orphaned && bytes.Equal(r.original, id) {
			return m.Set([]byte(own), "params", "requestId")
		}
	}
	return nil
}

// Answered records a reply of the client. It restores the id that the server used, and
// reports whether to drop the reply, because its server has ended.
func (t *serverRequests) Answered(m *wire.Message) (drop bool) {
	if !t.some.Load() || m.ID() == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := string(m.ID())
	r := t.byID[id] // the zero value for a request that is not tracked: the reply passes
	delete(t.byID, id)
	if r.original != nil && !r.orphaned {
		return m.Set(r.original, "id") != nil
	}
	return r.orphaned
}

// Orphan returns the ids of the requests that the client has not answered, and marks them
// as those of a server that has ended.
func (t *serverRequests) Orphan() (ids [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, r := range t.byID {
		if !r.orphaned {
			ids = append(ids, []byte(id))
			t.byID[id] = serverRequest{r.original, true}
		}
	}
	return ids
}

// subscriptionKey is the key of _meta with the id of the subscriptions/listen request that a
// notification belongs to.
const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

// listens tracks the open subscriptions of the modern era (R6). The zero value is empty.
type listens struct {
	some atomic.Bool // there was a subscription

	mu   sync.Mutex
	byID map[string]*listen
}

// maxGranted is the length in bytes of the longest grant that is kept.
const maxGranted = 64 << 10

type listen struct {
	granted []byte // nil before the server has acknowledged
	again   bool   // requested again from another server, which has not acknowledged yet
}

// Begin records a subscriptions/listen request on its way to the server.
func (l *listens) Begin(id []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[string]*listen{}
		l.some.Store(true)
	}
	if len(l.byID) < maxSubscriptions && len(id) <= maxID {
		l.byID[string(id)] = &listen{}
	}
}

// Again reports whether there is a subscription with the raw id, and records that its
// request is sent to another server.
func (l *listens) Again(id []byte) bool {
	if !l.some.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[string(id)]
	if s != nil && s.granted != nil { // otherwise the client still waits for the first acknowledgment
		s.again = true
	}
	return s != nil
}

// End forgets a subscription.
func (l *listens) End(id []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, string(id))
}

// Ended forgets the subscription that a notification of the server cancels, if it cancels one (revision
// 2026-07-28, basic/patterns/cancellation).
func (l *listens) Ended(m *wire.Message) {
	if l.some.Load() && m.MethodIs("notifications/cancelled") {
		l.End(m.Get("params", "requestId").Raw)
	}
}

// Granted records what a notification of the server grants. It reports whether to drop the
// notification, because the client already got that of the last server. less is the id of a
// subscription to which this server grants less.
func (l *listens) Granted(m *wire.Message) (drop bool, less []byte) {
	if !l.some.Load() || !m.MethodIs("notifications/subscriptions/acknowledged") {
		return false, nil
	}
	id := m.Get("params", "_meta", subscriptionKey).Raw
	granted := m.Get("params", "notifications")
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[string(id)]
	switch {
	case s == nil:
		return false, nil
	case !s.again && len(granted.Raw) > maxGranted: // then it ends with the server
		delete(l.byID, string(id))
		return false, nil
	case !s.again:
		s.granted = append([]byte{}, granted.Raw...) // not nil, even if the server grants nothing
		return false, nil
	}
	s.again = false
	if missing(wire.Value{Raw: s.granted}, granted) == "" {
		return true, nil
	}
	delete(l.byID, string(id))
	return true, bytes.Clone(id)
}
