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

const (
	// retryAfter is the pause after the registry could not be opened, or a session could not be
	// registered.
	retryAfter = 5 * time.Second
	// maxSessions bounds the sessions of a process, because clients choose the conversation
	// keys. It is for the life of one client: attache serve has no teams.
	maxSessions = 1_000
)

// A sessionID identifies a session of a process. It includes the tenant because a client chooses the
// keys, and its requests may have credentials of several tenants.
type sessionID struct{ tenant, key string }

// A session is the state that this process keeps for a session. It stays until the process ends.
type session struct {
	key  string
	last atomic.Int64                  // about when a call began or ended last, in nanoseconds
	me   atomic.Pointer[store.Session] // nil until it is registered

	// The numbers of calls whose results may carry messages. The padding keeps each in a cache
	// line of its own, because each direction writes one of them at every call.
	_     [64]byte
	begun atomic.Int64
	_     [64]byte
	ended atomic.Int64
	_     [64]byte

	mail   atomic.Bool  // whether messages wait
	newest atomic.Int64 // the number of the last waiting message, 0 for none
	unseen atomic.Bool  // whether carried is not empty
	asked  atomic.Bool  // whether a call is asking the database for messages
	asking sync.Mutex   // held while the registry is asked, so that the last answer is used

	unsettled atomic.Int64 // the number of takings that were written and are not settled

	// Used by the goroutine of look:
	watch     *store.Watch
	announced int64     // the number of the last message that was announced to other processes
	counted   int64     // begun + ended at the last look
	renewed   time.Time // when this process renewed its lease
	reported  time.Time // when this process last reported calls to the registry
	nextWake  time.Time // when the session may be woken again
	wokenFor  int64     // the number of the last message that it was woken for

	mu        sync.Mutex
	view      *sessionstate.Context // of the last call
	client    string                // the client's name
	claim     store.Claim
	wakes     bool          // whether something could wake the session when it was registered
	ready     chan struct{} // closed when the current attempt to register has ended
	err       error         // of the last attempt
	tried     time.Time     // when it began
	carried   []*store.Taking
	mailSince time.Time // when the first waiting message was found
}

// calling reports whether a call is in flight. A call that the server never answers counts for
// an hour.
func (m *session) calling(now time.Time) bool {
	return m.begun.Load() > m.ended.Load() && now.Sub(time.Unix(0, m.last.Load())) < time.Hour
}

// keyOf returns the key of the session of a call, or "" if no other process could know the key:
// the key of a connection is not enough. If the client names no session, its process stands for it, because
// all servers of a client have one parent process.
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

// manyConversations returns the names of clients that hold many conversations in one process,
// so that the process does not identify a session.
func manyConversations() []string {
	return []string{"claude-ai", "Visual Studio Code", "Visual Studio Code - Insiders", "cursor-vscode", "windsurf-client", "Zed"}
}

// session returns the session of a call, or nil. A new session is registered in the background.
func (s *Shared) session(view *sessionstate.Context, results *toolresult.Memory) *session {
	client := results.ClientName()
	key := s.keyOf(view, client)
	if key == "" {
		return nil
	}
	id := sessionID{key: key} // of no tenant, unless the call has a principal
	if p := view.Principal; p != nil {
		id.tenant = p.Tenant
	}
	s.mu.Lock()
	m := s.sessions[id]
	if m == nil {
		if len(s.sessions) >= maxSessions || s.closed {
			s.mu.Unlock()
			return nil
		}
		m = &session{key: key}
		m.last.Store(s.o.Now().UnixNano())
		s.sessions[id] = m
		s.looking.Do(func() { s.work.Go(s.look) })
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

// register starts an attempt to register the session of a call, unless one is running, or the last one was
// less than retryAfter ago and would have the same result. It returns a channel that is closed when the
// attempt has ended. Messages never wait for it; only a call of a teams tool does.
func (s *Shared) register(m *session, view *sessionstate.Context, client string) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready != nil {
		select {
		case <-m.ready:
			// The attempt may have succeeded after the caller had found me to be nil.
			if m.me.Load() != nil || s.o.Now().Sub(m.tried) < retryAfter && !m.learnsWorkspaceLocked(view) {
				return m.ready
			}
		default:
			return m.ready
		}
	}
	m.claim, m.wakes = s.claim(m.key, view, client), s.o.Waker(host(view, client)) != nil
	m.ready, m.tried = make(chan struct{}), s.o.Now()
	ready := m.ready
	if !s.background(func(ctx context.Context) { defer close(ready); s.attach(ctx, m) }) {
		close(ready)
	}
	return ready
}

// host describes the program that a session runs in. The id in the client's calls is the client's own, even if attache
// or the operator has chosen another for the session.
func host(view *sessionstate.Context, client string) Host {
	h := Host{Client: client, Workspace: view.Workspace.Value}
	switch {
	case !view.Conversation.Empty():
		h.Session = view.Conversation.Value
	case toolresult.ClientOf(client).NamesInCalls: // it has made no call yet
	case view.Session.Source != sessionstate.None:
		h.Session = view.Session.Value
	}
	return h
}

// learnsWorkspaceLocked reports whether a call has the workspace, which was unknown at the last
// attempt to register the session.
func (m *session) learnsWorkspaceLocked(view *sessionstate.Context) bool {
	return m.claim.Workspace == "" && !(view.Workspace.Empty() && view.WorkspaceID.Empty())
}

// claim describes a session for the registry.
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
	claim, wakes := m.claim, m.wakes
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
	case errors.Is(err, store.ErrNoContext): // the workspace is unknown, perhaps only for now
	case err != nil:
		s.warn(err)
	default:
		m.me.Store(me)
		s.ask(ctx, db, m)
	}
}

// askEvery is the interval at which a shared database is asked for messages, because it does not
// report changes.
const askEvery = 10 * time.Second

// askWithCall asks a shared database for messages while a call is in flight, so that the result
// can carry them.
func (s *Shared) askWithCall(m *session) {
	if !s.o.Shared || m.mail.Load() || !m.asked.CompareAndSwap(false, true) {
		return
	}
	s.background(func(ctx context.Context) { // if s is closed, nothing asks any more
		defer m.asked.Store(false)
		if db, err := s.open(); err == nil {
			s.ask(ctx, db, m)
		}
	})
}

// ask asks the registry whether messages wait for a session. It reports whether the registry
// answered. After an error the flag stays as it was.
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
		m.mailSince = s.o.Now()
		m.mu.Unlock()
	}
	m.mail.Store(has)
	return true
}

// Look asks the registry immediately whether messages wait for a session of the process, without waiting for
// the next look of the background. It returns false before a session is registered. An error means that the
// registry cannot be opened.
func (s *Shared) Look(ctx context.Context) (mail bool, err error) {
	db, err := s.open()
	if err != nil {
		return false, err
	}
	for _, m := range s.allSessions() {
		s.ask(ctx, db, m)
		mail = mail || m.mail.Load()
	}
	return mail, nil
}

// A Host describes the program that a session runs in.
type Host struct {
	Client    string // its name, "" if unknown
	Session   string // its own id of the session, "" if unknown
	Workspace string // the path of the workspace, "" if unknown
}

// A Wake sends a notice about messages to a session. The notice contains no text of a peer.
type Wake func(ctx context.Context, notice string) error
