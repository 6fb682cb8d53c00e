package teams

import (
	"context"
	"fmt"
	"time"
)

// Limits are the operator's limits for starting sessions.
type Limits struct {
	MaxChildren int           // running children of a session
	MaxSpawned  int           // children in the whole life of a session
	MaxDepth    int           // depth of a session that may start others; a person's session has depth 0
	MaxSessions int           // running sessions in a workspace
	SpawnEvery  time.Duration // minimum time between two children of a session
}

// DefaultLimits returns the limits that apply unless the operator sets others.
func DefaultLimits() Limits {
	return Limits{MaxChildren: 10, MaxSpawned: 100, MaxDepth: 2, MaxSessions: 50, SpawnEvery: time.Second}
}

// A Child is a session to be created. The caller has checked it (see [CheckTitle]).
type Child struct {
	Title, Agent string
	Trust        string // may lower the parent's
	SpawnKey     string // "" for none: see [Store.Create]
	Message      string // the first message
	// Key is the session key of the child, Token the secret that authenticates it, and
	// AgentSession the id that its program uses for the session, "" if not yet known.
	Key, Token, AgentSession string
}

// Create creates a child of parent, with its first message and its first run, in the state
// [Starting]. If parent has already created a child with the same SpawnKey, Create returns that
// one, and made is false. If a limit is reached, the error is a [Refusal].
func (s *Store) Create(ctx context.Context, parent Ref, c Child, l Limits) (child *Session, made bool, err error) {
	err = s.in(ctx, parent.Tenant, func(t *tx) error {
		child, made = nil, false
		if c.SpawnKey != "" {
			if child = t.spawned(parent, c.SpawnKey); child != nil {
				return nil
			}
		}
		if err := t.takeSlots(parent, l); err != nil {
			return err
		}
		ref := Ref{parent.Tenant, newHandle("ses_")}
		t.exec(`INSERT INTO sessions (tenant, id, key, token, workspace, trust, owner, title, agent, parent, created_by, depth,
				spawn_key, run, run_until, run_state, agent_session, created, seen)
			SELECT tenant, ?3, ?4, ?5, workspace, CASE WHEN trust = 'sandboxed' THEN trust ELSE ?6 END, owner, ?7, ?8, id, 'agent:' || id, depth + 1,
				nullif(?9, ''), 1, ?10, 'starting', nullif(?11, ''), ?12, ?12
			FROM sessions WHERE tenant = ?1 AND id = ?2`,
			parent.Tenant, parent.ID, ref.ID, digest(c.Key), digest(c.Token), lowest(c.Trust), c.Title, c.Agent,
			c.SpawnKey, t.now+int64(Lease), c.AgentSession, t.now)
		t.deliver(ref, letter{from: parent.ID, kind: First, body: c.Message})
		made = true
		child, err = t.session(ref)
		return err
	})
	first := firstResult(ctx, s, parent.Tenant, c.SpawnKey, err, func(t *tx) (*Session, error) { return t.spawned(parent, c.SpawnKey), nil })
	if first != nil {
		return first, false, nil
	}
	return child, made && err == nil, err
}

// spawned returns the child that parent has created with key, nil if there is none.
func (t *tx) spawned(parent Ref, key string) *Session {
	return t.one(`SELECT `+columns+` FROM sessions s WHERE s.tenant = ?2 AND s.parent = ?3 AND s.spawn_key = ?4`,
		t.now, parent.Tenant, parent.ID, key)
}

// takeSlots counts a new child and its run against the limits. It ignores a last_spawn in the
// future, which was written before the clock was set back.
func (t *tx) takeSlots(parent Ref, l Limits) error {
	n := t.exec(`UPDATE sessions SET children = children + 1, spawned = spawned + 1, last_spawn = ?3
		WHERE tenant = ?1 AND id = ?2 AND ended IS NULL AND children < ?4 AND spawned < ?5 AND depth < ?6
			AND (last_spawn <= ?3 - ?7 OR last_spawn > ?3 + ?7)`,
		parent.Tenant, parent.ID, t.now, l.MaxChildren, l.MaxSpawned, l.MaxDepth, int64(l.SpawnEvery))
	if n == 0 {
		return t.whyNoChild(parent, l)
	}
	var workspace string
	t.row(`SELECT workspace FROM sessions WHERE tenant = ?1 AND id = ?2`, parent.Tenant, parent.ID).read(&workspace)
	return t.takeRoom(parent.Tenant, workspace, l)
}

// takeRoom counts a running session against the limit of a workspace.
func (t *tx) takeRoom(tenant, workspace string, l Limits) error {
	t.exec(`INSERT INTO workspaces (tenant, id) VALUES (?1, ?2) ON CONFLICT DO NOTHING`, tenant, workspace)
	if t.exec(`UPDATE workspaces SET live = live + 1 WHERE tenant = ?1 AND id = ?2 AND live < ?3`, tenant, workspace, l.MaxSessions) == 0 {
		return Refusal(fmt.Sprintf("Spawn limit reached (%d sessions in this workspace)", l.MaxSessions))
	}
	return nil
}

func (t *tx) whyNoChild(parent Ref, l Limits) error {
	var children, spawned, depth int
	var last int64
	var ended bool
	known := t.row(`SELECT children, spawned, depth, last_spawn, ended IS NOT NULL FROM sessions WHERE tenant = ?1 AND id = ?2`, parent.Tenant, parent.ID).
		find(&children, &spawned, &depth, &last, &ended)
	switch {
	case !known || ended:
		return ErrNoContext
	case depth >= l.MaxDepth:
		return ErrTooDeep
	case children >= l.MaxChildren:
		return Refusal(fmt.Sprintf("Spawn limit reached (%d child sessions)", l.MaxChildren))
	case spawned >= l.MaxSpawned:
		return Refusal(fmt.Sprintf("Spawn limit reached (%d sessions in the life of one)", l.MaxSpawned))
	}
	return tooFast("1 session per "+every(l.SpawnEvery), time.Duration(last-t.now)+l.SpawnEvery)
}

// every formats a duration for "1 session per ...": "second", "5s".
func every(d time.Duration) string {
	if d == time.Second {
		return "second"
	}
	return d.String()
}
