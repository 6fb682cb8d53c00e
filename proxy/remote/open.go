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
}

func (s *Server) leaveLocked(x *exchange, id []byte) {
	k, long := callid.Of(id)
	if s.open.Get(&k, long) == x {
		s.open.Set(&k, long, nil)
	}
}

// lateTime is how long the stream of a cancelled request is read on.
const lateTime = 30 * time.Second

// cancelExchange takes a cancellation of the client's. In the modern era it is the end
// of the request's stream and no message (basic/patterns/cancellation); else it waits
// until the request has left. It reports whether nothing is left to send.
func (s *Server) cancelExchange(id wire.Value) (done bool) {
	if callid.Clean(id.Raw) == nil {
		return false
	}
	s.mu.Lock()
	k, long := callid.Of(id.Raw)
	x := s.open.Get(&k, long)
	modern := s.modern != "" && s.session.ticket().generation == 0
	s.mu.Unlock()
	if x == nil {
		return modern
	}
	x.lost.Store(true)
	if x.modern {
		x.cancel(nil)
		return true
	}
	t := time.NewTimer(settleTime)
	defer t.Stop()
	select {
	case <-x.body.whenWritten():
	case <-x.ctx.Done():
	case <-t.C:
	}
	time.AfterFunc(lateTime, func() { x.cancel(nil) })
	return false
}
