package sessionstate

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"
)

// A Session is one session key with its current Context. It is safe for use by several
// goroutines.
type Session struct {
	key     string
	current atomic.Pointer[Context]

	updating sync.Mutex // held while current is replaced
	table    *Sessions  // nil if the session is in no table
}

func newSession(key string) *Session {
	s := &Session{key: key}
	s.current.Store(new(Context))
	return s
}

// Key returns the session key, or its hash if it has 256 bytes or more.
func (s *Session) Key() string { return s.key }

// Context returns the current snapshot, which is never nil. It does not lock or allocate.
func (s *Session) Context() *Context { return s.current.Load() }

// Update replaces the snapshot with the result of change. If change returns nil, the snapshot
// stays. Updates of one session run one after another, so change must be quick and must not call
// Update. Other goroutines read the snapshot passed to change, so change must use the With methods.
func (s *Session) Update(change func(*Context) *Context) {
	s.updating.Lock()
	defer s.updating.Unlock()
	old := s.current.Load()
	next := change(old)
	if next == nil || next == old {
		return
	}
	s.current.Store(next)
	if s.table != nil {
		s.table.weigh(s)
	}
}

// size returns the approximate memory use of s in bytes.
func (s *Session) size() int { return sessionBytes + len(s.key) + s.Context().size() }

// SessionsOptions are the options of [NewSessions]; the zero value works.
type SessionsOptions struct {
	// TTL is the idle time after which a session expires; 0 means [DefaultTTL].
	TTL time.Duration
	// Max is the maximum number of sessions; 0 means [DefaultMax]. If there are more, those
	// idle longest expire.
	Max int
	// MaxBytes is the approximate memory limit of all sessions; 0 means [DefaultMaxBytes]. If
	// they need more, those idle longest expire.
	MaxBytes int
	// Now is the clock; nil means the monotonic clock of the process.
	Now func() time.Time
}

const (
	// DefaultTTL is the default of [SessionsOptions].TTL.
	DefaultTTL = 12 * time.Hour
	// DefaultMax is the default of [SessionsOptions].Max.
	DefaultMax = 10_000
	// DefaultMaxBytes is the default of [SessionsOptions].MaxBytes: ten thousand usual sessions.
	DefaultMaxBytes = 32 << 20
)

// Sessions is the table of the sessions of a process. It is bounded in time, number and memory,
// and safe for use by several goroutines.
type Sessions struct {
	ttl time.Duration
	now func() time.Time

	mu      sync.Mutex
	entries *lru[*Session] // guarded by mu
}

// sessionBytes is the approximate size of a session without the strings of its context.
const sessionBytes = 1 << 10

// NewSessions returns an empty table. It starts no goroutine: Get removes expired sessions.
func NewSessions(o SessionsOptions) *Sessions {
	o.TTL, o.Max, o.MaxBytes = cmp.Or(o.TTL, DefaultTTL), cmp.Or(o.Max, DefaultMax), cmp.Or(o.MaxBytes, DefaultMaxBytes)
	if o.Now == nil {
		// Each message reads the clock, and only differences count. Reading the monotonic
		// clock alone takes half the time of time.Now.
		made := time.Now()
		o.Now = func() time.Time { return made.Add(time.Since(made)) }
	}
	t := &Sessions{ttl: o.TTL, now: o.Now, entries: newLRU[*Session](o.Max)}
	t.entries.maxBytes = o.MaxBytes
	return t
}

// Get returns the session of key and marks it as used. It makes a new session if there is none
// or if it has expired. Call Get for each message: a Session that the caller keeps longer may
// expire without notice. For the empty key Get returns a new session that no other call
// returns.
func (t *Sessions) Get(key string) *Session { return t.GetAt(key, t.now()) }

// Now returns the time of the table's clock.
func (t *Sessions) Now() time.Time { return t.now() }

// GetAt is like Get for a caller that has just called Now.
func (t *Sessions) GetAt(key string, now time.Time) *Session {
	if key == "" {
		return newSession("")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries.sweep(now, t.ttl, nil)
	e := t.entries.use(key, now)
	if e.value == nil {
		e.value = newSession(e.key)
		e.value.table = t
		t.entries.weigh(e, e.value.size())
	}
	return e.value
}

// weigh updates the size of s if it is still in the table.
func (t *Sessions) weigh(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.entries.byKey[s.key]; ok && at.Value.(*entry[*Session]).value == s {
		t.entries.weigh(at.Value.(*entry[*Session]), s.size())
	}
}
