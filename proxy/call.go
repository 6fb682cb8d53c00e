package proxy

import "github.com/attache-mcp/attache/proxy/internal/inflight"

// A call is a request of the client in flight.
type call = inflight.Call

// A relayedCall is a call and the session that relays it. It implements middleware.Relay.
type relayedCall struct {
	call
	s *session
}

// init makes c a call of s, for a frame that is not a request.
func (c *relayedCall) init(s *session) {
	c.s = s
	c.MW.Reset(c, false)
}

// newCall returns a call for the table of the session.
func (s *session) newCall() *call {
	c := &relayedCall{}
	c.init(s)
	return &c.call
}
