package proxy

import (
	"context"

	"github.com/attache-mcp/attache/proxy/wire"
)

// An Aside is a frame from the client that no layer saw, because parsers may read it
// differently or because it was too large to hold.
type Aside struct {
	// Message is the frame as far as it could be read, valid until the function that it is
	// passed to returns. If the frame is not plain, readers may disagree on every member.
	Message *wire.Message
	// Why says why the layers did not see it.
	Why string
	// Code is the code of the error that refused the frame; 0 if the frame was sent on.
	Code int
}

const (
	whyCrowded = "an array of more members than the proxy takes apart"
	whyLong    = "longer than the hold limit"
)

// reportAside reports a frame that the layers did not see to Options.Aside, unless every parser
// reads it as a reply: some parsers read it as a request if it has Method beside its result. It runs in
// the client's direction.
func (s *session) reportAside(m *wire.Message, why string, code int) {
	isReply := m.Kind().IsReply() && (m.Ambiguity() == 0 || m.Ambiguity() == wire.BadEnvelope)
	if s.o.Aside != nil && !isReply {
		_ = s.protect(s.ctx, func(_ context.Context, m *wire.Message) error { s.o.Aside(Aside{m, why, code}); return nil }, m)
	}
}
