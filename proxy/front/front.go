// Package front serves MCP over Streamable HTTP to many clients, and gives each client
// session a relay of its own.
//
// A [Front] is an http.Handler for one endpoint. It reads a message from the body of a
// POST, hands it to the relay of the session ([proxy.Run]) as a line, and takes the lines
// that the relay writes to the requests that wait for them. The bytes of a message pass
// unchanged; only line ends within it, which separate messages on the other side, become
// spaces. What is said of layers, calls and the upstream in package proxy holds here too.
//
// # Sessions
//
// In the revisions to 2025-11-25 an initialize without a session id opens a session. It
// has an id of 128 random bits, its own relay and so its own upstream, and it belongs to
// the principal that opened it: for anybody else there is no such session. In revision
// 2026-07-28 a request says itself which session it belongs to, by a key in its _meta
// ([Options.Conversation]) and its principal. Requests of one such session share a relay,
// unless one uses an id that another has in flight: then it gets a further relay, since
// ids are never rewritten. With a [sessions.Store], sessions of the first kind go on in another
// process: after a restart, or in another front when this one has ended.
//
// # Answers
//
// A request is answered with JSON if its reply is the first message for it and comes
// soon, and with a stream of events otherwise. A stream always ends with the reply to its
// request: one that ends without it leaves some clients waiting until they give up.
//
// # What it does not do
//
// It does not terminate TLS, read files, or know what a credential means: the program
// does. It offers no resumption of streams, and not the transport of 2024-11-05.
package front

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/limit"
	"github.com/attache-mcp/attache/proxy/front/internal/pulse"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Principal is who sends a request, as far as a front has to know.
type Principal struct {
	// ID is what sessions are bound to; "" stands for a client that nobody identifies.
	ID string
	// Value is what Authenticate found: for Open, for Seen, and for layers as Beside of a message.
	Value any
}

// An Opening is a session that is to be opened.
type Opening struct {
	Who        Principal
	Credential string
	// Request returns the HTTP request that brought the call with a raw id which is not
	// answered yet; nil for none. Its body is read.
	Request func(id []byte) *http.Request
	// Session names the session, in this process and in those it goes on in; "" if it
	// goes on in no other. Label names it in a log, which must not have its id.
	Session, Label string
	// Resumed says that the session goes on here, with another process of its server.
	Resumed bool
}

// A Relay is what a session is made of.
type Relay struct {
	// Options are those of the relay; ClientIn and ClientOut are the front's to set. The front
	// logs to Log, too, what concerns the session.
	Options proxy.Options
	// Seen, if not nil, is told who sends each request, and with which credential, which may be new.
	Seen func(who Principal, credential string)
	// Closed, if not nil, is called when the relay has returned.
	Closed func()
}

// Options say what a front serves. Open is needed; the zero value of all else is a default.
type Options struct {
	// Open makes the relay of a session. An error that wraps ErrBusy is answered with 503.
	Open func(o Opening) (Relay, error)

	// Authenticate says who a credential belongs to; nil accepts requests without one,
	// and all clients are the same principal. An error that wraps ErrUnavailable is
	// answered with 503, one that wraps ErrScope with 403, any other with 401.
	Authenticate func(ctx context.Context, credential string) (Principal, error)

	// Metadata is the address of the protected resource metadata (RFC 9728) that a
	// challenge names; "" names none.
	Metadata string

	// Scope is what a challenge asks for: the scopes that a credential needs, separated by
	// blanks; "" asks for none.
	Scope string

	// Conversation returns the key of the session that a request of revision 2026-07-28
	// belongs to among those of its principal; nil stands for one session.
	Conversation func(m *wire.Message) string

	// Origins are the origins that browsers may send requests from, besides those of a
	// loopback listener itself. Hosts are the names a request may be sent to, besides
	// those of the loopback interface; without any, Host is checked on loopback alone.
	Origins, Hosts []string

	// Store, if not nil, keeps sessions with a handshake, so that they go on in another
	// process.
	Store sessions.Store

	// Limits are shared by the fronts of a process; nil stands for DefaultLimits.
	Limits *Limits

	// Idle is how long a session is kept that nobody uses; 0 stands for 30 minutes.
	Idle time.Duration

	// Hold is how long a line of the upstream may be to be held whole, as in
	// proxy.Options; 0 stands for 8 MiB.
	Hold int

	// Log takes what a person may want to know; nil discards it.
	Log *slog.Logger
}

// Limits bound what the fronts of a process hold at once. Make one with DefaultLimits and
// change its fields before it is used.
type Limits = limit.Limits

// DefaultLimits returns the limits that hold when nobody says otherwise.
func DefaultLimits() *Limits { return limit.Default() }

const (
	defaultIdle = 30 * time.Minute
	// quickTime is how long a reply may take to be sent as JSON: a client that sees
	// nothing for a minute gives up, and JSON cannot be kept alive.
	quickTime = 5 * time.Second
	// aliveTime is how long a stream is silent before a comment is due, which comes within 15 s.
	aliveTime = 15*time.Second - pulse.BeatTime
	// writeTime is how long one write to a client may take.
	writeTime = 30 * time.Second
	// endTime is how long the end waits for clients that do not read the end of their streams.
	endTime = 2 * time.Second
	// bodyTime is how long a client may take to send a body.
	bodyTime = 60 * time.Second
	// warnAgain is how long the front does not warn again of the same kind of refused requests.
	warnAgain = time.Minute
)

// ErrBusy is wrapped by an error of Options.Open that passes by itself.
var ErrBusy = errors.New("too much is going on")

// ErrUnavailable is wrapped by an error of Options.Authenticate that is not the
// credential's fault.
var ErrUnavailable = errors.New("credentials cannot be checked at the moment")

// ErrScope is wrapped by an error of Options.Authenticate for a credential that is good and
// lacks some of Options.Scope.
var ErrScope = errors.New("the credential has too few rights")

// A Front is an http.Handler that serves MCP at one address.
type Front struct {
	o      Options
	log    *slog.Logger
	keeper *sessions.Keeper // nil without a Store

	mu       sync.Mutex
	byID     map[string]*session   // legacy sessions
	byKey    map[string][]*session // those of 2026-07-28
	draining bool
	warned   struct{ credential, limit time.Time } // of requests that were refused
	relays   sync.WaitGroup
	streams  tasks.Group // on bare connections, which the HTTP server does not know of

	pulse pulse.Pulse
	names atomic.Pointer[[][]string] // wire.Scanner.ArgumentNames of the relay that took the last message
}

// New returns a Front.
func New(o Options) *Front {
	if o.Limits == nil {
		o.Limits = DefaultLimits()
	}
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.Hold <= 0 {
		o.Hold = wire.DefaultHold
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
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
		// The server answers that when the body is read, also on a connection whose
		// last deadline is over.
		x.allowRefusal()
	}
	if r.ContentLength != 0 {
		// Also of a request that is refused: the server reads its body before it answers.
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
	f          *Front
	w          http.ResponseWriter
	r          *http.Request
	rc         http.ResponseController
	accept     accept.Accept
	body       bodyBuffer // of the message, until that was handed over
	who        Principal
	credential string
	headed     bool // the headers have been written, before the answer
}

// allowWrite lets the writes to come take as long as a write may take.
func (x *exchange) allowWrite() { _ = x.rc.SetWriteDeadline(time.Now().Add(writeTime)) }

// allowRefusal is allowWrite for an answer before which a body may have to be read.
func (x *exchange) allowRefusal() {
	_ = x.rc.SetWriteDeadline(time.Now().Add(bodyTime + writeTime))
}

// refuse answers with an error of attache's own, to the raw id of the request; nil
// stands for null.
func (x *exchange) refuse(status int, id []byte, code int, text string) {
	m := wire.ErrorReply(id, code, text)
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && h.Get("Retry-After") == "" {
		h.Set("Retry-After", "1")
	}
	x.allowRefusal()
	x.w.WriteHeader(status)
	_, _ = x.w.Write(m.Frame())
}

// executedHeader tells a client that the request refused with 503 was not executed, so the client
// may send it again. The front passes on no header of a server, so a server cannot forge this one.
const executedHeader = "Attache-Executed"

// busy refuses a request of which nothing was executed, until another try.
func (x *exchange) busy(id []byte, text string) {
	x.w.Header()[executedHeader] = []string{"nothing"}
	x.refuse(http.StatusServiceUnavailable, id, wire.CodeInternalError, text)
}

// finish answers with a status alone.
func (x *exchange) finish(status int) {
	x.allowRefusal()
	x.w.WriteHeader(status)
}

// Drain ends the front. New sessions are refused with 503, and each session is left when none
// of its calls is in flight, or when ctx is done. Until then a session that another front can
// take accepts calls, as no other front could answer them; others refuse them with 503. Drain
// returns when all relays have returned.
func (f *Front) Drain(ctx context.Context) {
	f.mu.Lock()
	f.draining = true
	all := f.sessionsLocked()
	f.mu.Unlock()
	var left sync.WaitGroup
	for _, s := range all {
		left.Go(func() { s.leaveIdle(ctx) })
	}
	left.Wait()
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
