package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// asks are the requests of attache's own that wait for a reply. Their ids are
// strings with a prefix random for this process, so they can be mistaken for
// nobody else's, another attache's in the same chain included.
type asks struct {
	prefix []byte // with the opening quote

	mu      sync.Mutex
	n       int
	pending map[string]*ask
	closed  bool
}

type ask struct {
	to    wire.Peer
	done  func(*wire.Message)
	timer *time.Timer
}

func newAsks(prefix string) asks {
	if prefix == "" {
		var b [8]byte
		rand.Read(b[:]) // never fails: crypto/rand, Go 1.24
		prefix = "attache-" + hex.EncodeToString(b[:]) + "-"
	}
	return asks{prefix: []byte(`"` + prefix), pending: map[string]*ask{}}
}

// Ask implements middleware.Relay. The request is queued, so neither direction
// ever blocks on it.
func (c *call) Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(*wire.Message)) {
	s := c.s
	if to == wire.Server && s.start() != nil {
		go done(nil)
		return
	}
	if !s.work.Begin() {
		go done(nil)
		return
	}
	defer s.work.End()
	id := s.asks.add(to, limit, s.protectDone(done), s.askExpired)
	if id == "" {
		go done(nil)
		return
	}
	s.send(to, wire.NewRequest(otherPeer(to), []byte(id), method, params))
}

// protectDone returns done with a panic logged.
func (s *session) protectDone(done func(*wire.Message)) func(*wire.Message) {
	return func(reply *wire.Message) {
		_ = s.protect(s.ctx, func(context.Context, *wire.Message) error { done(reply); return nil }, nil)
	}
}

// add returns the raw id of a new request, "" if the session is over.
func (a *asks) add(to wire.Peer, limit time.Duration, done func(*wire.Message), expired func(id string)) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return ""
	}
	a.n++
	id := string(a.prefix) + strconv.Itoa(a.n) + `"`
	a.pending[id] = &ask{to, done, time.AfterFunc(limit, func() { expired(id) })}
	return id
}

func otherPeer(p wire.Peer) wire.Peer { return wire.Server - p }

// send queues a message of attache's own.
func (s *session) send(to wire.Peer, m *wire.Message) {
	if to == wire.Client {
		s.queue(m, nil)
		return
	}
	l := s.link.Load()
	s.watch(ServerIn, m.Line())
	l.in.Queue(m.Line(), func(error) { l.checkSent(m.Line()) })
}

// askExpired gives a request up, and tells the peer so.
func (s *session) askExpired(id string) {
	if !s.work.Begin() {
		return
	}
	defer s.work.End()
	if a := s.asks.take(id); a != nil {
		s.send(a.to, wire.NewNotification(otherPeer(a.to), "notifications/cancelled",
			[]byte(`{"requestId":`+id+`,"reason":"timeout"}`)))
		a.done(nil)
	}
}

func (a *asks) take(id string) *ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.pending[id]
	delete(a.pending, id)
	return q
}

// owns reports whether a raw id is that of a request of attache's own, or could be.
func (a *asks) owns(id []byte) bool {
	if len(id) > 0 && id[0] == '"' && bytes.IndexByte(id, '\\') >= 0 {
		id = wire.Quote((wire.Value{Raw: id}).Text())
	}
	return bytes.HasPrefix(id, a.prefix)
}

// whyOwnID is what a request of the client's is told whose id could be that of one of
// attache's own: the reply to it would be taken for the reply to that.
const whyOwnID = "the proxy uses ids that begin so; choose another"

// ownID reports whether m is a request whose id could be one of attache's own. It
// answers it with an error; b is the batch it came in, nil if it came alone.
func (s *session) ownID(m *wire.Message, b *batch) bool {
	if m.Kind() != wire.Request || !s.asks.owns(m.ID()) || callid.Clean(m.ID()) == nil {
		return false
	}
	s.log.Warn("a request was refused because its id begins like those of the proxy's own requests", "id", callid.Clip(m.ID()))
	s.reportAside(m, whyOwnID, wire.CodeInvalidRequest)
	reply := wire.ErrorReply(m.ID(), wire.CodeInvalidRequest, "refused: "+whyOwnID)
	if b != nil {
		s.calls.answerLater(b, reply, nil)
	} else {
		s.queue(reply, nil)
	}
	return true
}

// swallow reports whether a reply is for a request of attache's own, and if so
// takes it. A reply that comes too late, or from the peer that was not asked, is
// swallowed all the same.
func (a *asks) swallow(from wire.Peer, m *wire.Message) bool {
	if !a.owns(m.ID()) {
		return false
	}
	if q := a.takeFrom(from, string(m.ID())); q != nil {
		q.timer.Stop()
		if m.TooLarge() {
			q.done(nil)
		} else {
			q.done(m.Clone())
		}
	}
	return true
}

// takeFrom is take for a reply that came from a peer.
func (a *asks) takeFrom(from wire.Peer, id string) *ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.pending[id]
	if q == nil || q.to != from {
		return nil
	}
	delete(a.pending, id)
	return q
}

// giveUp ends the requests a peer can no longer answer.
func (a *asks) giveUp(to wire.Peer) {
	a.mu.Lock()
	var gone []*ask
	for id, q := range a.pending {
		if q.to == to {
			gone = append(gone, q)
			delete(a.pending, id)
		}
	}
	a.mu.Unlock()
	for _, q := range gone {
		q.timer.Stop()
		q.done(nil)
	}
}

// close ends all requests, and lets none be made any more.
func (a *asks) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.giveUp(wire.Client)
	a.giveUp(wire.Server)
}
