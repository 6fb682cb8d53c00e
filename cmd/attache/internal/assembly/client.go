package assembly

import (
	"context"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A Client is a client of a front. Its requests may be handled at the same time, so Latest and Span are called from
// several goroutines.
type Client struct {
	// Namespace separates the conversation keys of this client's principal from those of
	// other principals, because the turns and rates of all sessions are kept together.
	Namespace string
	// Session identifies the session of a client that does not name one, in all processes in
	// which the session continues; "" if it cannot continue in another process.
	Session string
	// Latest returns the credential in the client's latest request, and its owner; "" if
	// clients need no credential.
	Latest func() (credential string, owner *sessionstate.Principal)
	// Span returns the span of the HTTP request with the call that has this raw id.
	Span func(id []byte) oteltrace.SpanContext
}

// identifyClient returns the function that identifies the principal of a front's client. It uses the
// credential that the client sends and the front has verified, instead of the operator's. A credential in _meta comes
// first, as on stdio. The Authenticator is looked up each time, so that a reload reaches sessions that are open.
func (p *process) identifyClient(c *Client) func(context.Context, capture.Credential) (*sessionstate.Principal, error) {
	return func(ctx context.Context, inMeta capture.Credential) (*sessionstate.Principal, error) {
		who := p.who.Load()
		credential, owner := c.Latest()
		if inMeta.Text != "" || credential == "" {
			return who.Identify(ctx, inMeta)
		}
		return who.overlay(owner)
	}
}

// knownClient returns the function that returns the principal of a message without a look-up, which
// may take too long: the front has just identified the sender. It attached the owner to the message,
// because requests of one session can have tokens with different permissions. The function reports
// false if clients need no credential.
func (p *process) knownClient(c *Client) func(*wire.Message) (*sessionstate.Principal, error, bool) {
	return func(m *wire.Message) (*sessionstate.Principal, error, bool) {
		credential, owner := c.Latest()
		if credential == "" {
			return nil, nil, false
		}
		if sender, _ := m.Beside.(*sessionstate.Principal); sender != nil {
			owner = sender
		}
		principal, err := p.who.Load().overlay(owner)
		return principal, err, true
	}
}

// clientContext returns what is known about a front's client independently of the content of its
// message. It returns nil for the client that started the process, and if it would have to look the principal
// up. The audit needs this context for frames that no layer sees, not even capture: see proxy.Options.Aside.
func (c *Conn) clientContext(m *wire.Message) *sessionstate.Context {
	if c.Client == nil {
		return nil
	}
	s := c.shared.Load()
	principal, err, known := s.process.knownClient(c.Client)(m)
	if !known {
		return nil
	}
	return s.baseContext(c.Client).With(func(ctx *sessionstate.Context) {
		ctx.Principal, ctx.Unidentified = principal, err
	})
}

// baseContext returns what is known before the first frame. The host's variables and the
// working directory belong to the process, so they do not describe a front's client. The operator's settings
// describe all clients.
func (s *Shared) baseContext(c *Client) *sessionstate.Context {
	if c != nil {
		return operatorContext(s.settings)
	}
	return BaseContext(s.Process, s.settings)
}

// policyKey returns a function that returns the API key of a session for a policy endpoint. It never
// returns a token: the token was issued for attache, and whoever has it could act as its owner here.
func (c *Conn) policyKey(s *Shared) func(session string) string {
	return func(session string) string {
		if c.Client != nil {
			if key, _ := c.Client.Latest(); key != "" {
				return keyOrNone(key)
			}
		}
		if own := s.authenticator.Own; own.Text != nil {
			text, _ := own.Text() // Identify returns the error too
			return keyOrNone(text)
		}
		return keyOrNone(c.capture.Credential(session).Text)
	}
}
