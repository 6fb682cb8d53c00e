//go:build linux

package load

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/cmd/internal/fronts"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/teams"
	"github.com/attache-mcp/attache/sessionstate/turnstore"
)

// The times of attache, and how many connections a front has.
const (
	lookEvery        = 250 * time.Millisecond
	askEvery         = 10 * time.Second
	unused           = 12 * time.Hour
	frontConnections = 10
	host             = "host"
)

// An attache is one server behind an attache: that of a stdio attache, which takes part in teams,
// or one of a front, which keeps its sessions.
type attache struct {
	world    *world
	instance string
	teams    *teams.Store
	turns    sessionstate.Turns
	sessions sessions.Store // nil for stdio

	member atomic.Pointer[member] // nil before it is registered
}

// A member is the session of a stdio attache in the registry.
type member struct {
	ref    teams.Ref
	watch  *teams.Watch
	newest atomic.Int64 // the number of the last message that waits, 0 for none
	called atomic.Int64
}

// connect opens the stores of one process.
func (w *world) connect(url string, connections int) (*database.Server, *teams.Store, sessionstate.Turns, error) {
	server, err := database.Connect(database.ServerOptions{URL: url, Connections: connections})
	if err != nil {
		return nil, nil, nil, err
	}
	registry, err := teams.Open(w.ctx, teams.Options{Server: server})
	if err != nil {
		return nil, nil, nil, err
	}
	turns, err := turnstore.Open(w.ctx, turnstore.Options{Server: server})
	if err != nil {
		return nil, nil, nil, err
	}
	return server, registry, turns.Of(""), nil
}

// startFront starts a front with its servers, and returns these.
func (w *world) startFront(n int) ([]*attache, error) {
	server, registry, turns, err := w.connect(w.direct, frontConnections)
	if err != nil {
		return nil, err
	}
	front, err := fronts.Open(w.ctx, fronts.Options{Server: server, Address: fmt.Sprintf("127.0.0.1:%d", n), Service: "load", Idle: unused})
	if err != nil {
		return nil, err
	}
	w.work.Go(func() {
		defer server.Close()
		defer front.Close()
		w.every(fronts.RenewEvery, func() {
			_ = w.time("lease of a front", func() error { _, err := front.Renew(w.ctx); return err })
		})
	})
	var all []*attache
	for i := range serversOfSession {
		all = append(all, &attache{world: w, teams: registry, turns: turns, sessions: front.Sessions(fmt.Sprintf("server %d", i))})
	}
	return all, nil
}

// startStdio starts the stdio attaches of a session, until ctx is over.
func (w *world) startStdio(ctx context.Context) (all []*attache, err error) {
	for range serversOfSession {
		server, registry, turns, err := w.connect(w.bounced, 1)
		if err != nil {
			return nil, err
		}
		a := &attache{world: w, instance: rand.Text(), teams: registry, turns: turns}
		w.work.Go(func() {
			defer server.Close()
			a.look(ctx)
		})
		all = append(all, a)
	}
	return all, nil
}

// look asks for messages and renews leases, as middleware/teams does.
func (a *attache) look(ctx context.Context) {
	var version teams.Version
	var toldOf int64
	var before *member
	tick := time.Tick(max(a.world.fast(lookEvery), time.Millisecond))
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		now, _ := a.teams.Version(ctx, a.world.fast(askEvery))
		changed, renew := now != version, time.Since(renewed) >= a.world.fast(teams.RenewEvery)
		version = now
		m := a.member.Load()
		if m != before {
			before, renewed = m, time.Now()
		}
		if m == nil {
			continue
		}
		mine := m.watch.Mine(time.Now())
		if (m.watch.Told() || mine && changed) && a.ask(ctx, m) {
			m.watch.Answered(time.Now())
		}
		if newest := m.newest.Load(); mine && newest != toldOf {
			toldOf = newest
			m.watch.Tell()
		}
		if renew {
			a.renew(ctx, m, mine, renewed)
			renewed = time.Now()
		}
	}
}

// renew renews a lease; last is when that was done before.
func (a *attache) renew(ctx context.Context, m *member, mine bool, last time.Time) {
	r := teams.Renewal{Instance: a.instance, Called: time.Unix(0, m.called.Load())}
	if mine {
		r.Host = host
	}
	if mine || r.Called.After(last) {
		_ = a.world.time("lease of a session", func() error { return a.teams.Renew(ctx, m.ref, r) })
	}
	if mine {
		_ = a.world.time("sweep", func() error { return a.teams.Sweep(ctx, unused) })
	}
}

// ask finds out whether messages wait for a session. It reports whether the registry answered.
func (a *attache) ask(ctx context.Context, m *member) bool {
	return a.world.time("look for mail", func() error {
		newest, err := a.teams.Mail(ctx, m.ref)
		m.newest.Store(newest)
		return err
	}) == nil
}

// join begins a session, and gives it its turn of the briefing.
func (a *attache) join(ctx context.Context, s *session) error {
	err := a.register(ctx, s)
	if err != nil {
		return err
	}
	w := a.world
	mine := false
	_ = w.time("turn taken", func() (err error) { mine, _, err = a.turns.Take(ctx, s.key, unused); return err })
	if mine {
		_ = w.time("turn settled", func() error { return a.turns.Settle(ctx, s.key, sessionstate.Seen) })
	}
	_ = w.time("turns swept", func() error { _, err := a.turns.Sweep(ctx, unused); return err })
	return nil
}

func (a *attache) register(ctx context.Context, s *session) error {
	if a.sessions != nil {
		return a.world.time("front session saved", func() error { return a.sessions.Save(ctx, s.kept(), keptSession()) })
	}
	return a.world.time("registration", func() error {
		me, err := a.teams.Attach(ctx, teams.Claim{Key: s.key, Workspace: s.workspace, Trust: sessionstate.Direct, Title: "Load"},
			teams.Attachment{Instance: a.instance, Server: "server", Host: host, PID: 1})
		if err == nil {
			m := &member{ref: me.Ref, watch: teams.OpenWatch(a.world.watches, me.Ref)}
			m.called.Store(time.Now().UnixNano())
			a.member.Store(m)
		}
		return err
	})
}

func (a *attache) leave(ctx context.Context, s *session) {
	if a.sessions != nil {
		_ = a.world.time("front session left", func() error { return a.sessions.Leave(ctx, s.kept(), true) })
		return
	}
	m := a.member.Swap(nil)
	defer m.watch.Close()
	_ = a.world.time("session detached", func() error { return a.teams.Detach(ctx, m.ref, a.instance) })
}

// call makes a tool call: a look for mail beside it, and the messages that wait in its result.
func (a *attache) call(ctx context.Context) {
	m := a.member.Load()
	if m == nil { // a front asks the database nothing
		return
	}
	m.called.Store(time.Now().UnixNano())
	if m.newest.Load() == 0 {
		a.ask(ctx, m)
	}
	if m.newest.Load() > 0 {
		_ = a.receive(ctx, m.ref)
		a.ask(ctx, m)
	}
}

func (a *attache) receive(ctx context.Context, ref teams.Ref) error {
	w := a.world
	var taken *teams.Taking
	err := w.time("messages taken", func() (err error) {
		taken, err = a.teams.Take(ctx, ref, teams.TakeOption{Limit: teams.CarryLimit, Cut: true})
		return err
	})
	if err != nil || len(taken.Messages) == 0 {
		return err
	}
	w.ledger.receive(taken.Messages)
	if err := w.time("messages settled", func() error { return a.teams.Settle(ctx, taken, teams.Arrived, a.instance) }); err != nil {
		return err
	}
	return w.time("messages seen", func() error { return a.teams.MarkSeen(ctx, taken) })
}
