package teams

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// look runs in one goroutine of the process until Close. It checks the registry for changes, renews leases, and
// wakes sessions. It registers sessions again that could not be registered and make calls.
//
// If the machine has slept, the clock was set, or the registry was not available, the leases of
// processes that are alive may have ended too. look then waits for the time of a lease before it
// sweeps, so that they can be renewed: a sweep declares a run without a lease lost, and the run's
// supervisor then stops the agent.
func (s *Shared) look() {
	tick := time.Tick(lookEvery)
	defer s.closeWatches()
	ctx := context.Background()
	var version store.Version
	renewed, last := s.o.Now(), s.o.Now()
	for {
		select {
		case <-s.done:
			return
		case <-tick:
		}
		now := s.o.Now()
		if now.Round(0).Sub(last.Round(0)).Abs() > store.RenewEvery { // the monotonic clock stops while the machine sleeps
			s.disturbed = now
		}
		last = now
		db, err := s.open()
		if err != nil {
			s.warn(err)
			s.disturbed = now
			continue
		}
		v, err := db.Version(ctx, askEvery)
		changed := err == nil && v != version
		renew := now.Sub(renewed) >= store.RenewEvery
		version = v          // after an error none that the registry has, so the next look finds a change
		sweep := !s.o.Shared // of several processes at a server, only the elected ones sweep
		for _, m := range s.allSessions() {
			called := m.noteCalls(s.o.Now())
			if m.me.Load() == nil {
				if called {
					s.retry(m)
				}
				continue
			}
			sweep = s.update(ctx, db, m, changed, renew) || sweep
		}
		if renew {
			renewed = s.o.Now()
		}
		if renew && sweep && now.Sub(s.disturbed) >= store.Lease {
			if err := db.Sweep(ctx, s.o.TTL); err != nil {
				s.warn(err)
			}
		}
	}
}

// update asks for messages for a session, wakes it and renews its lease, if these are due. It
// reports whether this process does that for all processes of the session.
func (s *Shared) update(ctx context.Context, db *store.Store, m *session, changed, renew bool) (mine bool) {
	if m.watch == nil {
		m.watch, m.renewed = s.openWatch(m.me.Load().Ref), s.o.Now()
	}
	mine = m.watch.Mine(s.o.Now())
	if m.watch.Told() || mine && (changed || renew) {
		if s.ask(ctx, db, m) {
			m.watch.Answered(s.o.Now())
		} else {
			s.disturbed = s.o.Now()
		}
	}
	if newest := m.newest.Load(); mine && newest != m.announced {
		m.announced = newest
		m.watch.Tell()
	}
	s.wake(ctx, db, m, mine)
	if renew {
		s.renew(ctx, db, m, mine)
	}
	return mine
}

// openWatch opens the watch of a session. After maxWatches sessions it opens no more files,
// because a process can have few open.
func (s *Shared) openWatch(ref store.Ref) *store.Watch {
	if s.watches++; s.watches > maxWatches {
		return &store.Watch{}
	}
	return store.OpenWatch(s.o.Watches, ref)
}

func (s *Shared) closeWatches() {
	for _, m := range s.allSessions() {
		if m.watch != nil {
			m.watch.Close()
		}
	}
}

// noteCalls reports whether calls have begun or ended since it was called last. Calls only count: their time
// is that of the look which finds them, so that no call has to read the clock.
func (m *session) noteCalls(now time.Time) bool {
	n := m.begun.Load() + m.ended.Load()
	if n == m.counted {
		return false
	}
	m.counted = n
	m.last.Store(now.UnixNano())
	return true
}

// retry starts another attempt to register a session, which register may put off.
func (s *Shared) retry(m *session) {
	m.mu.Lock()
	view, client := m.view, m.client
	m.mu.Unlock()
	s.register(m, view, client)
}

// allSessions returns the sessions, so that mu is not held while the registry is asked about them.
func (s *Shared) allSessions() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.sessions))
}

// renew renews the lease of a session, and restarts agents for it. If another process does that
// for all processes of the session, it only reports calls.
func (s *Shared) renew(ctx context.Context, db *store.Store, m *session, mine bool) {
	me, now := m.me.Load(), s.o.Now()
	called := time.Unix(0, m.last.Load())
	if m.calling(now) {
		called = now
	}
	if mine || called.After(m.renewed) {
		r := store.Renewal{Instance: s.instance, Since: now.Sub(called)}
		if mine && s.o.Watches != "" {
			r.Host = s.o.Host
		}
		switch err := db.Renew(ctx, me.Ref, r); {
		case err == nil:
			m.renewed = now
		case errors.Is(err, store.ErrNoSession): // removed from the registry, as after a long sleep
			s.attach(ctx, m)
		default:
			s.disturbed = now
		}
	}
	if s.o.Resume != nil {
		m.mu.Lock()
		view := m.view
		m.mu.Unlock()
		s.o.Resume(ctx, db, me, view)
	}
}

// wake sends a notice to a session without calls, if messages wait. If there are calls, it
// reports them to the registry, so that no other process of the session wakes it.
func (s *Shared) wake(ctx context.Context, db *store.Store, m *session, mine bool) {
	now, last := s.o.Now(), time.Unix(0, m.last.Load())
	if m.calling(now) {
		last = now
	}
	if !m.mail.Load() {
		return
	}
	if now.Sub(last) < wakeAfter {
		if now.Sub(m.reported) >= reportEvery {
			m.reported = now
			_ = db.Renew(ctx, m.me.Load().Ref, store.Renewal{Instance: s.instance, Since: now.Sub(last)}) // after an error the session may be woken in vain
		}
		return
	}
	m.mu.Lock()
	due := now.Sub(m.mailSince) >= wakeAfter && !now.Before(m.nextWake)
	view, client := m.view, m.client
	m.mu.Unlock()
	if !due {
		return
	}
	wake := s.o.Waker(host(view, client)) // the last call may have told the client's id of the session
	if wake == nil {
		return
	}
	m.nextWake = now.Add(wakeEvery)
	// Other processes try seldom, because they only succeed if this one cannot wake the session. For the
	// same messages the session is woken at growing intervals.
	if mine && m.newest.Load() != m.wokenFor {
		m.nextWake = now.Add(wakeAfter)
	}
	// The registry lets one process wake the session, and only if messages have waited long enough.
	count, fromParent, err := db.ClaimWake(ctx, m.me.Load().Ref, wakeAfter, wakeEvery)
	if err != nil || count == 0 {
		return
	}
	m.nextWake, m.wokenFor = now.Add(wakeEvery+time.Second), m.newest.Load() // the registry has noted a slightly later time
	s.background(func(ctx context.Context) {
		if err := wake(ctx, notice(count, fromParent)); err != nil {
			s.o.Log.Info("the session could not be woken for its messages; its next tool result will carry them", "err", err)
		}
	})
}
