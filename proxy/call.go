package proxy

import "github.com/attache-mcp/attache/proxy/internal/inflight"

// A call is a request of the client in flight.
type call = inflight.Call

// A relayedCall joins a call with the session that relays it, because layers reach both through
// relayed.Relay, which it implements.
type relayedCall struct {
	call
	s *session
}

// init makes c a call of s, for a frame that is not a request.
func (c *relayedCall) init(s *session) {
	c.s = s
	c.MW.Reset(c, false)
}

func (s *session) newCall() *call {
	c := &relayedCall{}
	c.init(s)
	return &c.call
}
