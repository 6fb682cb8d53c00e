package remote

import (
	"time"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// enter adds the exchange to the table of open requests. The stream of a subscription may stay
// open until the client ends it, so finish does not wait for it.
func (s *Server) enter(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.method != "subscriptions/listen" && !s.ending {
		x.counted = true
		s.calls.Add(1)
	}
	// A client that uses an id twice loses the cancellation of the first request alone.
	for _, id := range x.ids {
		k, long := callid.Of(id)
		s.open.Set(&k, long, x)
	}
}

// leave removes the exchange from the table. ids no longer has the ids that were answered, so it
// uses first and more.
func (s *Server) leave(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(x, x.first)
	for _, id := range x.more {
		s.leaveLocked(x, id)
	}
	if x.ended != nil {
		close(x.ended)
	}
}

// leaveLocked removes one id, unless the client has meanwhile used it for another request.
func (s *Server) leaveLocked(x *exchange, id []byte) {
	k, long := callid.Of(id)
	if s.open.Get(&k, long) == x {
		s.open.Set(&k, long, nil)
	}
}

// lateTime is how long the stream of a cancelled request is still read. A server of a legacy revision
// need not answer such a request, and then may never end its stream.
const lateTime = 30 * time.Second

// cancelExchange cancels the request with that id. x is the client's notification of it. In revision
// 2026-07-28 a client cancels by closing the stream of the request, without a message
// (basic/patterns/cancellation). In earlier revisions x is sent after the request; a request that was
// not sent yet is not sent any more. done reports whether x need not be sent.
func (s *Server) cancelExchange(x *exchange, id wire.Value) (done bool) {
	if callid.Clean(id.Raw) == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, long := callid.Of(id.Raw)
	request := s.open.Get(&k, long)
	if request == nil {
		// The request is over, or there was none. Only a server of a legacy revision is told: 2026-07-28 has
		// no such notification over HTTP.
		return s.modern != "" && s.session.ticket().generation == 0
	}
	// cancelled is set before the request is cancelled: fail must not answer it, because its client no longer waits.
	request.cancelled.Store(true)
	if request.modern {
		request.cancel(nil)
		return true
	}
	// The request is written, is being written (begun), or was not sent. In the last case it is not sent any more, and
	// neither is x: see awaitSent.
	select {
	case <-request.body.whenWritten():
	default: // later messages need not wait for these two
		if x.cancels = request; request.ended == nil {
			request.ended = make(chan struct{})
		}
		// If the request leaves at this moment all the same, awaitSent sees it, and x is sent.
		if !request.body.begun.Load() {
			request.cancel(nil)
			return false
		}
	}
	// The request has reached the server, or is on its way. Its stream stays open for what the server still sends.
	time.AfterFunc(lateTime, func() { request.cancel(nil) })
	return false
}

// awaitSent waits until the message was sent or the exchange has ended, and reports whether the server
// may have received the message.
func (x *exchange) awaitSent() bool {
	select {
	case <-x.body.whenWritten():
	case <-x.ended: // without being written: it was cancelled, or the server could not be reached
	case <-time.After(settleTime):
	}
	return x.body.begun.Load()
}
