// Package capture is the layer that reads who and where out of the traffic:
// workspace, conversation, protocol revision and credential. It attaches a
// snapshot of the session's context to every call, under
// [sessionstate.ContextKey], for the layers further in.
//
// It edits one thing: a credential in a request's _meta is cut out, so that no
// server ever sees it. It refuses nothing, and what it cannot read counts as
// absent: an unreadable fact never stops a call.
//
// # Who the session acts for
//
// A credential is looked up when its first request comes, and again before the
// principal has been held for Options.Recheck. The look-up may go to a disk or a
// network, so it runs beside the messages: the request that needs it is held back
// until it is over, at most for Options.Patience, and in a busy session the next
// look-up is over before the old answer has run out, so nothing waits. A look-up
// that fails, or takes too long, leaves the session without a principal, and
// [Capture.LookupFailed] says why: whoever decides by the principal then refuses.
package capture

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"strconv"
	"strings"
	"sync"
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

// CredentialKeys returns the keys whose values are cut out of what goes on, and
// must not reach a server in a frame that cannot be edited either.
func CredentialKeys() []string { return []string{CredentialKey, TokenKey} }

// DefaultWorkspaceKeys are the places in _meta where a host may name the
// workspace: our own key, and the two spellings of Orbit.
func DefaultWorkspaceKeys() [][]string {
	return [][]string{{"io.github.attache-mcp/workspace"}, {"orbit", "workspace"}, {"orbit.workspace"}}
}

// DefaultConversationKeys are the places in _meta where hosts are known to name
// the conversation.
func DefaultConversationKeys() [][]string {
	return [][]string{{"vscode.conversationId"}, {"openai/session"}, {"ai.opencode/sessionID"},
		{"sessionID"}, {"antigravity.google/conversation_id"}, {"threadId"}}
}

// Options configure the layer. The zero value captures from the traffic alone.
type Options struct {
	// Base holds the facts known before the first frame, each with its source:
	// the operator's, the host's variables, the git root. A Session fact in it is
	// the session key whatever the traffic says, unless its source is the host's
	// environment, which a conversation key in _meta precedes.
	Base *sessionstate.Context

	// Connection is the session key of last resort, which names this connection, and
	// begins that of each further handshake; "" stands for random ones.
	Connection string

	// Sessions is the table of sessions, whose clock is that of the layer; nil makes
	// one.
	Sessions *sessionstate.Sessions

	// WorkspaceKeys and ConversationKeys are paths into _meta, the first that
	// holds a non-empty string wins; nil stands for the defaults.
	WorkspaceKeys, ConversationKeys [][]string

	// Roots allows asking a legacy client for its roots when a value is missing.
	Roots bool

	// Identify says who a session acts for, with the credential that came with it,
	// or without one; nil if nobody is identified. It may go to a network, and
	// returns when its context is done. With an error it returns what holds all the
	// same, such as what the operator said, and nil where nothing does.
	Identify func(context.Context, Credential) (*sessionstate.Principal, error)
	// Changed, if not nil, is told when a session turns out to act for another than
	// before, or one with other permissions: what it is shown may be other now. It is
	// called by the goroutine of the look-up.
	Changed func()
	// Accept are the keys of _meta a credential is accepted under, of
	// [CredentialKeys]. One that is not accepted is cut out too.
	Accept []string
	// Recheck is how long a principal is held; 0 stands for a minute. A role that
	// was taken away is gone after that time.
	Recheck time.Duration
	// Passing reports whether a failure of Identify is one that passes by itself;
	// such a look-up is made again after Retry, and no request waits for it. nil
	// stands for never, 0 for [DefaultRetry].
	Passing func(error) bool
	Retry   time.Duration
	// Patience is how long a request waits for its look-up; 0 stands for
	// [DefaultPatience].
	Patience time.Duration

	// Log takes warnings; nil discards them.
	Log *slog.Logger
}

// A Capture is the layer and what it knows.
type Capture struct {
	o       Options
	index   map[string][]candidate
	who     identified
	current *sessionstate.Context // of the frame being handled; client's direction only

	mu         sync.Mutex // guards what both directions touch
	base       *sessionstate.Context
	conn       sessionstate.Fact // the key of this connection
	handshakes int               // begun on it
	ask        rootsAsk
}

// New returns a Capture for one connection.
func New(o Options) *Capture {
	if o.Base == nil {
		o.Base = &sessionstate.Context{}
	}
	if o.Sessions == nil {
		o.Sessions = sessionstate.NewSessions(sessionstate.SessionsOptions{})
	}
	if o.WorkspaceKeys == nil {
		o.WorkspaceKeys = DefaultWorkspaceKeys()
	}
	if o.ConversationKeys == nil {
		o.ConversationKeys = DefaultConversationKeys()
	}
	if o.Recheck <= 0 {
		o.Recheck = time.Minute
	}
	if o.Passing == nil {
		o.Passing = func(error) bool { return false }
	}
	if o.Retry <= 0 {
		o.Retry = DefaultRetry
	}
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Capture{o: o, base: o.Base, index: indexKeys(o), conn: connectionKey(o.Connection, 0)}
	c.who.own, c.who.known, c.who.told = &identity{}, map[string]*identity{}, map[string]bool{}
	return c
}

// connectionKey makes the session key of last resort, after a number of handshakes.
func connectionKey(named string, handshakes int) sessionstate.Fact {
	switch {
	case named == "":
		var b [8]byte
		rand.Read(b[:]) // never fails: crypto/rand, Go 1.24
		named = "connection-" + hex.EncodeToString(b[:])
	case handshakes > 1:
		named += "-" + strconv.Itoa(handshakes)
	}
	return sessionstate.Fact{Value: named, Source: sessionstate.None, From: "this connection"}
}

// Layer returns the layer.
func (c *Capture) Layer() middleware.Layer {
	return middleware.Layer{Name: "capture", Wrap: c.wrap, Guarded: CredentialKeys()}
}

func (c *Capture) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From != wire.Client {
			return next(ctx, m)
		}
		f := c.observe(ctx, m)
		now := c.o.Sessions.Now()
		s := c.session(&f, now)
		id := c.identityOf(ctx, s.Key(), &f)
		found, pending := c.lookUp(id, now)
		if pending == nil || m.Kind() != wire.Request {
			c.attach(ctx, s, id, found, &f)
			return next(ctx, m)
		}
		kept := f.kept()
		middleware.CallFrom(ctx).Suspend(m, pending, c.o.Patience, func(ctx context.Context, m *wire.Message) error {
			c.attach(ctx, s, id, c.await(id, pending), &kept)
			return next(ctx, m)
		})
		return nil
	}
}

// Current returns the context of the frame being handled: what the upstream's
// environment is made of when that frame starts it. Before the first frame that is
// what the options have. Call it in the client's direction.
func (c *Capture) Current() *sessionstate.Context {
	if c.current == nil {
		return c.o.Base
	}
	return c.current
}

// observe reads a frame of the client's, and cuts credentials out of it.
func (c *Capture) observe(ctx context.Context, m *wire.Message) (f facts) {
	if meta := m.Meta(); meta.Exists() {
		f = c.readMeta(ctx, meta)
	}
	if m.MethodIs("initialize") {
		c.initialize(middleware.CallFrom(ctx), m, &f)
	} else if m.MethodIs("notifications/roots/list_changed") {
		c.forgetRoots()
	}
	if f.carries != [2]bool{} {
		for i, key := range CredentialKeys() {
			if f.carries[i] {
				c.cut(ctx, m, key)
			}
		}
	}
	if len(f.twins) > maxTwins {
		c.cut(ctx, m)
		return f
	}
	for _, key := range f.twins {
		c.cut(ctx, m, key)
	}
	return f
}

// cut takes the credential under a key of _meta out of a frame, and all of _meta
// without a key.
func (c *Capture) cut(ctx context.Context, m *wire.Message, key ...string) {
	path := append([]string{"params", "_meta"}, key...)
	if err := m.Delete(path...); err != nil {
		c.o.Log.WarnContext(ctx, "the credential in _meta could not be cut out of the request", "key", strings.Join(key, ""), "err", err)
		return
	}
	if call := middleware.CallFrom(ctx); call.Noted() {
		call.Note(middleware.Note{
			Layer: "capture", Act: middleware.Edited, Why: "a credential goes to no server",
			Path: path, Before: []byte(`"[hidden]"`),
		})
	}
}

// attach attaches what is known to the call of a frame, and who id was found to be.
func (c *Capture) attach(ctx context.Context, s *sessionstate.Session, id *identity, found finding, f *facts) {
	view := c.apply(s, c.withPrincipal(s, id, found), f)
	c.current = view
	call := middleware.CallFrom(ctx)
	call.SetValue(sessionstate.ContextKey{}, view)
	c.explain(call, view, f)
}

// initialize begins a legacy connection, or begins it anew: what an earlier
// handshake said of this connection is over.
func (c *Capture) initialize(call *middleware.Call, m *wire.Message, f *facts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handshakes++
	c.conn = connectionKey(c.o.Connection, c.handshakes)
	base := c.o.Base
	if f.workspace != "" {
		base = base.WithWorkspace(sessionstate.Fact{Value: f.workspace, Source: sessionstate.InitializeMeta, From: f.workspaceFrom})
	}
	c.base = base
	c.ask = rootsAsk{allowed: c.o.Roots && m.Get("params", "capabilities", "roots").Exists()}
	call.OnReply(c.initialized)
}

// initialized reads the revision the two agreed on.
func (c *Capture) initialized(_ context.Context, reply *wire.Message) error {
	revision := reply.Get("result", "protocolVersion").Text()
	if revision == "" {
		return nil
	}
	set := func(ctx *sessionstate.Context) *sessionstate.Context {
		return ctx.With(func(ctx *sessionstate.Context) { ctx.Protocol, ctx.Modern = revision, false })
	}
	c.mu.Lock()
	c.base = set(c.base)
	key := c.key(&facts{})
	c.mu.Unlock()
	c.o.Sessions.Get(key.Value).Update(set)
	return nil
}

// key returns the key of the session a request belongs to. The caller holds mu.
func (c *Capture) key(f *facts) sessionstate.Fact {
	given := c.o.Base.Session
	switch {
	case !given.Empty() && given.Source == sessionstate.Operator:
		return given
	case f.conversation != "":
		return sessionstate.Fact{Value: f.conversation, Source: sessionstate.RequestMeta, From: f.conversationFrom}
	case !given.Empty():
		return given
	}
	return c.conn
}

// session returns the session a frame belongs to, with the facts every session
// of this connection begins with.
func (c *Capture) session(f *facts, now time.Time) *sessionstate.Session {
	c.mu.Lock()
	key, base := c.key(f), c.base
	c.mu.Unlock()
	s := c.o.Sessions.GetAt(key.Value, now)
	if s.Context().Session.Empty() {
		s.Update(func(old *sessionstate.Context) *sessionstate.Context {
			if !old.Session.Empty() {
				return nil
			}
			return base.With(func(ctx *sessionstate.Context) { ctx.Session = key })
		})
	}
	return s
}

// apply lays what the request's _meta says over the session's context.
func (c *Capture) apply(s *sessionstate.Session, view *sessionstate.Context, f *facts) *sessionstate.Context {
	if f.workspace != "" {
		w := sessionstate.Fact{Value: f.workspace, Source: sessionstate.RequestMeta, From: f.workspaceFrom}
		if view.Workspace.Empty() {
			view = s.Update(func(old *sessionstate.Context) *sessionstate.Context {
				if !old.Workspace.Empty() {
					return old
				}
				return old.WithWorkspace(w)
			})
		}
		view = view.WithWorkspace(w)
	}
	if f.conversation != "" {
		view = view.WithConversation(sessionstate.Fact{Value: f.conversation, Source: sessionstate.RequestMeta, From: f.conversationFrom})
	}
	if f.protocol != "" && (f.protocol != view.Protocol || !view.Modern) {
		set := func(ctx *sessionstate.Context) *sessionstate.Context {
			return ctx.With(func(ctx *sessionstate.Context) { ctx.Protocol, ctx.Modern = strings.Clone(f.protocol), true })
		}
		s.Update(set)
		view = set(view)
	}
	return view
}
