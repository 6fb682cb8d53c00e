package sessions

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/attache-mcp/attache/proxy/internal/revive"
	"github.com/attache-mcp/attache/proxy/wire"
)

// An Entry is a session of a front that its Store keeps as soon as its server has answered
// initialize. Make one with Keeper.New.
type Entry struct {
	revive.Record
	Key Key

	k     *Keeper
	mu    sync.Mutex // held while the Store is asked
	saved bool
	over  bool
}

// New returns a session that is not kept yet.
func (k *Keeper) New(key Key) *Entry { return &Entry{Key: key, k: k} }

// Restore makes s what is kept.
func (s *Entry) Restore(from Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Record.Restore(revive.State(from))
	s.saved = true
}

// maxRecorded is how long a message may be that is kept.
const maxRecorded = 64 << 10

// Note returns what records the reply to a request that another server would have to be told
// too, nil for any other message. When it was called, Save keeps the session.
func (s *Entry) Note(m *wire.Message) func(reply *wire.Message) {
	if m.Kind() != wire.Request || len(m.Frame()) > maxRecorded ||
		!m.MethodIs("initialize") && !m.MethodIs("logging/setLevel") && !m.MethodIs("resources/subscribe") && !m.MethodIs("resources/unsubscribe") {
		return nil
	}
	return s.Sent(m)
}

// Save keeps the session as it is recorded, if its server has answered initialize.
func (s *Entry) Save() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saveLocked()
}

func (s *Entry) saveLocked() {
	if state, ok := s.State(); ok && !s.over {
		s.saved = true
		s.k.save(s.Key, Session(state))
	}
}

// Saved reports whether the session was kept.
func (s *Entry) Saved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved
}

// Lost reports whether another front has the session, which this one had. A session that the
// Store does not have is kept now: the Store was away when the session began, or has an older
// state. One that was left is not asked for, as that would take it back. An error means that the
// Store could not tell; ask again.
func (s *Entry) Lost(ctx context.Context) (lost bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.saved || s.over {
		return false, nil
	}
	switch _, err = s.k.Take(ctx, s.Key); {
	case errors.Is(err, ErrElsewhere):
		return true, nil
	case errors.Is(err, ErrNone):
		s.saveLocked()
		return false, nil
	}
	return false, err
}

// rechecks is how many sessions Recheck asks the Store for at once.
const rechecks = 8

// Recheck calls lost with each session that another front has. The error is one of those that
// the Store returned.
func Recheck(ctx context.Context, all []*Entry, lost func(*Entry)) error {
	errs, free := make([]error, len(all)), make(chan struct{}, rechecks)
	var asking sync.WaitGroup
	for i, s := range all {
		free <- struct{}{}
		asking.Go(func() {
			defer func() { <-free }()
			var gone bool
			if gone, errs[i] = s.Lost(ctx); gone {
				lost(s)
			}
		})
	}
	asking.Wait()
	return cmp.Or(errs...)
}

// Part has requests for the session wait until Leave was called.
func (s *Entry) Part() { s.k.Hold(s.Key) }

// Leave leaves the session behind Part: it has ended, or another front may take it.
func (s *Entry) Leave(ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over = true; s.saved {
		s.k.leave(s.Key, ended)
	}
	s.k.Free(s.Key)
}
