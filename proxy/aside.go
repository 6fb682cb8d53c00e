package proxy

import "github.com/attache-mcp/attache/proxy/wire"

// An Aside is a frame from the client that no layer saw, because parsers may read it
// differently or because it was too large to hold.
type Aside struct {
	// Message is the frame as far as it could be read, valid until the function it
	// is given to returns. Of one that is not plain no member is certain.
	Message *wire.Message
	// Why says why the layers did not see it.
	Why string
	// Code is that of the error that refused the frame; 0 if the frame was sent on.
	Code int
}

const (
	whyCrowded = "an array of more members than the proxy takes apart"
	whyLong    = "longer than the hold limit"
)

// reportAside reports a frame that the layers did not see to Options.Aside, unless every
// parser takes it for a reply. It runs in the client's direction.
func (s *session) reportAside(m *wire.Message, why string, code int) {
	if s.o.Aside != nil && !isReply(m) {
		s.o.Aside(Aside{m, why, code})
	}
}

// isReply reports whether no parser takes the message for a request: some read one
// in a reply that has Method beside its result.
func isReply(m *wire.Message) bool {
	return m.Kind().IsReply() && (m.Ambiguity() == 0 || m.Ambiguity() == wire.BadEnvelope)
}
