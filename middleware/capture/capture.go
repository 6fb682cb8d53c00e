// Package capture is the layer that reads from the traffic who the client is and where it
// works: workspace, conversation, protocol revision and credential. It attaches a snapshot of
// the session's context to every call, under [sessionstate.ContextKey], for the layers further
// in.
//
// It makes one kind of edit: it removes a credential under one of [CredentialKeys] from every
// part of a frame but the arguments of a call, so that no server sees it. Facts that it cannot
// read count as absent and never stop a call.
//
// # Who the session acts for
//
// A credential is looked up when its first request comes, and again before the principal is
// older than [Options.Recheck]. The look-up may use a disk or a network, so it runs beside the
// messages. The request that needs it waits until it has ended, for three seconds at most. In a
// busy session the next look-up ends before the old answer expires,
// so nothing waits, and if its source does not answer, the old answer holds until it expires.
// If a look-up fails otherwise or takes too long, the session has no principal, and the
// context's Unidentified is the reason: a layer that decides by the principal then refuses.
package capture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// The _meta keys a host may put a credential under, if the operator allows it.
const (
	CredentialKey = "io.github.attache-mcp/apiKey" // an API key
	TokenKey      = "io.github.attache-mcp/token"  // a token (JWT)
)

// CredentialKeys returns the keys whose values are removed from frames. They must not reach a
// server in a frame that cannot be edited either.
func CredentialKeys() []string { return []string{CredentialKey, TokenKey} }

// DefaultWorkspaceKeys returns the places in _meta where a host may name the workspace:
// attache's own key and the two spellings of Orbit.
func DefaultWorkspaceKeys() [][]string {
	return [][]string{{"io.github.attache-mcp/workspace"}, {"orbit", "workspace"}, {"orbit.workspace"}}
}

// DefaultConversationKeys returns the places in _meta where hosts are known to name the
// conversation.
func DefaultConversationKeys() [][]string {
	return [][]string{{"vscode.conversationId"}, {"openai/session"}, {"ai.opencode/sessionID"},
		{"sessionID"}, {"antigravity.google/conversation_id"}, {"threadId"}}
}

// Options are what holds for every connection. The zero value captures from the
// traffic alone.
type Options struct {
	// WorkspaceKeys and ConversationKeys are paths into _meta, the first that
	// holds a non-empty string wins; nil stands for the defaults.
	WorkspaceKeys, ConversationKeys [][]string

	// Roots allows asking a legacy client for its roots when a value is missing.
	Roots bool

	// Identify says who a session acts for, with the credential that came with it,
	// or without one; nil if nobody is identified. It may go to a network, and
	// returns when its context is done. With an error it returns what holds all the
	// same, such as what the operator said, and nil where nothing does. Connections
	// call it at the same time.
	Identify func(context.Context, Credential) (*sessionstate.Principal, error)
	// Accept are the keys of _meta a credential is accepted under, of
	// [CredentialKeys]. One that is not accepted is cut out too.
	Accept []string
	// Recheck is how long a principal is held; 0 stands for a minute. A role that
	// was taken away is gone after that time.
	Recheck time.Duration
	// Passing reports whether a failure of Identify is one that passes by itself;
	// such a look-up is made again after ten seconds, and no request waits for it. nil
	// stands for never.
	Passing func(error) bool
	// Unanswered reports whether a failure that passes says nothing of the
	// credential, since its source did not answer: the principal that was found
	// before is then held to the end of Recheck. nil stands for never.
	Unanswered func(error) bool
	// Patience is how long a request waits for its look-up; 0 stands for three seconds.
	Patience time.Duration
}

// A Shared holds what the layers of all connections have in common. It does not change.
type Shared struct {
	o     Options
	index map[string][]candidate
}

// Compile checks and prepares the options. It returns an error for an empty path, and for a
// key in Accept that is not a key of a credential.
func Compile(o Options) (*Shared, error) {
	if o.WorkspaceKeys == nil {
		o.WorkspaceKeys = DefaultWorkspaceKeys()
	}
	if o.ConversationKeys == nil {
		o.ConversationKeys = DefaultConversationKeys()
	}
	if o.Patience <= 0 {
		o.Patience = patience
	}
	if o.Recheck <= 0 {
		o.Recheck = time.Minute
	}
	if o.Passing == nil {
		o.Passing = func(error) bool { return false }
	}
	if o.Unanswered == nil {
		o.Unanswered = func(error) bool { return false }
	}
	for _, path := range slices.Concat(o.WorkspaceKeys, o.ConversationKeys) {
		if len(path) == 0 {
			return nil, errors.New("a path into _meta is empty: name the key")
		}
	}
	for _, key := range o.Accept {
		if !slices.Contains(CredentialKeys(), key) {
			return nil, fmt.Errorf("no credential comes under %q: name one of %q", key, CredentialKeys())
		}
	}
	return &Shared{o: o, index: indexKeys(o)}, nil
}

// ConnOptions are the state in which a connection begins. The zero value works.
type ConnOptions struct {
	// Base holds the facts known before the first frame, each with its source: the operator,
	// the host's variables, the git root. A Session fact in it is the session key, whatever
	// the traffic says. If its source is the host's environment, a conversation key in _meta
	// comes before it.
	Base *sessionstate.Context

	// Name is the session key if nothing else names the session, and the beginning of the key
	// after each further handshake; "" means random keys.
	Name string

	// Session is the session key if nothing else names the session, and is known to other
	// processes in which the session goes on; "" if it goes on in none. It stands in place of
	// Name.
	Session string

	// Sessions is the table of sessions, whose clock the layer uses; nil makes one. Clients
	// that do not trust each other must not share a table, because they choose the
	// conversation keys.
	Sessions *sessionstate.Sessions

	// Namespace begins the conversation keys of this connection, for use where clients on
	// other connections share what is kept by session.
	Namespace string

	// Identify, if not nil, is asked instead of that of Options: the credential came by
	// another way than the messages.
	Identify func(context.Context, Credential) (*sessionstate.Principal, error)

	// Known, if not nil, returns the owner of a message without a credential of its own where
	// that needs no look-up; it reports false where Identify is to be asked. A look-up runs
	// beside the messages: it is late if the process stands still meanwhile, and does not know
	// which of several messages it is for.
	Known func(m *wire.Message) (p *sessionstate.Principal, err error, ok bool)

	// Changed, if not nil, is called when a session acts for another principal than before, or
	// for one with other permissions: the lists that the client sees may have changed. The
	// goroutine of the look-up calls it.
	Changed func()

	// Log takes warnings; nil discards them.
	Log *slog.Logger
}

// A Conn is the layer of one connection and what it has learnt.
type Conn struct {
	*Shared
	base     *sessionstate.Context // what the connection began with
	name     sessionstate.Fact     // of the connection
	space    string                // see ConnOptions.Namespace
	who      identities
	resolve  func(context.Context, Credential) (*sessionstate.Principal, error) // nil if nobody is identified
	owner    func(*wire.Message) (*sessionstate.Principal, error, bool)         // see ConnOptions.Known; may be nil
	sessions *sessionstate.Sessions
	changed  func()
	log      *slog.Logger

	// Of the frame being handled.
	current atomic.Pointer[sessionstate.Context]
	view    identifiedView // client's direction only

	mu         sync.Mutex            // guards what both directions touch
	begin      *sessionstate.Context // what each session begins with: base, and what the handshake said
	key        sessionstate.Fact     // the session key of this connection
	handshakes int                   // begun on it
	ask        rootsAsk
}

// Connect returns the Conn of a connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	c := &Conn{
		Shared: s, base: o.Base, name: o.connection(), space: o.Namespace, resolve: o.Identify, owner: o.Known,
		sessions: o.Sessions, changed: o.Changed, log: o.Log,
	}
	c.key = connectionKey(c.name, 0)
	if c.resolve == nil {
		c.resolve = s.o.Identify
	}
	if c.base == nil {
		c.base = &sessionstate.Context{}
	}
	if c.sessions == nil {
		c.sessions = sessionstate.NewSessions(sessionstate.SessionsOptions{})
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.begin = c.base
	c.who.own, c.who.of, c.who.logged = &identity{}, map[string]digest{}, map[string]bool{}
	return c
}

// Layer returns the layer. It refuses a frame that it cannot edit and that may contain a
// credential.
func (c *Conn) Layer() middleware.Layer {
	return middleware.Layer{Name: "capture", Wrap: c.wrap, Guarded: CredentialKeys(), Whole: len(c.o.Accept) > 0}
}

func (c *Conn) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From != wire.Client {
			return next(ctx, m)
		}
		f := c.observe(ctx, m)
		if err := c.cutCredentials(ctx, m); err != nil {
			c.log.WarnContext(ctx, "a message was refused: a credential could not be cut out of it", "err", err)
			return middleware.CallFrom(ctx).Answer(ctx, wire.ErrorReply(m.ID(), wire.CodeInvalidRequest, "refused: a credential could not be cut out of the message"))
		}
		now := c.sessions.Now()
		s, inherits := c.session(&f, now)
		id := c.identityOf(ctx, s.Key(), inherits, &f)
		found, pending := c.lookUp(id, m, now)
		if pending == nil || m.Kind() != wire.Request {
			c.attach(ctx, s, id, found, &f)
			return next(ctx, m)
		}
		kept := f.clone()
		middleware.CallFrom(ctx).Suspend(m, pending, c.o.Patience, func(ctx context.Context, m *wire.Message) error {
			c.attach(ctx, s, id, c.await(id, pending), &kept)
			return next(ctx, m)
		})
		return nil
	}
}

// Current returns the context of the frame being handled. The upstream's environment is made
// of it when that frame starts the upstream. Before the first frame it returns the context in
// which the connection began. Any goroutine may call it, and gets the context of a recent
// frame.
func (c *Conn) Current() *sessionstate.Context {
	if current := c.current.Load(); current != nil {
		return current
	}
	return c.base
}

// observe reads a frame from the client.
func (c *Conn) observe(ctx context.Context, m *wire.Message) (f facts) {
	if meta := m.Meta(); meta.Exists() {
		f = c.readMeta(ctx, meta)
	}
	if m.MethodIs("initialize") {
		c.initialize(middleware.CallFrom(ctx), m, &f)
	} else if m.MethodIs("notifications/roots/list_changed") {
		c.forgetRoots()
	}
	return f
}

// attach attaches the session's context to the call of a frame, with the principal that was
// found for id.
func (c *Conn) attach(ctx context.Context, s *sessionstate.Session, id *identity, found finding, f *facts) {
	c.remember(s, f)
	current := overlay(c.withPrincipal(s.Context(), id, found), f)
	c.current.Store(current)
	call := middleware.CallFrom(ctx)
	call.SetValue(sessionstate.ContextKey{}, current)
	explain(call, current, f)
}

// initialize starts a legacy connection, or starts it again: facts of an earlier handshake no
// longer hold.
func (c *Conn) initialize(call *middleware.Call, m *wire.Message, f *facts) {
	c.who.mu.Lock()
	clear(c.who.of)
	c.who.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handshakes++
	c.key = connectionKey(c.name, c.handshakes)
	c.begin = c.base
	if f.workspace != "" {
		c.begin = c.base.WithWorkspace(sessionstate.Fact{Value: f.workspace, Source: sessionstate.InitializeMeta, From: f.workspaceFrom})
	}
	c.ask = rootsAsk{allowed: c.o.Roots && m.Get("params", "capabilities", "roots").Exists()}
	call.OnReply(c.readRevision)
}

// readRevision reads the revision that client and server agreed on.
func (c *Conn) readRevision(_ context.Context, reply *wire.Message) error {
	revision := reply.Get("result", "protocolVersion").Text()
	if revision == "" || len(revision) > maxRevision {
		return nil
	}
	set := func(ctx *sessionstate.Context) *sessionstate.Context {
		return ctx.With(func(ctx *sessionstate.Context) { ctx.Protocol, ctx.Modern = revision, false })
	}
	c.mu.Lock()
	c.begin = set(c.begin)
	key := c.keyLocked(&facts{})
	c.mu.Unlock()
	c.sessions.Get(key.Value).Update(set)
	return nil
}

// keyLocked returns the key of the session a request belongs to.
func (c *Conn) keyLocked(f *facts) sessionstate.Fact {
	base := c.base.Session
	switch {
	case !base.Empty() && base.Source == sessionstate.Operator:
		return base
	case f.conversation != "":
		return sessionstate.Fact{Value: c.space + f.conversation, Source: sessionstate.RequestMeta, From: f.conversationFrom}
	case !base.Empty():
		return base
	}
	return c.key
}

// session returns the session a frame belongs to, with the facts every session
// of this connection begins with. inherits says that a frame without a credential
// is from whom the last one in its session was: after a handshake, and not in the
// modern era, in which each request speaks for itself.
func (c *Conn) session(f *facts, now time.Time) (s *sessionstate.Session, inherits bool) {
	c.mu.Lock()
	key, begin := c.keyLocked(f), c.begin
	inherits = c.handshakes > 0 && f.protocol == ""
	c.mu.Unlock()
	s = c.sessions.GetAt(key.Value, now)
	if s.Context().Session.Empty() {
		s.Update(func(old *sessionstate.Context) *sessionstate.Context {
			if !old.Session.Empty() {
				return nil
			}
			return begin.With(func(ctx *sessionstate.Context) { ctx.Session = key })
		})
	}
	return s, inherits
}

// remember adds to the session what a request's _meta says of it: the first
// workspace, and the revision.
func (c *Conn) remember(s *sessionstate.Session, f *facts) {
	known := s.Context()
	if f.workspace != "" && known.Workspace.Empty() {
		s.Update(func(old *sessionstate.Context) *sessionstate.Context {
			if !old.Workspace.Empty() {
				return old
			}
			return old.WithWorkspace(f.workspaceFact())
		})
	}
	if f.protocol != "" && (f.protocol != known.Protocol || !known.Modern) {
		s.Update(func(ctx *sessionstate.Context) *sessionstate.Context {
			return ctx.With(func(ctx *sessionstate.Context) { ctx.Protocol, ctx.Modern = strings.Clone(f.protocol), true })
		})
	}
}

// overlay lays what a request's _meta says over what is known of its session.
func overlay(view *sessionstate.Context, f *facts) *sessionstate.Context {
	if f.workspace != "" {
		view = view.WithWorkspace(f.workspaceFact())
	}
	if f.conversation != "" {
		view = view.WithConversation(sessionstate.Fact{Value: f.conversation, Source: sessionstate.RequestMeta, From: f.conversationFrom})
	}
	return view
}
