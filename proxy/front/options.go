package front

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/internal/limit"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Principal identifies the sender of a request.
type Principal struct {
	// ID is what sessions are bound to; "" for clients without a credential.
	ID string
	// Value is passed through to Open, to Seen, and to layers as wire.Message.Beside.
	Value any
}

// An Opening describes a session that is to be opened.
type Opening struct {
	Who        Principal
	Credential string
	// Request returns the HTTP request of the call in flight with that raw id, nil if there is
	// none. Its body has been read.
	Request func(id []byte) *http.Request
	// Session names the session in every process that it continues in; "" if it stays in this
	// one. Label names it in the log, which must not contain its id.
	Session, Label string
	// Resumed says that the session began in another process, with another process of its server.
	Resumed bool
}

// A Relay says how the relay of a session runs.
type Relay struct {
	// Options are those of the relay. The front sets ClientIn and ClientOut, and logs to Log
	// what concerns the session.
	Options proxy.Options
	// Seen, if not nil, is called for each request with its sender and credential. The
	// credential may differ from that of the request before. Several goroutines may call it at once.
	Seen func(who Principal, credential string)
	// Closed, if not nil, is called once, when the relay has returned. After that, calls without an answer get an
	// error.
	Closed func()
}

// Options configure a Front. Open is required; for the rest, the zero value is a default.
type Options struct {
	// Open makes the relay of a session. An error that wraps ErrBusy is answered with 503. The Front is locked during
	// the call, so Open must return soon, and must not call the Front.
	Open func(o Opening) (Relay, error)

	// Authenticate returns the principal that a credential belongs to: the text after "Bearer" in the
	// header Authorization. A request without one is answered with 401. If Authenticate and
	// AuthenticateRequest are nil, requests need no credential and all clients are one principal. An
	// error that wraps ErrUnavailable is answered with 503, one that wraps ErrScope with 403, any
	// other with 401.
	Authenticate func(ctx context.Context, credential string) (Principal, error)

	// AuthenticateRequest, if not nil, is called instead of Authenticate. It is for programs that
	// identify users by a cookie, a client certificate, or middleware in front of the Front. It must
	// not read the body. Its errors have the same meaning. With a Principal without an ID, a credential
	// in the header has no effect.
	AuthenticateRequest func(r *http.Request) (Principal, error)

	// Reauthenticate is how often the principal of an open stream is checked again; 0 means one minute.
	// If it is refused, the stream ends. In this check, the context of Authenticate has no values of
	// the request; AuthenticateRequest gets the request that opened the stream.
	Reauthenticate time.Duration

	// Metadata is the URL of the protected resource metadata (RFC 9728) for challenges; "" for none.
	Metadata string

	// Scope lists the scopes to ask an issuer for, separated by spaces, for challenges; "" for none.
	Scope string

	// Conversation returns the key that tells the sessions of one principal apart in revision
	// 2026-07-28. If it is nil, each principal has one session.
	Conversation func(m *wire.Message) string

	// Origins are the allowed origins of browsers, besides the loopback listener's own.
	// Hosts are the allowed values of Host, besides those of the loopback interface; if there are
	// none, Host is checked on loopback only.
	Origins, Hosts []string

	// Store, if not nil, saves sessions with a handshake, so that they continue in another
	// process.
	Store sessions.Store

	// Limits are shared by the fronts of a process; nil means DefaultLimits.
	Limits *Limits

	// Idle is how long an unused session is kept; 0 means 30 minutes.
	Idle time.Duration

	// Log receives messages for people; nil discards them.
	Log *slog.Logger
}

// Limits bound what the fronts of a process hold at once. Get a value from DefaultLimits and change its
// fields before use: the ints Sessions, PerPrincipal (sessions of one principal) and InFlight (requests),
// the int64s Body (bytes of one message) and Bodies (bytes of all large messages).
type Limits = limit.Limits

// DefaultLimits returns the default limits.
func DefaultLimits() *Limits { return limit.Default() }

// ErrBusy is wrapped by errors of Options.Open that are temporary. The client should try again.
var ErrBusy = errors.New("too busy")

// ErrUnavailable is wrapped by errors of Options.Authenticate that say nothing about the
// credential, as when the issuer cannot be reached.
var ErrUnavailable = errors.New("credentials cannot be checked at the moment")

// ErrNoCredential is wrapped by errors of Options.AuthenticateRequest for a request without a credential. It is
// logged at debug level, because each login begins with such a request.
var ErrNoCredential = errors.New("the request has no credential")

// ErrEnded is wrapped by errors of Options.Authenticate for a credential that was revoked or has expired,
// and that nothing can replace. If an open stream has such a credential, its session ends.
var ErrEnded = errors.New("the credential is no longer valid")

// ErrScope is wrapped by errors of Options.Authenticate for a valid credential that lacks some of
// Options.Scope.
var ErrScope = errors.New("the credential has too few rights")
