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

// The intervals of attache, and the number of connections of a front.
const (
	lookEvery        = 250 * time.Millisecond
	askEvery         = 10 * time.Second
	unused           = 12 * time.Hour
	frontConnections = 10
	host             = "host"
)

// An attache stands for one server behind an attache. A stdio attache takes part in teams; the
// attache of a front saves its sessions.
type attache struct {
	world    *world
	server   *database.Server
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
	newest atomic.Int64 // number of the last message that waits, 0 for none
	called atomic.Int64
}

// connect opens the stores of one process.
func (w *world) connect(url string, connections int) (*attache, error) {
	server, err := database.Connect(database.ServerOptions{URL: url, Connections: connections})
	if err != nil {
		return nil, err
	}
	registry, err := teams.Open(w.ctx, teams.Options{Server: server})
	if err != nil {
		return nil, err
	}
	turns, err := turnstore.Open(w.ctx, turnstore.Options{Server: server})
	if err != nil {
		return nil, err
	}
	return &attache{world: w, server: server, instance: rand.Text(), teams: registry, turns: turns.Of("")}, nil
}

// startFront starts a front and returns an attache for each of its servers.
func (w *world) startFront(n int) ([]*attache, error) {
	a, err := w.connect(w.direct, frontConnections)
	if err != nil {
		return nil, err
	}
	front, err := fronts.Open(w.ctx, fronts.Options{Server: a.server, Address: fmt.Sprintf("127.0.0.1:%d", n), Service: "load", Idle: unused})
	if err != nil {
		return nil, err
	}
	w.work.Go(func() {
		defer a.server.Close()
		defer front.Close()
		for next := w.clock.now(); w.until(w.ctx, next); next = max(next+fronts.RenewEvery, w.clock.now()) {
			_ = w.time("lease of a front", func() error { _, err := front.Renew(w.ctx); return err })
		}
	})
	var all []*attache
	for i := range serversPerSession {
		all = append(all, &attache{world: w, teams: a.teams, turns: a.turns, sessions: front.Sessions(fmt.Sprintf("server %d", i))})
	}
	return all, nil
}

// startStdio starts the stdio attaches of a session. They run until ctx ends.
func (w *world) startStdio(ctx context.Context) (all []*attache, err error) {
	for range serversPerSession {
		a, err := w.connect(w.pooled, 1)
		if err != nil {
			return nil, err
		}
		w.work.Go(func() {
			defer a.server.Close()
			a.look(ctx)
		})
		all = append(all, a)
	}
	return all, nil
}

// look asks for messages and renews leases like middleware/teams.
func (a *attache) look(ctx context.Context) {
	var version teams.Version
	var reported int64
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
		if newest := m.newest.Load(); mine && newest != reported {
			reported = newest
			m.watch.Tell()
		}
		if renew {
			a.renew(ctx, m, mine, renewed)
			renewed = time.Now()
		}
	}
}

// renew renews the lease of a session. last is the time of the previous renewal.
func (a *attache) renew(ctx context.Context, m *member, mine bool, last time.Time) {
	called := time.Unix(0, m.called.Load())
	r := teams.Renewal{Instance: a.instance, Since: time.Since(called)}
	if mine {
		r.Host = host
	}
	if mine || called.After(last) {
		_ = a.world.time("lease of a session", func() error { return a.teams.Renew(ctx, m.ref, r) })
	}
	if mine {
		_ = a.world.time("sweep", func() error { return a.teams.Sweep(ctx, unused) })
	}
}

// ask asks the registry for the newest message that waits. It reports whether the registry answered.
func (a *attache) ask(ctx context.Context, m *member) bool {
	return a.world.time("look for mail", func() error {
		newest, err := a.teams.Mail(ctx, m.ref)
		m.newest.Store(newest)
		return err
	}) == nil
}

// join registers a session and takes its turn of the briefing.
func (a *attache) join(ctx context.Context, key, workspace string) error {
	if err := a.register(ctx, key, workspace); err != nil {
		return err
	}
	w := a.world
	mine := false
	_ = w.time("turn taken", func() (err error) { mine, _, err = a.turns.Take(ctx, key, unused); return err })
	if mine {
		_ = w.time("turn settled", func() error { return a.turns.Settle(ctx, key, sessionstate.Seen) })
	}
	_ = w.time("turns swept", func() error { _, err := a.turns.Sweep(ctx, unused); return err })
	return nil
}

func (a *attache) register(ctx context.Context, key, workspace string) error {
	if a.sessions != nil {
		return a.world.time("front session saved", func() error { return a.sessions.Save(ctx, frontKey(key), frontSession()) })
	}
	return a.world.time("registration", func() error {
		me, err := a.teams.Attach(ctx, teams.Claim{Key: key, Workspace: workspace, Trust: sessionstate.Direct, Title: "Load"},
			teams.Attachment{Instance: a.instance, Server: "server", Host: host, PID: 1})
		if err == nil {
			m := &member{ref: me.Ref, watch: teams.OpenWatch(a.world.watches, me.Ref)}
			m.called.Store(time.Now().UnixNano())
			a.member.Store(m)
		}
		return err
	})
}

func frontKey(key string) sessions.Key { return sessions.NewKey(key, "user") }

// frontSession returns what a front saves of each session, in a typical size.
func frontSession() sessions.Session {
	return sessions.Session{
		Initialize: `{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{}},"clientInfo":{"name":"load","version":"1.0.0"}}`,
		Version:    "2025-11-25", Capabilities: `{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}`, Level: `{"level":"info"}`,
	}
}

func (a *attache) leave(ctx context.Context, key string) {
	if a.sessions != nil {
		_ = a.world.time("front session left", func() error { return a.sessions.Leave(ctx, frontKey(key), true) })
		return
	}
	m := a.member.Swap(nil)
	defer m.watch.Close()
	_ = a.world.time("session detached", func() error { return a.teams.Detach(ctx, m.ref, a.instance) })
}

// call makes the requests of a tool call: it looks for mail and takes the messages that wait.
func (a *attache) call(ctx context.Context) {
	m := a.member.Load()
	if m == nil { // a front does not ask the database
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
