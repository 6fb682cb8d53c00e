// Package capture is the layer that reads from the traffic who the client is and where it
// works: workspace, conversation, protocol revision and credential. It attaches a snapshot of
// the session's context to every call, under [sessionstate.ContextKey], for the layers further
// in.
//
// It makes one kind of edit: it removes a credential under one of [CredentialKeys] from every
// part of a frame except the arguments of a call, so that no server sees it. Facts that it cannot
// read count as absent and never stop a call.
//
// # Who the session acts for
//
// A credential is looked up at its first request, and again before the principal is older than
// [Options.Recheck]. The look-up may use a disk or a network, so it runs in a goroutine of its
// own, and the request that needs the result waits for up to three seconds. In a busy session
// the next look-up ends before the old result expires, so no request waits. If the source does
// not answer, the old result is used until it expires. If a look-up fails in another way or
// takes too long, the session has no principal, and the context's Unidentified holds the
// reason: a layer that decides by the principal then refuses.
package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// DefaultWorkspaceKeys returns the places in _meta where a host may name the workspace:
// attache's own key and the two spellings of Orbit.
func DefaultWorkspaceKeys() [][]string {
	return [][]string{{"io.github.attache-mcp/workspace"}, {"orbit", "workspace"}, {"orbit.workspace"}}
}

// DefaultConversationKeys returns the places in _meta where hosts are known to name the
// conversation.
func DefaultConversationKeys() [][]string {
	return [][]string{{"vscode.conversationId"}, {"openai/session"}, {"ai.opencode/sessionID"},
		{"sessionID"}, {"antigravity.google/conversation_id"}, {"threadId"}, {"assemblySessionId"}}
}

// Options apply to every connection. The zero value captures facts from the traffic only.
type Options struct {
	// WorkspaceKeys and ConversationKeys are paths into _meta. The first that
	// holds a non-empty string wins; nil means the defaults.
	WorkspaceKeys, ConversationKeys [][]string

	// Roots allows asking a legacy client for its roots when a value is missing.
	Roots bool
	// GitRoot allows using the git root that Codex names in _meta of a call when no workspace is known.
	GitRoot bool

	// Identify returns the principal of a session with a credential, or without one;
	// nil if sessions are not identified. It may use a network, and must return when its
	// context is done. With an error it returns the principal that applies anyway, such as
	// one that the operator configured, or nil. It must be safe for concurrent use.
	Identify func(context.Context, Credential) (*sessionstate.Principal, error)
	// Accept lists those of [CredentialKeys] under which a credential is accepted.
	// Other credentials are removed too.
	Accept []string
	// Recheck is how long a principal is valid, and so how long a revoked role is still
	// used; 0 means one minute.
	Recheck time.Duration
	// Passing reports whether an error of Identify is temporary. The look-up is then
	// repeated after ten seconds, and no request waits for it. nil means never.
	Passing func(error) bool
	// Unanswered reports whether a temporary error is unrelated to the credential,
	// because its source did not answer. The principal that was found before is then
	// valid to the end of Recheck. nil means never.
	Unanswered func(error) bool
	// Patience is how long a request waits for its look-up; 0 means three seconds.
	Patience time.Duration
}

// A Shared holds the state that the layers of all connections share. It does not change.
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
			return nil, fmt.Errorf("%q is not a key of a credential: name one of %q", key, CredentialKeys())
		}
	}
	return &Shared{o: o, index: indexKeys(o.WorkspaceKeys, o.ConversationKeys, o.GitRoot)}, nil
}

// ConnOptions are the options of one connection. The zero value works.
type ConnOptions struct {
	// Base holds the facts known before the first frame, each with its source: the operator,
	// the host's variables, the git root. A Session fact in it is the session key, whatever
	// the traffic says. Only if its source is the host's environment, a conversation key in
	// _meta takes precedence.
	Base *sessionstate.Context

	// HostSession, if not nil, returns the session that the host's variables name for a client with
	// that clientInfo.name. At the handshake, and in a revision without one at the first request, it
	// replaces the session in Base if that is from those variables.
	HostSession func(client string) sessionstate.Fact

	// Directory is the directory in which the client started this process, "" if no client did.
	Directory string

	// Name is the session key if nothing else names the session, and the prefix of the key
	// after each further handshake; "" means random keys.
	Name string

	// Session is used instead of Name if other processes can continue the session and know
	// it by this key; else it is "".
	Session string

	// Sessions is the table of sessions, whose clock the layer uses; nil makes one. Clients
	// that do not trust each other must not share a table, because they choose the
	// conversation keys.
	Sessions *sessionstate.Sessions

	// Namespace is the prefix of the conversation keys of this connection, for clients on
	// several connections that share state kept by session.
	Namespace string

	// Identify, if not nil, replaces that of Options, because the credential was not sent in
	// the messages.
	Identify func(context.Context, Credential) (*sessionstate.Principal, error)

	// Known, if not nil, returns the owner of a message without a credential of its own if
	// that needs no look-up. It reports false if Identify has to be called. A look-up runs
	// in another goroutine: it is late if the process was suspended, and it cannot tell which
	// of several messages it is for.
	Known func(m *wire.Message) (p *sessionstate.Principal, err error, ok bool)

	// Waited, if not nil, is called after the context was attached to a call that has waited for its
	// look-up. The handlers of the layers outside have returned before.
	Waited func(call *middleware.Call)

	// Changed, if not nil, is called when the principal of a session or its permissions have
	// changed, because the lists that the client sees may have changed too. It runs in a
	// goroutine of its own.
	Changed func()

	// Log receives warnings; nil discards them.
	Log *slog.Logger
}

// A Conn is the layer of one connection and its state.
type Conn struct {
	*Shared
	conn ConnOptions
	name sessionstate.Fact // the name of the connection
	who  identities

	current atomic.Pointer[sessionstate.Context] // for the frame being handled
	view    identifiedView                       // used by the client's direction only
	client  string                               // the client of the last request without a handshake; used by that direction only

	mu         sync.Mutex            // guards the fields below
	initial    *sessionstate.Context // of each session: base and the facts of the handshake
	named      sessionstate.Fact     // the session of base, or the one that host has returned
	key        sessionstate.Fact     // the session key of this connection
	handshakes int                   // the number of handshakes that have begun
	ask        rootsAsk
}

// Connect returns the Conn of a connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	o.Base, o.Log = cmp.Or(o.Base, &sessionstate.Context{}), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Identify == nil {
		o.Identify = s.o.Identify
	}
	if o.Waited == nil {
		o.Waited = func(*middleware.Call) {}
	}
	if o.Sessions == nil {
		o.Sessions = sessionstate.NewSessions(sessionstate.SessionsOptions{})
	}
	c := &Conn{Shared: s, conn: o, name: o.connection(), who: identities{fallback: &identity{}, bySession: map[string]digest{}}}
	c.initial, c.named, c.key = o.Base, o.Base.Session, connectionKey(c.name, 0)
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
			c.conn.Log.WarnContext(ctx, "a message was refused: a credential could not be cut out of it", "err", err)
			return middleware.CallFrom(ctx).Answer(ctx, wire.ErrorReply(m.ID(), wire.CodeInvalidRequest, "refused: a credential could not be cut out of the message"))
		}
		now := c.conn.Sessions.Now()
		s, inherits := c.session(&f, now)
		id := c.identityOf(ctx, s.Key(), inherits, &f)
		found, pending := c.lookUp(id, m, now)
		if pending == nil || m.Kind() != wire.Request {
			c.attach(ctx, s, id, found, &f)
			return next(ctx, m)
		}
		copied := f // or every f would be on the heap, because the function below keeps it
		middleware.CallFrom(ctx).Suspend(m, pending, c.o.Patience, func(ctx context.Context, m *wire.Message) error {
			c.attach(ctx, s, id, c.await(id, pending), &copied)
			c.conn.Waited(middleware.CallFrom(ctx))
			return next(ctx, m)
		})
		return nil
	}
}

// Current returns the context of the frame being handled, or before the first frame the one of
// ConnOptions.Base. The upstream's environment is made of it when a frame starts the upstream.
// Any goroutine may call Current, and gets the context of a recent frame.
func (c *Conn) Current() *sessionstate.Context {
	return cmp.Or(c.current.Load(), c.conn.Base)
}

func (c *Conn) observe(ctx context.Context, m *wire.Message) (f facts) {
	if meta := m.Meta(); meta.Exists() {
		f = c.readMeta(ctx, meta)
		if f.protocol != "" && c.hostNamesSession() { // such a request has the client's name in place of a handshake
			c.learnClient(meta.Get(clientKey, "name"))
		}
	}
	if m.MethodIs("initialize") {
		c.initialize(middleware.CallFrom(ctx), m, &f)
	} else if m.MethodIs("notifications/roots/list_changed") {
		c.forgetRoots()
	}
	return f
}

// attach attaches the session's context to the call of a frame, with the principal found for id.
func (c *Conn) attach(ctx context.Context, s *sessionstate.Session, id *identity, found finding, f *facts) {
	c.remember(s, f)
	current := overlay(c.withPrincipal(s.Context(), id, found), f)
	c.current.Store(current)
	call := middleware.CallFrom(ctx)
	call.SetValue(sessionstate.ContextKey{}, current)
	explain(call, current, f)
}

// initialize handles the handshake of a legacy connection. Facts of an earlier handshake are
// no longer valid.
func (c *Conn) initialize(call *middleware.Call, m *wire.Message, f *facts) {
	c.who.mu.Lock()
	clear(c.who.bySession)
	c.who.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handshakes++
	c.key = connectionKey(c.name, c.handshakes)
	c.initial = c.conn.Base
	if c.hostNamesSession() {
		c.named = c.conn.HostSession(m.Get("params", "clientInfo", "name").Text())
	}
	if !f.workspace.Empty() {
		c.initial = c.conn.Base.WithWorkspace(sessionstate.Fact{Value: f.workspace.Value, Source: sessionstate.InitializeMeta, From: f.workspace.From})
	}
	client := toolresult.ClientOf(m.Get("params", "clientInfo", "name").Text())
	c.ask = rootsAsk{
		allowed: c.o.Roots && m.Get("params", "capabilities", "roots").Exists(),
		moves:   client.Moves,
		shared:  client.SharedRoot,
	}
	call.OnReply(c.readRevision)
}

// readRevision reads the protocol revision that client and server agreed on.
func (c *Conn) readRevision(_ context.Context, reply *wire.Message) error {
	revision := reply.Get("result", "protocolVersion").Text()
	if revision == "" || len(revision) > maxRevision {
		return nil
	}
	set := func(ctx *sessionstate.Context) *sessionstate.Context {
		return ctx.With(func(ctx *sessionstate.Context) { ctx.Protocol, ctx.Modern = revision, false })
	}
	c.mu.Lock()
	c.initial = set(c.initial)
	key := c.keyLocked(&facts{})
	c.mu.Unlock()
	c.conn.Sessions.Get(key.Value).Update(set)
	return nil
}

// keyLocked returns the key of the session that a request belongs to.
func (c *Conn) keyLocked(f *facts) sessionstate.Fact {
	named := c.named
	switch {
	case !named.Empty() && named.Source == sessionstate.Operator:
		return named
	case !f.conversation.Empty():
		key := f.conversation
		key.Value = c.conn.Namespace + key.Value
		return key
	case !named.Empty():
		return named
	}
	return c.key
}

// session returns the session that a frame belongs to, with the connection's initial
// facts. inherits reports whether a frame without a credential has the identity of the
// last one in its session: only after a handshake, and not in the modern era, in which
// each request has its own credential.
func (c *Conn) session(f *facts, now time.Time) (s *sessionstate.Session, inherits bool) {
	c.mu.Lock()
	key, initial, root := c.keyLocked(f), c.initial, c.ask.root
	inherits = c.handshakes > 0 && f.protocol == ""
	c.mu.Unlock()
	s = c.conn.Sessions.GetAt(key.Value, now)
	if s.Context().Session.Empty() {
		s.Update(func(old *sessionstate.Context) *sessionstate.Context {
			if !old.Session.Empty() {
				return nil
			}
			return initial.With(func(ctx *sessionstate.Context) { ctx.Session = key })
		})
	}
	useRoot(s, initial, root)
	return s, inherits
}

// remember adds facts of a request's _meta to the session: the first workspace and the
// protocol revision.
func (c *Conn) remember(s *sessionstate.Session, f *facts) {
	known := s.Context()
	if !f.workspace.Empty() && known.Workspace.Empty() {
		s.Update(func(old *sessionstate.Context) *sessionstate.Context {
			if !old.Workspace.Empty() {
				return old
			}
			return old.WithWorkspace(f.workspace)
		})
	}
	if f.protocol != "" && (f.protocol != known.Protocol || !known.Modern) {
		s.Update(func(ctx *sessionstate.Context) *sessionstate.Context {
			return ctx.With(func(ctx *sessionstate.Context) { ctx.Protocol, ctx.Modern = f.protocol, true })
		})
	}
}

// overlay returns the context of a session with the facts of a request's _meta, which
// take precedence.
func overlay(view *sessionstate.Context, f *facts) *sessionstate.Context {
	if !f.workspace.Empty() {
		view = view.WithWorkspace(f.workspace)
	}
	if view.Workspace.Empty() && !f.gitRoot.Empty() {
		view = view.WithWorkspace(f.gitRoot)
	}
	if !f.conversation.Empty() {
		view = view.WithConversation(f.conversation)
	}
	return view
}
