package proxy

import (
	"context"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/inflight"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Ask implements relayed.Relay. The request is queued, so neither direction
// ever blocks on it.
func (c *relayedCall) Ask(to wire.Peer, method string, params []byte, limit time.Duration, done func(*wire.Message)) {
	s := c.s
	done = s.protectDone(done)
	// A layer may ask the server before the first frame is on its way to it.
	if to == wire.Server && s.start() != nil || !s.work.Begin() {
		// It runs in another goroutine, because the layer may hold a lock that done takes.
		go done(nil)
		return
	}
	defer s.work.End()
	id := s.asks.Add(to, limit, true, done, s.askExpired)
	if id == "" { // the peer has closed its end
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

func otherPeer(p wire.Peer) wire.Peer { return wire.Server - p }

// send queues a message that attache made.
func (s *session) send(to wire.Peer, m *wire.Message) {
	if to == wire.Client {
		s.queue(m, nil)
		return
	}
	l := s.link.Load()
	l.Queue(m, func() { s.answerUnsentAside(l) })
}

// askExpired cancels a request of the relay whose time is over.
func (s *session) askExpired(id string) {
	if !s.work.Begin() {
		return
	}
	defer s.work.End()
	if a := s.asks.Take(id); a != nil { // else the reply has come at the same time
		s.send(a.To, wire.NewNotification(otherPeer(a.To), "notifications/cancelled",
			[]byte(`{"requestId":`+id+`,"reason":"timeout"}`)))
		a.Done(nil)
	}
}

// whyOwnID is the error text for a request of the client whose id could be one of attache's own
// requests: the two replies could not be told apart.
const whyOwnID = "the proxy uses ids that begin so; choose another"

// ownID reports whether the id of the request m could be one of attache's own, and then answers
// m with an error. A request whose id cannot be written into an answer passes; so do replies, which
// takesReply and Swallow look at. b is the batch that m came in, nil if it came alone.
func (s *session) ownID(m *wire.Message, b *inflight.Batch) bool {
	if m.Kind() != wire.Request || !s.asks.Owns(m.ID()) || callid.Clean(m.ID()) == nil {
		return false
	}
	s.log.Warn("a request was refused because its id begins like those of the proxy's own requests", "id", callid.Clip(m.ID()))
	s.reportAside(m, whyOwnID, wire.CodeInvalidRequest)
	reply := wire.ErrorReply(m.ID(), wire.CodeInvalidRequest, "refused: "+whyOwnID)
	if b != nil {
		s.calls.AnswerLater(b, reply, nil)
	} else {
		s.queue(reply, nil)
	}
	return true
}
