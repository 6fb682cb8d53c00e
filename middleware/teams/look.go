package teams

import (
	"context"
	"maps"
	"slices"
	"time"

	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// look is the goroutine that looks for changes of the registry, renews leases, and wakes sessions.
// It tries again to register a session that makes calls and could not be registered.
func (s *Shared) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	defer s.closeWatches()
	ctx := context.Background()
	var version store.Version
	renewed := s.o.Now()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		db, err := s.open()
		if err != nil {
			s.warn(err)
			return
		}
		now, err := db.Version(ctx, askEvery)
		changed := err == nil && now != version
		renew := s.o.Now().Sub(renewed) >= store.RenewEvery
		version = now
		sweep := !s.o.Shared
		for _, m := range s.all() {
			called := m.noteCalls(s.o.Now())
			if m.me.Load() == nil {
				if called {
					s.retry(m)
				}
				continue
			}
			sweep = s.tend(ctx, db, m, changed, renew) || sweep
		}
		if renew {
			renewed = s.o.Now()
			if sweep {
				s.sweep(ctx, db)
			}
		}
	}
}

// tend asks for messages for a session, wakes it and renews its lease, as far as that is due. It
// reports whether this process does so for the others of the session.
func (s *Shared) tend(ctx context.Context, db *store.Store, m *session, changed, renew bool) (mine bool) {
	if m.watch == nil {
		m.watch, m.renewed = s.openWatch(m.me.Load().Ref), s.o.Now()
	}
	mine = m.watch.Mine(s.o.Now())
	if m.watch.Told() || mine && (changed || renew) {
		if s.ask(ctx, db, m) {
			m.watch.Answered(s.o.Now())
		}
	}
	if newest := m.newest.Load(); mine && newest != m.toldOf {
		m.toldOf = newest
		m.watch.Tell()
	}
	s.wake(ctx, db, m, mine)
	if renew {
		s.renew(ctx, db, m, mine)
	}
	return mine
}

// openWatch opens the watch of a session. Of many sessions in one process the later ones do
// without a file, as a process can have few open.
func (s *Shared) openWatch(ref store.Ref) *store.Watch {
	if s.watches++; s.watches > maxWatches {
		return &store.Watch{}
	}
	return store.OpenWatch(s.o.Watches, ref)
}

func (s *Shared) closeWatches() {
	for _, m := range s.all() {
		if m.watch != nil {
			m.watch.Close()
		}
	}
}

func (s *Shared) sweep(ctx context.Context, db *store.Store) {
	if err := db.Sweep(ctx, s.o.TTL); err != nil {
		s.warn(err)
	}
}

// noteCalls reports whether calls have begun or ended since it was asked last.
func (m *session) noteCalls(now time.Time) bool {
	n := m.begun.Load() + m.ended.Load()
	if n == m.counted {
		return false
	}
	m.counted = n
	m.last.Store(now.UnixNano())
	return true
}

// retry tries again to register a session.
func (s *Shared) retry(m *session) {
	m.mu.Lock()
	view, client := m.view, m.client
	m.mu.Unlock()
	s.register(m, view, client)
}

func (s *Shared) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.sessions))
}

// renew renews the lease of a session, and starts agents again for it. A process that is not the
// one that does so for the others says only that it had calls.
func (s *Shared) renew(ctx context.Context, db *store.Store, m *session, mine bool) {
	me, now := m.me.Load(), s.o.Now()
	called := time.Unix(0, m.last.Load())
	if m.calling(now) {
		called = now
	}
	if mine || called.After(m.renewed) {
		r := store.Renewal{Instance: s.instance, Called: called}
		if mine && s.o.Watches != "" {
			r.Host = s.o.Host
		}
		switch err := db.Renew(ctx, me.Ref, r); {
		case err == nil:
			m.renewed = now
		case store.IsGone(err):
			s.attach(ctx, m)
		}
	}
	if s.o.Resume != nil {
		m.mu.Lock()
		view := m.view
		m.mu.Unlock()
		s.o.Resume(ctx, db, me, view)
	}
}

// wake tells a session that makes no calls of messages that wait. A process that has calls says
// so in the registry while messages wait, so that no other process of the session wakes it.
func (s *Shared) wake(ctx context.Context, db *store.Store, m *session, mine bool) {
	now, last := s.o.Now(), time.Unix(0, m.last.Load())
	if m.calling(now) {
		last = now
	}
	if !m.mail.Load() {
		return
	}
	if now.Sub(last) < wakeAfter {
		if now.Sub(m.told) >= tellEvery {
			m.told = now
			_ = db.Renew(ctx, m.me.Load().Ref, store.Renewal{Instance: s.instance, Called: last}) // the session may be woken in vain
		}
		return
	}
	m.mu.Lock()
	wake := m.wake
	due := wake != nil && now.Sub(m.mailFrom) >= wakeAfter && !now.Before(m.nextWake)
	m.mu.Unlock()
	if !due {
		return
	}
	m.nextWake = now.Add(wakeEvery)
	if mine { // the others try seldom: it fails, unless this one cannot
		m.nextWake = now.Add(wakeAfter)
	}
	count, fromParent, err := db.ClaimWake(ctx, m.me.Load().Ref, wakeAfter, wakeEvery)
	if err != nil || count == 0 {
		return
	}
	m.nextWake = now.Add(wakeEvery)
	s.beside(func(ctx context.Context) {
		if err := wake(ctx, notice(count, fromParent)); err != nil {
			s.o.Log.Info("the session could not be woken for messages that wait; they come with its next tool result", "err", err)
		}
	})
}
