package sessionstate

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"
)

// A Session is one session key and what is known under it. Its methods are safe
// for use by several goroutines.
type Session struct {
	key     string
	current atomic.Pointer[Context]

	updating sync.Mutex // held while current is replaced
	table    *Sessions  // that keeps it; nil for none
}

func newSession(key string) *Session {
	s := &Session{key: key}
	s.current.Store(new(Context))
	return s
}

// Key returns the session key, or its hash if it has 256 bytes or more.
func (s *Session) Key() string { return s.key }

// Context returns the current snapshot. It is never nil, takes no lock and does
// not allocate.
func (s *Session) Context() *Context { return s.current.Load() }

// Update replaces the snapshot by the result of change and returns the new snapshot; if change
// returns nil, nothing is replaced. Updates of one session run one after the other, so change
// must be quick and must not call Update. Other goroutines read the snapshot that change gets,
// so it must use the With methods.
func (s *Session) Update(change func(*Context) *Context) *Context {
	s.updating.Lock()
	defer s.updating.Unlock()
	old := s.current.Load()
	next := change(old)
	if next == nil || next == old {
		return old
	}
	s.current.Store(next)
	if s.table != nil {
		s.table.weigh(s)
	}
	return next
}

// size returns about how much memory s takes.
func (s *Session) size() int { return sessionBytes + len(s.key) + s.Context().size() }

// SessionsOptions are the options of [NewSessions]; the zero value works.
type SessionsOptions struct {
	// TTL is how long a session may be idle before it is over; 0 means
	// [DefaultTTL].
	TTL time.Duration
	// Max is how many sessions are kept; 0 means [DefaultMax]. One more ends the
	// session that has been idle longest.
	Max int
	// MaxBytes is about how much memory they may take; 0 means [DefaultMaxBytes]. More
	// ends the sessions that have been idle longest.
	MaxBytes int
	// Now is the clock; nil means one that goes on from when the table was made.
	Now func() time.Time
}

const (
	// DefaultTTL is the idle time after which a session is over.
	DefaultTTL = 12 * time.Hour
	// DefaultMax is how many sessions are kept at once.
	DefaultMax = 10_000
	// DefaultMaxBytes is how much memory they may take: ten thousand everyday ones fit.
	DefaultMaxBytes = 32 << 20
)

// Sessions is the table of the sessions of this process. It is bounded in time
// and number, and safe for use by several goroutines.
type Sessions struct {
	ttl time.Duration
	now func() time.Time

	mu      sync.Mutex
	entries *lru[*Session] // guarded by mu
}

// sessionBytes is about what a session takes beside the texts of its context.
const sessionBytes = 1 << 10

// NewSessions returns an empty table. It starts no goroutine: sessions that are
// over are removed by the calls of Get.
func NewSessions(o SessionsOptions) *Sessions {
	o.TTL, o.Max, o.MaxBytes = cmp.Or(o.TTL, DefaultTTL), cmp.Or(o.Max, DefaultMax), cmp.Or(o.MaxBytes, DefaultMaxBytes)
	if o.Now == nil {
		// Only differences count, and each message asks: the monotonic clock alone
		// takes half the time of both.
		made := time.Now()
		o.Now = func() time.Time { return made.Add(time.Since(made)) }
	}
	t := &Sessions{ttl: o.TTL, now: o.Now, entries: newLRU[*Session](o.Max)}
	t.entries.maxBytes = o.MaxBytes
	return t
}

// Get returns the session of key and counts as its use. It makes a new session if there is
// none or its idle time is over. Call it for each message: a Session that is kept longer may
// end without notice. The empty key names no session: Get then returns a new session that no
// other call returns.
func (t *Sessions) Get(key string) *Session { return t.GetAt(key, t.now()) }

// Now reads the clock of the table.
func (t *Sessions) Now() time.Time { return t.now() }

// GetAt is Get for a caller that has just read the clock with Now.
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

// weigh notes the size of s, if it is still kept.
func (t *Sessions) weigh(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.entries.byKey[s.key]; ok && at.Value.(*entry[*Session]).value == s {
		t.entries.weigh(at.Value.(*entry[*Session]), s.size())
	}
}

// Len returns the number of sessions in the table, which includes expired ones until the
// next Get.
func (t *Sessions) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries.byKey)
}
