// Package front serves MCP over Streamable HTTP to many clients, and gives each client
// session a relay of its own.
//
// A [Front] is an http.Handler for one endpoint. It reads a message from the body of a
// POST, hands it to the relay of the session ([proxy.Run]) as a line, and sends each line
// that the relay writes to the request that waits for it. The bytes of a message pass
// unchanged, except that line ends within it, which would separate messages on stdio, become
// spaces. Package proxy explains layers, calls and the upstream. The example shows a whole program.
//
// # Sessions
//
// Up to revision 2025-11-25, an initialize without a session id opens a session. The session has an
// id of 128 random bits, a relay and so an upstream of its own. It belongs to the principal that
// opened it; to anybody else it does not exist. In revision 2026-07-28, a key in the _meta of a
// request ([Options.Conversation]) and its principal say which session it belongs to. The requests
// of such a session share a relay. If two with the same id or progress token are in flight, the
// relay sees the second one under another id and token. With a [sessions.Store], sessions of the
// first kind continue in another process: after a restart, or in another front after this one.
//
// # Answers
//
// A request is answered with JSON if its reply is the first message for it and comes within five
// seconds, and with a stream of events otherwise. A stream always ends with the reply to its
// request, because some clients wait until their timeout for a reply that is missing. So no
// middleware in front of a Front may end or buffer a request, as http.TimeoutHandler does. The
// timeouts of http.Server do no harm.
//
// # What it does not do
//
// It does not terminate TLS, read files or interpret credentials: the program that embeds it
// does. It does not offer resumption of streams, nor the HTTP+SSE transport of 2024-11-05.
package front

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/body"
	"github.com/attache-mcp/attache/proxy/front/internal/limit"
	"github.com/attache-mcp/attache/proxy/front/internal/pulse"
	"github.com/attache-mcp/attache/proxy/front/internal/taskkey"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
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
	// credential may differ from that of the request before.
	Seen func(who Principal, credential string)
	// Closed, if not nil, is called when the relay has returned.
	Closed func()
}

// Options configure a Front. Open is required; for the rest, the zero value is a default.
type Options struct {
	// Open makes the relay of a session. An error that wraps ErrBusy is answered with 503.
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

	// Hold is the length in bytes up to which a line of the upstream is held whole, as in
	// proxy.Options; 0 means 8 MiB.
	Hold int

	// Log receives messages for people; nil discards them.
	Log *slog.Logger
}

// Limits bound what the fronts of a process hold at once. Get a value from DefaultLimits and change its
// fields before use: the ints Sessions, PerPrincipal (sessions of one principal) and InFlight (requests),
// the int64s Body (bytes of one message) and Bodies (bytes of all large messages).
type Limits = limit.Limits

// DefaultLimits returns the default limits.
func DefaultLimits() *Limits { return limit.Default() }

const (
	defaultIdle           = 30 * time.Minute
	defaultReauthenticate = time.Minute
	// writeTime is how long a client may take to read maxWrite bytes.
	writeTime = 30 * time.Second
	maxWrite  = 128 << 10
	// endTime is how long Drain waits for clients to read the ends of their streams.
	endTime = 2 * time.Second
	// bodyTime is how long a client may take to send a body.
	bodyTime = 60 * time.Second
)

// ErrBusy is wrapped by errors of Options.Open that are temporary. The client should try again.
var ErrBusy = errors.New("too much is going on")

// ErrUnavailable is wrapped by errors of Options.Authenticate that say nothing about the
// credential, as when the issuer cannot be reached.
var ErrUnavailable = errors.New("credentials cannot be checked at the moment")

// ErrEnded is wrapped by errors of Options.Authenticate for a credential that was revoked or has expired,
// and that nothing can replace. If an open stream has such a credential, its session ends.
var ErrEnded = errors.New("the credential is no longer valid")

// ErrScope is wrapped by errors of Options.Authenticate for a valid credential that lacks some of
// Options.Scope.
var ErrScope = errors.New("the credential has too few rights")

// A Front is an http.Handler that serves MCP at one address.
type Front struct {
	o      Options
	log    *slog.Logger
	keeper *sessions.Keeper // nil without a Store

	// mu guards the fields up to draining. A session.mu may be locked while it is held, not the
	// other way round.
	mu       sync.Mutex
	byID     map[string]*session   // legacy sessions
	byKey    map[string][]*session // those of 2026-07-28
	draining bool
	refused  struct{ unchecked, credential, address, limit, session limit.Refusals }
	relays   sync.WaitGroup
	streams  tasks.Group // on bare connections, which the HTTP server does not track

	pulse   pulse.Pulse
	keys    taskkey.Keys               // of the sessions in byKey
	renamed atomic.Uint64              // how many requests the relays know under another id
	names   atomic.Pointer[[][]string] // wire.Scanner.ArgumentNames of the relay that had the last message
}

// New returns a Front.
func New(o Options) *Front {
	o.Limits = cmp.Or(o.Limits, DefaultLimits())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.Reauthenticate <= 0 {
		o.Reauthenticate = defaultReauthenticate
	}
	if o.Hold <= 0 {
		o.Hold = wire.DefaultHold
	}
	if o.Conversation == nil {
		o.Conversation = func(*wire.Message) string { return "" }
	}
	f := &Front{o: o, log: o.Log, byID: map[string]*session{}, byKey: map[string][]*session{}}
	f.names.Store(new([][]string))
	if o.Store != nil {
		f.keeper = sessions.NewKeeper(o.Store, o.Log)
	}
	return f
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{f: f, w: w, r: r, rc: *http.NewResponseController(w)}
	if r.Header["Expect"] != nil {
		// net/http writes "100 Continue" when the body is read, and the write deadline of the
		// last request may have passed.
		x.allowRefusal()
	}
	if r.ContentLength != 0 {
		// Also for a request that is refused: net/http reads its body before it answers.
		_ = x.rc.SetReadDeadline(time.Now().Add(bodyTime))
	}
	if !x.admit() {
		return
	}
	switch r.Method {
	case http.MethodPost:
		x.post()
	case http.MethodGet:
		x.get()
	case http.MethodDelete:
		x.delete()
	default:
		x.w.Header().Set("Allow", "GET, POST, DELETE, OPTIONS")
		x.refuse(http.StatusMethodNotAllowed, nil, wire.CodeInvalidRequest, "this method is not served: send messages by POST")
	}
}

// An exchange is one HTTP request and its response.
type exchange struct {
	f           *Front
	w           http.ResponseWriter
	r           *http.Request
	rc          http.ResponseController
	accept      accept.Accept
	body        body.Buffer // of the message, until the relay has it
	who         Principal
	credential  string
	wroteHeader bool // the header was written before the answer
}

// allowWrite moves the write deadline to writeTime from now.
func (x *exchange) allowWrite() { _ = x.rc.SetWriteDeadline(time.Now().Add(writeTime)) }

// allowRefusal is allowWrite for an answer that may have to wait until the body is read.
func (x *exchange) allowRefusal() {
	_ = x.rc.SetWriteDeadline(time.Now().Add(bodyTime + writeTime))
}

// refuse answers the request, whose raw id is id or null if id is nil, with an error.
func (x *exchange) refuse(status int, id []byte, code int, text string) {
	m := wire.ErrorReply(id, code, text)
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	// Package remote, and so an attache in front of this one, tries again only with this header.
	if (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && h.Get("Retry-After") == "" {
		h.Set("Retry-After", "1")
	}
	x.allowRefusal()
	x.w.WriteHeader(status)
	_, _ = x.w.Write(m.Frame())
}

// executedHeader tells a client that a request answered with 503 was not executed and may be sent
// again. A server cannot forge it, because the front passes on no header of a server.
const executedHeader = "Attache-Executed"

// busy refuses with 503 a request that was not executed.
func (x *exchange) busy(id []byte, text string) {
	x.w.Header()[executedHeader] = []string{"nothing"}
	x.refuse(http.StatusServiceUnavailable, id, wire.CodeInternalError, text)
}

// finish answers with a status alone.
func (x *exchange) finish(status int) {
	x.allowRefusal()
	x.w.WriteHeader(status)
}

// Drain ends the front. It refuses new sessions with 503, and closes each session when no call but
// subscriptions is in flight, or when ctx is done. Until then a session that another front can continue still
// accepts calls, because no other front can answer them yet; other sessions refuse calls with 503. Drain
// returns when all relays have returned. Call it before http.Server.Shutdown, which waits for streams.
func (f *Front) Drain(ctx context.Context) {
	f.mu.Lock()
	f.draining = true
	// draining is set, so no session is added after this.
	all := f.sessionsLocked()
	f.mu.Unlock()
	var left sync.WaitGroup
	for _, s := range all {
		left.Go(func() { s.releaseIdle(ctx) })
	}
	left.Wait()
	// Relays end their upstreams, and bare streams are still being written: the HTTP server waits
	// for neither.
	f.relays.Wait()
	f.streams.Wait(time.Now().Add(endTime))
}

// sessionsLocked returns all sessions. The caller holds f.mu.
func (f *Front) sessionsLocked() []*session {
	var all []*session
	for _, s := range f.byID {
		all = append(all, s)
	}
	for _, relays := range f.byKey {
		all = append(all, relays...)
	}
	return all
}

// Draining reports whether the front is ending.
func (f *Front) Draining() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.draining
}
