package teams

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// A session is what this process knows of one of its sessions.
type session struct {
	key  string
	last atomic.Int64 // about when a call was made or was over, in nanoseconds
	me   atomic.Pointer[store.Session]

	// Calls whose result may carry messages. The two directions write one each, at every call:
	// apart from each other and from the rest, so that no processor waits for the other's.
	_     [64]byte
	begun atomic.Int64
	_     [64]byte
	ended atomic.Int64
	_     [64]byte

	mail   atomic.Bool  // messages wait
	newest atomic.Int64 // the number of the last of them, 0 for none
	unseen atomic.Bool  // carried has something
	asked  atomic.Bool  // a call has the database asked for messages
	asking sync.Mutex   // held while the file is asked for messages: the last answer counts

	// The goroutine's that looks:
	watch    *store.Watch
	toldOf   int64     // the number of the last message that other processes were told of
	counted  int64     // begun and ended together at the last look
	renewed  time.Time // when this process renewed its lease
	told     time.Time // when the registry was told that the session is at work
	nextWake time.Time // when it may be woken again

	mu       sync.Mutex
	view     *sessionstate.Context // of the last call
	client   string                // its name
	claim    store.Claim
	wake     Wake          // nil if nothing can wake the session
	ready    chan struct{} // closed when the attempt to register that is under way is over
	err      error         // of the last attempt
	tried    time.Time     // when that was
	carried  []*store.Taking
	mailFrom time.Time // since when messages wait
}

// calling reports whether a call is in flight. One that the server never answers counts for
// an hour.
func (m *session) calling(now time.Time) bool {
	return m.begun.Load() > m.ended.Load() && now.Sub(time.Unix(0, m.last.Load())) < time.Hour
}

// keyOf returns the key of the session of a call, "" if it could not be found again: the
// key of the connection alone is known to no other process.
func (s *Shared) keyOf(view *sessionstate.Context, client string) string {
	switch {
	case view.Session.Empty():
		return ""
	case view.Session.Source != sessionstate.None:
		return view.Session.Value
	case slices.Contains(manyConversations(), client):
		return ""
	}
	if process := s.o.ClientProcess(); process != "" {
		return "host:" + process
	}
	return ""
}

// manyConversations returns the names of clients of which one process holds many
// conversations, so that it does not stand for one.
func manyConversations() []string {
	return []string{"claude-ai", "Visual Studio Code", "Visual Studio Code - Insiders", "cursor-vscode", "Zed"}
}

// of returns the session of a call, nil if it is of none. The session is registered beside
// the messages.
func (s *Shared) of(view *sessionstate.Context, results *toolresult.Memory) *session {
	client := results.ClientName()
	key := s.keyOf(view, client)
	if key == "" {
		return nil
	}
	s.mu.Lock()
	m := s.sessions[key]
	if m == nil {
		if len(s.sessions) >= maxSessions || s.closed {
			s.mu.Unlock()
			return nil
		}
		m = &session{key: key}
		m.last.Store(s.o.Now().UnixNano())
		s.sessions[key] = m
		if !s.looking {
			s.looking = true
			s.work.Go(s.look)
		}
	}
	s.mu.Unlock()
	m.mu.Lock()
	m.view, m.client = view, client
	m.mu.Unlock()
	if m.me.Load() == nil {
		s.register(m, view, client)
	}
	return m
}

// register begins to register a session, unless that was tried just now. It returns a channel
// that is closed when the attempt is over.
func (s *Shared) register(m *session, view *sessionstate.Context, client string) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready != nil {
		select {
		case <-m.ready:
			if m.me.Load() != nil || s.o.Now().Sub(m.tried) < retryAfter && !m.better(view) {
				return m.ready
			}
		default:
			return m.ready
		}
	}
	m.claim, m.wake = s.claim(m.key, view, client), s.o.Waker(host(view, client))
	m.ready, m.tried = make(chan struct{}), s.o.Now()
	ready := m.ready
	if !s.beside(func(ctx context.Context) { defer close(ready); s.attach(ctx, m) }) {
		close(ready)
	}
	return ready
}

// host returns what is known of the program that a session runs in.
func host(view *sessionstate.Context, client string) Host {
	h := Host{Client: client, Workspace: view.Workspace.Value}
	if view.Session.Source != sessionstate.None {
		h.Session = view.Session.Value
	}
	return h
}

// better reports whether a call knows the workspace, which was not known when the session
// could not be registered. The caller holds m.mu.
func (m *session) better(view *sessionstate.Context) bool {
	return m.claim.Workspace == "" && !(view.Workspace.Empty() && view.WorkspaceID.Empty())
}

// claim returns what is known of the session, for the registry.
func (s *Shared) claim(key string, view *sessionstate.Context, client string) store.Claim {
	c := store.Claim{
		Key: key, Conversation: view.Session.Source == sessionstate.RequestMeta || view.Session.Source == sessionstate.InitializeMeta,
		Token: s.o.Token, Workspace: s.o.Workspace(view),
		Title: title(client, view.Workspace.Value),
	}
	trust, _ := view.Lookup("session.trust")
	c.Trust = trust.Value
	if p := view.Principal; p != nil {
		c.Tenant, c.Owner = p.Tenant, p.User
	}
	return c
}

// attach registers a session in the registry.
func (s *Shared) attach(ctx context.Context, m *session) {
	m.mu.Lock()
	claim, wakes := m.claim, m.wake != nil
	m.mu.Unlock()
	var me *store.Session
	db, err := s.open()
	if err == nil {
		me, err = db.Attach(ctx, claim, store.Attachment{
			Instance: s.instance, Server: s.o.Server, Host: s.o.Host, PID: s.o.PID, Wakes: wakes,
		})
	}
	m.mu.Lock()
	m.err = err
	m.mu.Unlock()
	switch {
	case errors.Is(err, store.ErrNoContext): // its workspace is not known, or not yet
	case err != nil:
		s.warn(err)
	default:
		m.me.Store(me)
		s.ask(ctx, db, m)
	}
}

// askEvery is how often a database is asked for messages that does not tell when it was
// changed.
const askEvery = 10 * time.Second

// askWithCall finds out, while a call is in flight, whether messages wait that its result can carry.
func (s *Shared) askWithCall(m *session) {
	if !s.o.Shared || m.mail.Load() || !m.asked.CompareAndSwap(false, true) {
		return
	}
	begun := s.beside(func(ctx context.Context) {
		defer m.asked.Store(false)
		if db, err := s.open(); err == nil {
			s.ask(ctx, db, m)
		}
	})
	if !begun {
		m.asked.Store(false)
	}
}

// ask finds out whether messages wait for a session. It reports whether the registry answered.
func (s *Shared) ask(ctx context.Context, db *store.Store, m *session) (answered bool) {
	me := m.me.Load()
	if me == nil {
		return false
	}
	m.asking.Lock()
	defer m.asking.Unlock()
	newest, err := db.Mail(ctx, me.Ref)
	if err != nil {
		return false
	}
	has := newest > 0
	m.newest.Store(newest)
	if has && !m.mail.Load() {
		m.mu.Lock()
		m.mailFrom = s.o.Now()
		m.mu.Unlock()
	}
	m.mail.Store(has)
	return true
}

// Look finds out now, and not at the next look, whether messages wait for a session of the
// process. It returns false before a session is registered.
func (s *Shared) Look(ctx context.Context) (mail bool, err error) {
	db, err := s.open()
	if err != nil {
		return false, err
	}
	for _, m := range s.all() {
		s.ask(ctx, db, m)
		mail = mail || m.mail.Load()
	}
	return mail, nil
}
