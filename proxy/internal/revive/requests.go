package revive

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

// maxRequests bounds how many requests of a server's are remembered.
const maxRequests = 10_000

// ServerRequests are the requests of a server's that the client has not answered (R15).
// The zero value is empty.
type ServerRequests struct {
	some atomic.Bool // one was made

	mu       sync.Mutex
	open     map[string]bool
	orphaned map[string]bool   // of servers that have ended, until the client replies
	renamed  map[string][]byte // by the id that the client sees, the one that the server used
}

// Asked takes a request on its way to the client. If the client still owes a reply to a
// request of a dead server's with the same id, it gives the request the id that newID
// returns: a server counts from 0 again.
func (t *ServerRequests) Asked(m *wire.Message, newID func() string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open, t.orphaned, t.renamed = map[string]bool{}, map[string]bool{}, map[string][]byte{}
		t.some.Store(true)
	}
	id := string(m.ID())
	if len(t.open)+len(t.orphaned) >= maxRequests && !t.orphaned[id] {
		return nil
	}
	if t.orphaned[id] {
		own := newID()
		if err := m.Set([]byte(own), "id"); err != nil {
			return err
		}
		t.renamed[own] = []byte(id)
		id = own
	}
	t.open[id] = true
	return nil
}

// Answered takes a reply of the client's. It gives it the id that the server used, and
// reports whether it is for a server that has ended.
func (t *ServerRequests) Answered(m *wire.Message) (drop bool) {
	if !t.some.Load() || m.ID() == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := string(m.ID())
	original, renamed := t.renamed[id]
	delete(t.renamed, id)
	if t.open[id] {
		delete(t.open, id)
		return renamed && m.Set(original, "id") != nil
	}
	drop = t.orphaned[id]
	delete(t.orphaned, id)
	return drop
}

// Orphan returns the ids of the requests that the client has not answered: the server
// that made them has ended.
func (t *ServerRequests) Orphan() (ids [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.open {
		ids = append(ids, []byte(id))
		t.orphaned[id] = true
		delete(t.open, id)
	}
	return ids
}

// subscriptionKey tags what belongs to a subscription; its value is the id of the
// subscriptions/listen request.
const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

// Listens are the open subscriptions of the modern era (R6). The zero value is empty.
type Listens struct {
	some atomic.Bool // one was made

	mu   sync.Mutex
	byID map[string]*listen
}

type listen struct {
	granted []byte // nil before the server has said
	again   bool   // it was made again at another server, which has not said
}

// Begin takes a subscriptions/listen request on its way to the server.
func (l *Listens) Begin(id []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[string]*listen{}
		l.some.Store(true)
	}
	if len(l.byID) < maxSubscriptions {
		l.byID[string(id)] = &listen{}
	}
}

// Again reports whether there is a subscription that was asked for with the raw id, and
// notes that the request goes to another server.
func (l *Listens) Again(id []byte) bool {
	if !l.some.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[string(id)]
	if s != nil && s.granted != nil {
		s.again = true
	}
	return s != nil
}

// End forgets a subscription.
func (l *Listens) End(id []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, string(id))
}

// Granted takes a notification of the server's. swallow says that the client has heard
// it of the server before; less is the id of a subscription that gets less than that
// one gave.
func (l *Listens) Granted(m *wire.Message) (swallow bool, less []byte) {
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
	case !s.again:
		s.granted = append([]byte{}, granted.Raw...)
		return false, nil
	}
	s.again = false
	if missing(wire.Value{Raw: s.granted}, granted) == "" {
		return true, nil
	}
	delete(l.byID, string(id))
	return true, bytes.Clone(id)
}
