// Package briefing is the layer that puts the policies and objectives that hold
// for a session in front of its first tool response, once.
//
// The text is fetched as soon as the identity is known, so the first response
// does not wait for it; at most it waits for Options.Wait and then goes without.
// Whether it is this response's turn is decided on the way back, atomically: of
// many first calls in flight exactly one carries the block. A response the model
// would not see as the answer to its call does not spend the turn (see
// carriable).
//
// The servers of one client are processes of one session. Where they can know that, the
// turn is also asked for in a store that they share (Options.Shared), beside the messages.
//
// The layer enriches: without a key, with a bad one, or with the source down
// the tools work, nothing is injected, and one warning says why. Text from the
// upstream never goes into the block.
package briefing

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// MarkerKey is the _meta key of the block: it names attache, and the digest of
// the text.
const MarkerKey = "io.github.attache-mcp/briefing"

// Structured says what is done with a result that has structuredContent, of
// which Claude Code shows the model nothing else.
type Structured string

// The ways of Structured.
const (
	Defer    Structured = "defer"     // carry the block and keep the turn open, three times at most; the default
	TextOnly Structured = "text-only" // drop structuredContent where the tool declares no outputSchema
	Member   Structured = "member"    // also add it to structuredContent, where the schema admits it
)

// DefaultWait is how long a first response waits for the briefing.
const DefaultWait = 2 * time.Second

// Options configure the layer.
type Options struct {
	// Source knows the policies. It is asked once a session.
	Source policy.Source
	// Scope is asked for when the principal has none.
	Scope string
	// Anonymous says that the source answers without a principal's credential:
	// it knows the operator's, or needs none.
	Anonymous bool
	// ByWorkspace says that the answer hangs on where the workspace is: the source is
	// asked again when that becomes known before the briefing was given.
	ByWorkspace bool
	// OmitEmpty gives no block where the source has nothing to say.
	OmitEmpty bool
	// Credential returns a session's own credential, "" if it has none.
	Credential func(session string) string
	// Store keeps the turns; nil stands for one in memory. It answers at once.
	Store sessionstate.Store
	// Shared opens what keeps the turns among all processes of a session; nil if each
	// gives the briefing. It is called, beside the messages, when Store has given a turn
	// of a session whose key other processes may have too, and returns the same each
	// time. With an error, or if the store fails or takes longer than Wait, the briefing
	// is given as Store has it, with one warning, and the store is done without from then
	// on.
	Shared func() (sessionstate.Store, error)
	// Response and Instructions are the channels; neither stands for Response.
	Response, Instructions bool
	Structured             Structured
	// Wait bounds how long a response is held back, by the source and by the shared
	// store, once each; 0 stands for DefaultWait.
	Wait time.Duration
	// MaxBytes bounds the block; 0 stands for no bound.
	MaxBytes int
	// TTL is the idle time that ends a session; 0 stands for 12 hours.
	TTL time.Duration
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
	// Given, if not nil, is told of each briefing carried. For demo and audit.
	Given func(session, text string)
	// Log takes warnings; nil discards them.
	Log *slog.Logger
}

// A Briefing is the layer and the sessions it knows.
type Briefing struct {
	o Options

	mu       sync.Mutex
	sessions map[string]*session
	tools    map[string]tool
	warned   map[string]bool
	alone    bool // Options.Shared is done without
}

// session is what is known of one session's briefing. Guarded by Briefing.mu,
// but for what is written before ready is closed.
type session struct {
	ready     chan struct{}
	text      string // "" when there is nothing to give; written before ready is closed
	why       string // why there is nothing to give; likewise
	scope     string // whose policies they are; likewise
	principal *sessionstate.Principal
	workspace string
	done      bool
	deferred  int
	passed    int       // results of tools that went without the briefing
	retry     time.Time // when to ask a source again that failed; zero if it did not
	asked     bool      // the shared store, whose turn it is
	again     time.Time // when to ask it again; zero if it did not say no
	used      time.Time
}

// retryAfter is how long a source that failed is left alone.
const retryAfter = 30 * time.Second

// maxSessions bounds the table; conversation keys are the client's to vary.
const maxSessions = 10_000

// New returns the layer.
func New(o Options) *Briefing {
	if o.Store == nil {
		o.Store = sessionstate.NewMemoryStore(o.Now)
	}
	if !o.Response && !o.Instructions {
		o.Response = true
	}
	if o.Structured == "" {
		o.Structured = Defer
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.TTL <= 0 {
		o.TTL = sessionstate.DefaultTTL
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Credential == nil {
		o.Credential = func(string) string { return "" }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Briefing{o: o, sessions: map[string]*session{}, tools: map[string]tool{}, warned: map[string]bool{}}
}

// Layer returns the layer. It stands innermost: a call that another layer
// answers itself has no response to carry anything.
func (b *Briefing) Layer() middleware.Layer {
	return middleware.Layer{Name: "briefing", Wrap: b.wrap}
}

func (b *Briefing) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From == wire.Client && m.Kind() == wire.Request {
			b.request(ctx, m)
		}
		return next(ctx, m)
	}
}

func (b *Briefing) request(ctx context.Context, m *wire.Message) {
	call := middleware.CallFrom(ctx)
	view, _ := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context)
	if view == nil || view.Session.Empty() {
		return
	}
	switch {
	case m.MethodIs("tools/call"):
		s := b.open(view)
		b.skipped(call, view, s)
		if b.o.Response && s != nil {
			tool := b.tool(m.Name())
			call.OnReply(func(_ context.Context, reply *wire.Message) error {
				return b.respond(call, view, s, tool, reply)
			})
		}
	case m.MethodIs("tools/list"):
		call.OnReply(b.learn)
		b.open(view)
	case m.MethodIs("initialize"), m.MethodIs("server/discover"):
		if b.o.Instructions {
			s := b.open(view)
			call.OnReply(func(_ context.Context, reply *wire.Message) error { return b.instruct(call, s, reply) })
		} else if m.MethodIs("initialize") {
			b.open(view)
		}
	case m.MethodIs("ping"):
	default:
		// A server/discover alone may be a probe that is killed again; whatever
		// else a client asks, the session is meant.
		b.open(view)
	}
}

// open returns the session while there may be something to give it, nil
// otherwise, and begins fetching its briefing if nobody has.
func (b *Briefing) open(view *sessionstate.Context) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, now := view.Session.Value, b.o.Now()
	s := b.sessions[key]
	if s != nil && now.Sub(s.used) > b.o.TTL {
		s = nil
		b.o.Store.Sweep(context.Background(), b.o.TTL)
	}
	if s != nil && s.done {
		s.used = now
		return nil
	}
	moved := s != nil && b.o.ByWorkspace && s.workspace != view.Workspace.Value
	if s == nil || s.principal != view.Principal || moved || !s.retry.IsZero() && now.After(s.retry) {
		if len(b.sessions) >= maxSessions {
			clear(b.sessions)
		}
		s = &session{ready: make(chan struct{}), principal: view.Principal, workspace: view.Workspace.Value}
		b.sessions[key] = s
		go b.fetch(s, view)
	}
	s.used = now
	select {
	case <-s.ready:
		if s.text == "" || now.Before(s.again) {
			return nil
		}
	default:
	}
	return s
}

// fetch asks the source, and makes the text.
func (b *Briefing) fetch(s *session, view *sessionstate.Context) {
	defer close(s.ready)
	q := policy.Query{
		Scope:         b.o.Scope,
		Workspace:     view.WorkspaceID.Value,
		WorkspacePath: view.Workspace.Value,
		Credential:    policy.Credential(b.o.Credential(view.Session.Value)),
	}
	if view.Principal != nil && view.Principal.Scope != "" {
		q.Scope = view.Principal.Scope
	}
	if view.Principal == nil && q.Scope == "" && q.Credential == "" && !b.o.Anonymous {
		s.why = "nobody is identified and no scope is set"
		b.warnOnce("no briefing: nobody is identified and no scope is set; set ATTACHE_API_KEY, or policy.scope", nil)
		return
	}
	effective, err := b.o.Source.Effective(context.Background(), q)
	s.scope = q.Scope
	if err != nil {
		s.why = "the policy source gave none: " + err.Error()
		b.mu.Lock()
		s.retry = b.o.Now().Add(retryAfter)
		b.mu.Unlock()
	}
	switch {
	case errors.Is(err, policy.ErrUnauthorized):
		b.warnOnce("no briefing: the policy source refused the key; check ATTACHE_API_KEY", err)
	case errors.Is(err, policy.ErrUnknownScope):
		b.warnOnce("no briefing: the policy source does not know the scope; see `attache policy show --scope`", err)
	case err != nil:
		b.warnOnce("no briefing: the policy source could not be read; see `attache policy check`", err)
	case b.o.OmitEmpty && effective.Empty():
		s.why = "there are no policies for this session"
	default:
		s.text = policy.Render(effective, b.o.MaxBytes)
	}
}

func (b *Briefing) warnOnce(text string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.warned[text] {
		return
	}
	b.warned[text] = true
	if err != nil {
		b.o.Log.Warn(text, "err", err)
		return
	}
	b.o.Log.Warn(text)
}

// maxPassed is how many results of a session may go without the briefing before that is
// logged: a server can shape its results so that none takes it.
const maxPassed = 3

// passedBy counts a result that cannot take the briefing, and warns once.
func (b *Briefing) passedBy(s *session, reply *wire.Message, why string) {
	if reply.Kind() != wire.Result && !reply.TooLarge() {
		return
	}
	b.mu.Lock()
	s.passed++
	warn := s.passed == maxPassed
	b.mu.Unlock()
	if warn {
		b.warnOnce("three results of a session went without the briefing: "+why+"; see docs/threat-model.md", nil)
	}
}

// settled notes what became of a turn, so that the calls of a session whose
// briefing is over cost nothing from here on.
func (b *Briefing) settled(s *session, o sessionstate.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o == sessionstate.Deferred {
		s.deferred++
	}
	s.done = o == sessionstate.Given || s.deferred >= sessionstate.MaxDeferred
}
