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
// relay sees the second one under another id and token. If its message cannot be edited, because it
// also has a result or would be too long, it is refused. With a [sessions.Store], sessions of the
// first kind continue in another process: after a restart, or in another front after this one.
//
// # Answers
//
// A request is answered with JSON if its reply is the first message for it and comes within five
// seconds, and with a stream of events otherwise. A stream always ends with the reply to its
// request, because some clients wait until their timeout for a reply that is missing. So no
// middleware in front of a Front may end or buffer a request, as http.TimeoutHandler does. The
// timeouts of http.Server do no harm. In revision 2025-11-25, a client that has lost its connection can
// take such a stream up again within two minutes, by a GET with Last-Event-ID.
//
// # What it does not do
//
// It does not terminate TLS, read files or interpret credentials: the program that embeds it
// does. It does not offer resumption of GET streams, nor the HTTP+SSE transport of 2024-11-05.
package front

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/abandoned"
	"github.com/attache-mcp/attache/proxy/front/internal/answer"
	"github.com/attache-mcp/attache/proxy/front/internal/inbox"
	"github.com/attache-mcp/attache/proxy/front/internal/limit"
	"github.com/attache-mcp/attache/proxy/front/internal/mirrored"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/front/internal/rename"
	"github.com/attache-mcp/attache/proxy/front/internal/taskkey"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
	"github.com/attache-mcp/attache/proxy/wire"
)

const sessionHeader, versionHeader = "Mcp-Session-Id", "Mcp-Protocol-Version"

// A Front is an http.Handler that serves MCP at one address.
type Front struct {
	o      Options
	log    *slog.Logger
	keeper *sessions.Keeper // nil without a Store

	// mu guards the fields up to draining. A session.mu may be locked while it is held, not the
	// other way round. Options.Open is called with mu held, so that two first requests of a conversation open
	// only one session.
	mu       sync.Mutex
	byID     map[string]*session // legacy sessions
	byKey    map[string]*session // those of 2026-07-28
	draining bool
	refused  struct{ unchecked, credential, address, limit, session limit.Refusals }
	relays   sync.WaitGroup // running relays, and deletions of ended sessions: see recordClose
	streams  tasks.Group    // streams on bare connections, which the HTTP server does not track

	pulse   outbox.Pulse
	keys    taskkey.Keys               // of the sessions in byKey
	renamed atomic.Uint64              // how many requests the relays know under another id
	names   atomic.Pointer[[][]string] // wire.Scanner.ArgumentNames of the relay that had the last message
}

const (
	defaultIdle           = 30 * time.Minute
	defaultReauthenticate = time.Minute
)

// New returns a Front.
func New(o Options) *Front {
	o.Limits = cmp.Or(o.Limits, DefaultLimits())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Idle = cmp.Or(max(o.Idle, 0), defaultIdle)
	o.Reauthenticate = cmp.Or(max(o.Reauthenticate, 0), defaultReauthenticate)
	if o.Conversation == nil {
		o.Conversation = func(*wire.Message) string { return "" }
	}
	f := &Front{o: o, log: o.Log, byID: map[string]*session{}, byKey: map[string]*session{}}
	f.names.Store(new([][]string))
	if o.Store != nil {
		f.keeper = sessions.NewKeeper(o.Store, o.Log)
	}
	return f
}

// A session is the session of one client: a relay, the calls in flight, and the streams that its
// messages go to.
//
// The handlers of its HTTP requests add their calls, put their messages into the inbox, and write the messages
// of their streams. The relay takes the messages from the inbox, and its goroutines call output, which finds
// the stream of each line.
//
// A session ends in closeLocked, whoever ends it: its client, its timer, its relay, Drain, or a front that
// needs room. After that no handler finds it, its calls are answered, and its relay reads the end of its input.
// The goroutine of run ends later, when the upstream has ended.
type session struct {
	f    *Front
	log  *slog.Logger
	id   string // Mcp-Session-Id; "" in revision 2026-07-28
	key  string // its key in Front.byKey; "" in earlier revisions
	who  Principal
	seen func(who Principal, credential string)
	in   *inbox.Inbox
	stop context.CancelFunc // ends the relay, whatever it waits for

	entry          *sessions.Entry // nil without a Store, and in revision 2026-07-28
	closeReason    closeReason     // guarded by f.mu
	params         mirrored.Params
	recorder       outbox.Recorder
	serverRequests callid.Unread // ids of the server's requests that the client has not answered

	// mu guards the fields below. It is never held while a stream may block: a client that does not read
	// would stop the handlers of all its other requests. So a function that holds mu calls Offer or Force of a
	// stream, and not Push. The mutex of a stream may be locked while mu is held, not the other way round.
	mu           sync.Mutex
	calls        map[string]*call // by id
	tokens       map[string]*call // by progress token
	gets         []*stream        // open GET streams, the newest last
	pending      [][]byte         // messages that wait for a stream
	pendingBytes int              // their size
	dropped      bool             // a message was dropped, which is logged once
	version      string           // the revision that initialize negotiated
	closed       bool
	abandoned    abandoned.Calls // cancelled calls that may still get messages, in 2026-07-28
	replied      callid.Recent   // ids of calls that have their reply, in 2026-07-28
	left         callid.Recent   // ids of calls whose clients closed the connection
	number       uint64          // number of the latest call
	refused      uint64          // how many calls were a server/discover that the server refused
	users        int             // HTTP requests in flight
	lastUsed     time.Time       // when the last of them ended
	timer        *time.Timer     // ends the session when it is idle; once closed, stops a stalled relay
	idle         chan struct{}   // closed when no call is running; nil while nobody waits for that
}

// A call is a request of the client in flight: from add, before the relay has the message, to dropLocked, before
// its response ends. Its fields do not change after add.
type call struct {
	answer.Request
	id         string // callid.Text of sent()
	request    *http.Request
	name       *rename.Name // the id for the relay; nil if it is that of the client
	token      string       // callid.Text of the progress token; "" for none
	stream     *stream
	number     uint64                    // counts the calls of a session
	onReply    func(reply *wire.Message) // records what the reply negotiates; may be nil
	listsTools bool                      // tools/list, in a revision with annotations
	subscribes bool                      // a subscription, which accepts only its own notifications
}

// A stream carries messages from a relay to one HTTP response.
type stream struct {
	outbox.Stream
	calls int // calls in flight whose replies go to the stream; guarded by session.mu
}

func newStream(events bool) *stream {
	t := &stream{}
	t.Init(events)
	return t
}

// A closeReason says why a session is closed.
type closeReason uint8

const (
	reasonEnded    closeReason = iota // for good
	reasonReleased                    // another process may take the session over
	reasonIdle                        // like reasonReleased, but only while no call is running
	reasonTaken                       // another process has taken the session over
)

// endTime is how long Drain waits for clients to read the ends of their streams.
const endTime = 2 * time.Second

// Drain ends the front. It refuses new sessions with 503, and closes each session when no call but
// subscriptions is in flight, or when ctx is done. Until then a session that another front can continue still
// accepts calls, because no other front can answer them yet; other sessions refuse calls with 503. Drain
// returns when all relays have returned. Call it before http.Server.Shutdown, which waits for streams.
func (f *Front) Drain(ctx context.Context) {
	f.mu.Lock()
	f.draining = true
	// draining is set, so no session is added after this, and relays.Wait below waits for all sessions.
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
	return slices.AppendSeq(slices.Collect(maps.Values(f.byID)), maps.Values(f.byKey))
}

// Draining reports whether the front is ending.
func (f *Front) Draining() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.draining
}

// errDraining is returned for a new session while the front drains.
var errDraining = errors.New("the proxy is shutting down")

// find returns the legacy session of that id. It returns nil if the session belongs to another
// principal.
func (f *Front) find(id string, who Principal) *session {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.byID[id]; s != nil && s.who.ID == who.ID {
		return s
	}
	return nil
}

// create opens a legacy session. Its id begins with route.
func (f *Front) create(route string, who Principal, credential string) (*session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.openLocked(route+sessions.NewID(), "", Opening{Who: who, Credential: credential})
	if err != nil {
		return nil, err
	}
	f.byID[s.id] = s
	return s, nil
}

// restTime is how long a session must have been idle before it may be ended to make room.
const restTime = time.Minute

// openLocked opens a session within the limits. If there are too many, it ends the principal's session that has
// been idle longest, at least for restTime: most clients never end their sessions. A session has an id or,
// without a handshake, a key. The caller holds f.mu, and puts the session into its table before it releases
// f.mu: the relay already runs, and closes the session if it ends at once.
func (f *Front) openLocked(id, key string, o Opening) (*session, error) {
	if f.draining {
		return nil, errDraining
	}
	// The session is counted before it is opened, because the other fronts of the process do not wait for f.mu.
	err := f.o.Limits.Open(o.Who.ID)
	evicted := err != nil && f.evictLocked(o.Who)
	// The evicted session has left the limits, though its upstream may still be ending.
	if evicted {
		err = f.o.Limits.Open(o.Who.ID)
	}
	if errors.Is(err, limit.ErrFull) {
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err != nil {
		return nil, err
	}
	s, err := f.open(id, key, o)
	if errors.Is(err, ErrBusy) && !evicted {
		f.evictLocked(o.Who) // for the next try: the upstream takes a moment to end
	}
	if err != nil {
		f.o.Limits.Close(o.Who.ID)
		return nil, err
	}
	return s, nil
}

// evictLocked ends the session of the principal that has been idle longest, and reports whether there was
// one. It never ends a session of another principal: no principal may end the sessions of others. The caller
// holds f.mu.
func (f *Front) evictLocked(who Principal) bool {
	var oldest *session
	var since time.Time
	for _, s := range f.sessionsLocked() {
		if s.who.ID != who.ID {
			continue
		}
		s.mu.Lock()
		// A session with an open stream, or with a call whose client has disconnected, is in use.
		idle := s.users == 0 && !s.closed && len(s.calls) == 0 && time.Since(s.lastUsed) >= restTime
		used := s.lastUsed
		s.mu.Unlock()
		if idle && (oldest == nil || used.Before(since)) {
			oldest, since = s, used
		}
	}
	if oldest == nil {
		return false
	}
	oldest.log.Info("an idle session was ended to make room for another one of its principal")
	return oldest.closeLocked("the session was idle, and was ended to make room for another one", reasonEnded)
}
