// Package teams is the layer that registers the session of a connection among those of the
// user's agents, and carries messages from other agents in front of the results of tools.
//
// Any result of any server of the session carries them, exactly once and in order: the
// servers take turns, and a message is settled when the bytes have left. The text
// is framed so that nothing in it can pass for the user's or for attache's ([Block]).
//
// Without mail the layer costs a call next to nothing: a goroutine of the process asks whether
// the file has changed, and sets a flag that the calls read. Nothing is registered, and
// no file opened, before a tool is called.
//
// The layer enriches: where the registry cannot be used the tools work, no messages come, and
// one warning says why.
package teams

import (
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
	// lookEvery is how often the file is asked for changes.
	lookEvery = 250 * time.Millisecond
	// wakeAfter and wakeEvery say when a session that makes no calls is woken.
	wakeAfter, wakeEvery = 5 * time.Second, 30 * time.Second
	// tellEvery is how often a process at work says so while messages wait.
	tellEvery = time.Second
	// retryAfter is how long a session that could not be registered is left alone.
	retryAfter = 5 * time.Second
	// maxSessions bounds the sessions of a process: conversation keys are the clients' to
	// choose.
	maxSessions = 1_000
	// maxWatches bounds the files that a process has open for its sessions.
	maxWatches = 50
	// closeTime bounds what Close waits for.
	closeTime = time.Second
)

// Options are what the connections of a process have in common.
type Options struct {
	// Open opens the registry. It is called once, in the background.
	Open func() (*store.Store, error)
	// Shared says that the registry is in a database that several machines share. It does not
	// say when it was changed, so it is asked for messages with each call.
	Shared bool
	// Watches is a directory of this user, machine and registry, by whose files the processes of
	// a session agree which of them asks a shared database for all; "" where each does.
	Watches string
	// Server is the name of the server behind this process, Host and PID where it runs.
	Server, Host string
	PID          int
	// Token proves a session that attache started, "" for another.
	Token string
	// Workspace returns the id of the workspace of a session, "" if it has none.
	Workspace func(*sessionstate.Context) string
	// ClientProcess names the process that started this one, "" if that is not known.
	ClientProcess func() string
	// TTL is the idle time that ends a session of a person; 0 stands for 12 hours.
	TTL time.Duration
	// Structured is about results with structuredContent; "" stands for toolresult.Auto.
	Structured toolresult.Structured
	// Wait bounds how long a result is held back; 0 stands for DefaultWait.
	Wait time.Duration
	// Waker returns what tells a session that makes no calls of messages, nil if nothing
	// can; nil for none.
	Waker func(Host) Wake
	// Resume starts the agents again that are over and for which messages wait; nil if this
	// process cannot. It is called every 30 seconds, in the background.
	Resume func(ctx context.Context, s *store.Store, me *store.Session, view *sessionstate.Context)
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
	// Log takes warnings; nil discards them.
	Log *slog.Logger
}

// A Host is what is known of the program that a session runs in.
type Host struct {
	Client    string // the name that it gives, "" if none is known
	Session   string // its own id of the session, "" if it has told none
	Workspace string // the path, "" if it is not known
}

// A Wake tells a session of messages by a notice, which has nothing in it that a peer wrote.
type Wake func(ctx context.Context, notice string) error

// Shared holds the sessions of a process, and serves any number of connections at once.
type Shared struct {
	o        Options
	instance string
	work     sync.WaitGroup // what runs in the background
	done     chan struct{}  // closed by Close
	warned   sync.Once

	open func() (*store.Store, error)

	watches int // that were opened, by the goroutine that looks

	mu       sync.Mutex
	sessions map[string]*session // by session key
	looking  bool
	closed   bool
}

// Compile prepares a process for its connections. It opens nothing.
func Compile(o Options) *Shared {
	if o.Structured == "" {
		o.Structured = toolresult.Auto
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
	if o.Waker == nil {
		o.Waker = func(Host) Wake { return nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Shared{
		o: o, instance: rand.Text(), done: make(chan struct{}), sessions: map[string]*session{},
		open: sync.OnceValues(o.Open),
	}
}

// Close takes the sessions of the process out of the registry, when its connections are
// closed.
func (s *Shared) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return
	}
	registered := s.all()
	close(s.done)
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.work.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		for _, m := range registered {
			if me := m.me.Load(); me != nil {
				if db, err := s.open(); err == nil {
					_ = db.Detach(ctx, me.Ref, s.instance) // its lease lapses
				}
			}
		}
	}()
	select {
	case <-over:
	case <-time.After(closeTime):
	}
}

// beside runs f in the background, unless the process is ending. No message waits for it.
func (s *Shared) beside(f func(context.Context)) bool {
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
