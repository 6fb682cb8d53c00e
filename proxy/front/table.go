package front

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/limit"
	"github.com/attache-mcp/attache/proxy/front/sessions"
)

// errDraining is returned for a new session while the front drains.
var errDraining = errors.New("the proxy is shutting down")

// find returns the legacy session of that id. It returns nil if the session belongs to another
// principal.
func (f *Front) find(id string, who Principal) *session {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.byID[id]; s != nil && s.who.ID == who.ID {
		return s
	}
	return nil
}

// create opens a legacy session. Its id begins with route.
func (f *Front) create(route string, who Principal, credential string) (*session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.openLocked(route+sessions.NewID(), Opening{Who: who, Credential: credential})
	if err != nil {
		return nil, err
	}
	f.byID[s.id] = s
	return s, nil
}

// restTime is how long a session must have been idle before it may be ended to make room.
const restTime = time.Minute

// openLocked opens a session within the limits. If there are too many, it ends the principal's session
// that has been idle longest, at least restTime: most clients never end their sessions. id is "" for
// a session without a handshake. The caller holds f.mu.
func (f *Front) openLocked(id string, o Opening) (*session, error) {
	if f.draining {
		return nil, errDraining
	}
	err := f.o.Limits.Open(o.Who.ID)
	evicted := err != nil && f.evictLocked(o.Who)
	// The evicted session has left the limits, though its upstream may still be ending.
	if evicted {
		err = f.o.Limits.Open(o.Who.ID)
	}
	if errors.Is(err, limit.ErrFull) {
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err != nil {
		return nil, err
	}
	s, err := f.open(id, o)
	if errors.Is(err, ErrBusy) && !evicted {
		f.evictLocked(o.Who) // for the next try: the upstream takes a moment to end
	}
	if err != nil {
		f.o.Limits.Close(o.Who.ID)
		return nil, err
	}
	return s, nil
}

// evictLocked ends the session of the principal that has been idle longest. The caller holds f.mu.
func (f *Front) evictLocked(who Principal) bool {
	var oldest *session
	var since time.Time
	for _, s := range f.sessionsLocked() {
		if s.who.ID != who.ID {
			continue
		}
		s.mu.Lock()
		// A session with an open stream, or with a call whose client has disconnected, is in use.
		idle := s.users == 0 && !s.closed && len(s.calls) == 0 && time.Since(s.lastUsed) >= restTime
		used := s.lastUsed
		s.mu.Unlock()
		if idle && (oldest == nil || used.Before(since)) {
			oldest, since = s, used
		}
	}
	if oldest == nil {
		return false
	}
	oldest.log.Info("a session made room for another one of its principal")
	return oldest.closeLocked("the session made room for another one", reasonEnded)
}

// removeLocked takes a session out of the tables. The caller holds f.mu.
func (f *Front) removeLocked(s *session) {
	delete(f.byID, s.id)
	if rest := slices.DeleteFunc(f.byKey[s.key], func(other *session) bool { return other == s }); len(rest) > 0 {
		f.byKey[s.key] = rest
	} else {
		delete(f.byKey, s.key)
	}
}
