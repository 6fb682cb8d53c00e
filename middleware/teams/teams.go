// Package teams is the layer that registers the session of a connection among those of the
// user's agents, and puts messages from other agents in front of the results of tools.
//
// A message goes into a result of any server of the session, exactly once and in order: the
// servers take turns, and a message is settled after its bytes were written. The text is
// framed so that no part of it looks like a text of the user or of attache ([Block]).
//
// Without messages the layer costs a call almost nothing: a goroutine of the process checks
// whether the registry has changed, and sets a flag that the calls read. Before a tool is
// called, nothing is registered and no file is opened.
//
// The layer enriches: if the registry cannot be used, the tools work without messages, and one
// warning gives the reason.
package teams

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

const (
	// DefaultWait is how long a result is held back for its messages.
	DefaultWait = 300 * time.Millisecond
	// lookEvery is the interval at which the registry is checked for changes.
	lookEvery = 250 * time.Millisecond
	// A session without calls is woken after wakeAfter, and then every wakeEvery.
	wakeAfter, wakeEvery = 5 * time.Second, 30 * time.Second
	// reportEvery is the interval at which a process reports its calls while messages wait.
	reportEvery = time.Second
	// maxWatches bounds the files that a process has open for its sessions.
	maxWatches = 50
	// closeTime bounds how long Close waits.
	closeTime = time.Second
)

// Options are the options that the connections of a process share.
type Options struct {
	// Open opens the registry. It is called in the background, and again later if it failed.
	Open func() (*store.Store, error)
	// Shared means that the registry is in a database that several machines share. Such a
	// database does not report changes, so each call asks it for messages.
	Shared bool
	// Watches is a directory for this user, machine and registry. With its files, the processes
	// of a session agree on the one that asks a shared database for all of them. If it is "",
	// each process asks.
	Watches string
	// Server is the name of the server behind this process. Host and PID identify the process.
	Server, Host string
	PID          int
	// Token authenticates a session that attache started; "" for other sessions.
	Token string
	// LateCredentials means that credentials come with requests, so that the tenant may not be known
	// before the first one.
	LateCredentials bool
	// Workspace returns the id of the workspace of a session, "" if it has none.
	Workspace func(*sessionstate.Context) string
	// ClientProcess returns a name of the process that started this one, "" if it is unknown.
	ClientProcess func() string
	// TTL is the idle time that ends a session of a person, at least [store.Expiry].
	TTL time.Duration
	// Structured selects what happens to results with structuredContent; "" means toolresult.Auto.
	Structured toolresult.Structured
	// Wait bounds how long a result is held back; 0 means DefaultWait.
	Wait time.Duration
	// Waker returns the function that wakes a session without calls, nil if there is none. A nil
	// Waker wakes no session.
	Waker func(Host) Wake
	// Resume restarts agents that have ended and have new messages; nil if this process cannot.
	// It is called every 30 seconds, in the background.
	Resume func(ctx context.Context, s *store.Store, me *store.Session, view *sessionstate.Context)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log receives warnings; nil discards them.
	Log *slog.Logger
}

// Shared holds the sessions of a process, and serves any number of connections at once.
type Shared struct {
	o        Options
	instance string
	work     sync.WaitGroup // for goroutines in the background
	done     chan struct{}  // closed by Close
	warned   sync.Once

	registry registry

	// Used by the goroutine of look:
	watches   int       // the number of opened watches
	disturbed time.Time // when leases could not be renewed for the last time

	mu       sync.Mutex
	sessions map[sessionID]*session
	looking  sync.Once // starts look
	closed   bool
}

// Compile prepares a process for its connections. It opens no file and starts no goroutine.
func Compile(o Options) *Shared {
	o.Structured, o.Log = cmp.Or(o.Structured, toolresult.Auto), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Waker == nil {
		o.Waker = func(Host) Wake { return nil }
	}
	return &Shared{
		o: o, instance: rand.Text(), done: make(chan struct{}), sessions: map[sessionID]*session{},
	}
}

// A registry has the registry of sessions when it is open, or why it could not be opened.
type registry struct {
	mu    sync.Mutex
	db    *store.Store
	err   error     // of the last attempt
	tried time.Time // when it ended; zero before the first
}

// open returns the registry, and opens it unless that failed less than retryAfter ago. It may block for as
// long as the disk does, so it is not for the goroutines that pass messages.
func (s *Shared) open() (*store.Store, error) {
	r := &s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.db == nil && s.o.Now().Sub(r.tried) >= retryAfter {
		r.db, r.err = s.o.Open()
		r.tried = s.o.Now()
	}
	return r.db, r.err
}

// Close removes this process from its sessions in the registry. Close the connections first. It returns after
// closeTime at the latest, because a client waits for the end of its server; leases that are left expire.
func (s *Shared) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return
	}
	sessions := s.allSessions()
	close(s.done)
	detached := make(chan struct{})
	go func() {
		defer close(detached)
		s.work.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		for _, m := range sessions {
			if me := m.me.Load(); me != nil {
				if db, err := s.open(); err == nil {
					_ = db.Detach(ctx, me.Ref, s.instance) // after an error its lease expires
				}
			}
		}
	}()
	select {
	case <-detached:
	case <-time.After(closeTime):
	}
}

// background runs f in a goroutine. It returns false if s is closed. mu is held until the goroutine counts, so
// that none begins while Close waits for all.
func (s *Shared) background(f func(context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Go(func() { f(context.Background()) })
	return true
}

// warn logs the first failure of the registry.
func (s *Shared) warn(err error) {
	s.warned.Do(func() {
		s.o.Log.Warn("messages from other agents do not arrive: the registry of sessions cannot be used; see docs/teams.md", "err", err)
	})
}
