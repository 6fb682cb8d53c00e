package remote

import (
	"time"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// enter puts the exchange in the table of open requests.
func (s *Server) enter(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.method != "subscriptions/listen" && !s.ending {
		x.counted = true
		s.calls.Add(1)
	}
	for _, id := range x.ids {
		k, long := callid.Of(id)
		s.open.Set(&k, long, x)
	}
}

// leave takes it out.
func (s *Server) leave(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(x, x.first)
	for _, id := range x.more {
		s.leaveLocked(x, id)
	}
	if x.left != nil {
		close(x.left)
	}
}

func (s *Server) leaveLocked(x *exchange, id []byte) {
	k, long := callid.Of(id)
	if s.open.Get(&k, long) == x {
		s.open.Set(&k, long, nil)
	}
}

// lateTime is how long the stream of a cancelled request is read on.
const lateTime = 30 * time.Second

// cancelExchange takes a cancellation of the client's, x, of the request with an id. In the
// modern era it is the end of the request's stream and no message
// (basic/patterns/cancellation); else it waits until the request has left, and a request
// that has not is not sent. It reports whether nothing is left to send.
func (s *Server) cancelExchange(x *exchange, id wire.Value) (done bool) {
	if callid.Clean(id.Raw) == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, long := callid.Of(id.Raw)
	request := s.open.Get(&k, long)
	if request == nil {
		return s.modern != "" && s.session.ticket().generation == 0
	}
	request.lost.Store(true)
	if request.modern {
		request.cancel(nil)
		return true
	}
	select {
	case <-request.body.whenWritten():
	default: // what follows the two need not wait for them
		if x.behind = request; request.left == nil {
			request.left = make(chan struct{})
		}
		if !request.body.begun.Load() {
			request.cancel(nil)
			return false
		}
	}
	time.AfterFunc(lateTime, func() { request.cancel(nil) })
	return false
}

// awaitSent waits until the message has been sent, or is over, and reports whether the server
// may have it.
func (x *exchange) awaitSent() bool {
	t := time.NewTimer(settleTime)
	defer t.Stop()
	select {
	case <-x.body.whenWritten():
	case <-x.left:
	case <-t.C:
	}
	return x.body.begun.Load()
}
