package assembly

import (
	"context"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A Client is a client of a front.
type Client struct {
	// Namespace keeps the conversation keys of this client's principal apart from those
	// of others, with whom it shares what is kept by session: turns, rates.
	Namespace string
	// Session names the session of a client that names none itself, also in other processes
	// in which it goes on; "" if it goes on in none.
	Session string
	// Latest returns the credential that came last with a request of the client, and whose
	// it is; "" where clients need none. Tell the Conn when that is somebody else, by
	// [Conn.Recheck].
	Latest func() (credential string, owner *sessionstate.Principal)
	// Span returns the span of the HTTP request that brought the call with a raw id.
	Span func(id []byte) oteltrace.SpanContext
}

// identifyClient returns the function that says who a client of a front acts for. It goes by the
// credential that the client sends, in place of the operator's. The front has checked it.
func (p *process) identifyClient(c *Client) func(context.Context, capture.Credential) (*sessionstate.Principal, error) {
	return func(ctx context.Context, came capture.Credential) (*sessionstate.Principal, error) {
		who := p.who.Load()
		credential, owner := c.Latest()
		if came.Text != "" || credential == "" {
			return who.Identify(ctx, came)
		}
		operator, err := who.Asserted()
		if err != nil {
			return operator, err
		}
		return sessionstate.Overlay(operator, owner)
	}
}

// knownClient returns the function that says who a message of a front's client acts for without a
// look-up, which may be late: the front has just identified the client. It has put the owner beside
// the message; requests of one session can have tokens of different rights. What a file says of the
// operator is looked up.
func (p *process) knownClient(c *Client) func(*wire.Message) (*sessionstate.Principal, error, bool) {
	return func(m *wire.Message) (*sessionstate.Principal, error, bool) {
		who := p.who.Load()
		credential, owner := c.Latest()
		if sender, _ := m.Beside.(*sessionstate.Principal); sender != nil {
			owner = sender
		}
		if credential == "" || who.operator.SessionFile != "" {
			return nil, nil, false
		}
		principal, err := sessionstate.Overlay(who.operator.Variables, owner)
		return principal, err, true
	}
}

// clientContext returns what is known of a front's client whatever its message says: whose credential
// came with it. It is nil for the client that started the process, and where a look-up would have to say.
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

// Recheck makes the connection look up again who it acts for.
func (c *Conn) Recheck() { c.capture.Recheck() }

// baseContext returns what is known before the first frame. The host's variables and the
// working directory are those of the process, and say nothing of a front's client.
func (s *Shared) baseContext(c *Client) *sessionstate.Context {
	if c != nil {
		return operatorContext(s.settings)
	}
	return BaseContext(s.Process, s.settings)
}

// policyKey returns the function that gives a policy endpoint the API key of a session.
func (c *Conn) policyKey(s *Shared) func(session string) string {
	if c.Client == nil {
		return s.authenticator.policyKey(c.capture)
	}
	return func(session string) string {
		if key, _ := c.Client.Latest(); key != "" {
			return onlyKey(key)
		}
		return s.authenticator.policyKey(c.capture)(session)
	}
}
