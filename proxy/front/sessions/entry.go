package sessions

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/attache-mcp/attache/proxy/internal/revive"
	"github.com/attache-mcp/attache/proxy/wire"
)

// An Entry is a session of a front. It is stored as soon as its server has answered initialize.
// Make one with Keeper.New.
type Entry struct {
	revive.Record
	Key Key

	k     *Keeper
	mu    sync.Mutex  // held during calls to the Store
	saved bool        // the Store was asked to save it; it may have failed: see unsaved
	over  bool        // left or lost: another front may have it now
	again *time.Timer // saves it again after a failure; nil before one

	unsaved atomic.Bool // the latest state is not in the Store
}

// New returns a session that is not stored yet.
func (k *Keeper) New(key Key) *Entry { return &Entry{Key: key, k: k} }

// Restore sets s to a session that was stored.
func (s *Entry) Restore(from Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Record.Restore(from)
	s.saved = true
}

// maxRecorded is the length of the longest message that is recorded.
const maxRecorded = 64 << 10

// Note returns a function that records the reply to a request which another server needs to
// continue the session, nil for any other message. After calling it, call Save.
func (s *Entry) Note(m *wire.Message) func(reply *wire.Message) {
	if m.Kind() != wire.Request || len(m.Frame()) > maxRecorded ||
		!m.MethodIs("initialize") && !m.MethodIs("logging/setLevel") && !m.MethodIs("resources/subscribe") && !m.MethodIs("resources/unsubscribe") {
		return nil
	}
	return s.Sent(m, true)
}

// Save stores the recorded session, if its server has answered initialize.
func (s *Entry) Save() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saveLocked()
}

// saveAgainAfter is the time from a Save that failed to the next one.
const saveAgainAfter = time.Second

func (s *Entry) saveLocked() {
	state, ok := s.State()
	if !ok || s.over {
		return
	}
	s.saved = true
	err := s.k.save(s.Key, state)
	s.unsaved.Store(err != nil)
	switch {
	case err == nil || errors.Is(err, ErrElsewhere): // Recheck closes a session that another front has
	case s.again == nil:
		s.again = time.AfterFunc(saveAgainAfter, s.saveAgain)
	default:
		s.again.Reset(saveAgainAfter)
	}
}

// saveAgain stores what could not be stored. A client that has its reply loses what it changed if this process is
// killed before that.
func (s *Entry) saveAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Unsaved() {
		s.saveLocked()
	}
}

// Unsaved reports whether the latest state could not be stored.
func (s *Entry) Unsaved() bool { return s.unsaved.Load() }

// Saved reports whether the session was stored.
func (s *Entry) Saved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved
}

// Lost reports whether another front has taken the session. If the session or its latest state is
// not in the Store, Lost stores it: the Store was not available before, or has lost it. Lost does
// not ask for a session that was left, because that would take it back. After an error, call it
// again.
func (s *Entry) Lost(ctx context.Context) (lost bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.saved || s.over {
		return false, nil
	}
	switch _, err = s.k.Take(ctx, s.Key); {
	case errors.Is(err, ErrElsewhere):
		s.over = true
		return true, nil
	case errors.Is(err, ErrNone), err == nil && s.Unsaved():
		s.saveLocked()
		return false, nil
	}
	return false, err
}

// maxRechecks is how many sessions Recheck checks at once.
const maxRechecks = 8

// Recheck calls lost with each session that another front has taken. It returns one of the
// errors of the Store.
func Recheck(ctx context.Context, all []*Entry, lost func(*Entry)) error {
	var checks errgroup.Group
	checks.SetLimit(maxRechecks)
	for _, s := range all {
		checks.Go(func() error {
			gone, err := s.Lost(ctx)
			if gone {
				lost(s)
			}
			return err
		})
	}
	return checks.Wait()
}

// Part makes requests for the session wait until Leave is called.
func (s *Entry) Part() {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	s.k.holdLocked(s.Key)
}

// Leave leaves the session after Part: it has ended, or else any front may take it.
func (s *Entry) Leave(ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ended && s.Unsaved() {
		s.saveLocked() // the next front continues with what is stored
	}
	// A Save or Lost that waits for mu must not take the session back. A Store that has just failed is not asked a
	// second time, because the front that ends would wait for it again; this front may still take the session.
	if s.over = true; s.saved && (ended || !s.Unsaved()) {
		s.k.leave(s.Key, ended)
	}
	s.k.Free(s.Key)
}
