package teams

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
)

// A Ref identifies a session: its tenant, "" if there is only one, and its handle.
type Ref struct{ Tenant, ID string }

// A State is the state of a session.
type State string

// The states. A session is active in the first three.
const (
	Starting State = "starting" // created, but its agent does not run yet
	Working  State = "working"  // it has made a call within [BusyFor], or its agent runs
	Idle     State = "idle"     // it is alive, but has made no call within [BusyFor]
	Gone     State = "gone"     // none of its processes is alive
	Finished State = "finished" // its agent's run has ended
	Failed   State = "failed"   // its agent's run has failed
	Ended    State = "ended"    // it was ended and receives no messages
)

// The states of a run.
const (
	runStarting = "starting"
	runRunning  = "running"
	runFinished = "finished"
	runFailed   = "failed"
)

// A Session is a session in the registry.
type Session struct {
	Ref
	Workspace, Trust, Title, Agent string
	Owner                          string // the user; "" if nobody was identified
	Parent, CreatedBy              string // Parent is a handle, "" for none
	Depth, Children                int
	State                          State
	ParentOver                     bool // its run is over, and its parent has ended
	Attached                       bool // one of its processes is alive
	Wakes                          bool // one of these processes can wake it
	Run                            int
	AgentSession                   string // the id that the agent's program uses for the session
	ExitStatus                     int
	CostUSD                        string
	Created, LastActive            time.Time
	Queued                         int
}

// Active reports whether the session is in one of the active states.
func (s *Session) Active() bool {
	return s.State == Starting || s.State == Working || s.State == Idle
}

// columns are the columns that scan reads, at time ?1.
var columns = `s.tenant, s.id, s.workspace, s.trust, s.owner, s.title, s.agent, s.parent, s.created_by, s.depth, s.children,
	s.run, s.run_state, s.run_until, coalesce(s.agent_session, ''), s.exit_status, s.cost_usd, s.created, s.seen, s.ended IS NOT NULL, s.queued,
	s.run_state IN ('finished', 'failed') AND (SELECT ` + parentOver + ` FROM (SELECT 1 AS one) AS one LEFT JOIN sessions p ON p.tenant = s.tenant AND p.id = s.parent),
	(SELECT max(a.called) FROM attachments a WHERE a.tenant = s.tenant AND a.session = s.id AND ` + fresh("a.until") + `),
	(SELECT max(a.wakes) FROM attachments a WHERE a.tenant = s.tenant AND a.session = s.id AND ` + fresh("a.until") + `)`

// scan reads a session from a row of columns, and the columns after them into more.
func scan(row database.Rows, now int64, more ...any) (*Session, error) {
	var s Session
	var runState string
	var runUntil, created, seen int64
	var ended bool
	var called, wakes sql.NullInt64
	to := []any{&s.Tenant, &s.ID, &s.Workspace, &s.Trust, &s.Owner, &s.Title, &s.Agent, &s.Parent, &s.CreatedBy, &s.Depth, &s.Children,
		&s.Run, &runState, &runUntil, &s.AgentSession, &s.ExitStatus, &s.CostUSD, &created, &seen, &ended, &s.Queued, &s.ParentOver, &called, &wakes}
	if err := row.Scan(append(to, more...)...); err != nil {
		return nil, err
	}
	// Other programs may write to the registry. An id is part of the names of files, and the parent's a variable of an agent.
	for _, id := range []string{s.ID, cmp.Or(s.Parent, s.ID)} {
		if !IsHandle(id) {
			return nil, fmt.Errorf("the registry has a session with the invalid id %.40q", id)
		}
	}
	s.Trust = lowest(s.Trust) // a variable of an agent, too
	s.Created, s.LastActive = time.Unix(0, created), time.Unix(0, max(created, called.Int64))
	if !called.Valid {
		s.LastActive = time.Unix(0, seen)
	}
	s.Attached, s.Wakes = called.Valid, wakes.Int64 == 1
	runs := runUntil > now && (runState == runStarting || runState == runRunning)
	switch {
	case ended:
		s.State = Ended
	case runs && runState == runStarting:
		s.State = Starting
	case called.Valid && called.Int64 > now-int64(BusyFor), runs && !called.Valid:
		s.State = Working
	case called.Valid:
		s.State = Idle
	case runState == runFinished:
		s.State = Finished
	case runState != "":
		s.State = Failed // or lost and not yet swept
	default:
		s.State = Gone
	}
	return &s, nil
}

// A Claim is the statement of a process about its session.
type Claim struct {
	// Tenant is the tenant of the process's credential. Without one, Token may name the tenant.
	Tenant string
	// Key is the session key. Conversation means that it comes from the request's _meta, which
	// only the host can write and no environment variable of an agent. Then the key may also be
	// the AgentSession of a session that attache started.
	Key          string
	Conversation bool
	// Token authenticates a session that attache started.
	Token string
	// Workspace is the id of the workspace. Without one, only a registered session can be
	// attached to.
	Workspace string
	// Trust, Owner and Title describe a session that is not registered yet. Later claims can
	// only lower the trust.
	Trust, Owner, Title string

	proved bool // Tenant comes from Token, so the session must be the one that Token authenticates
}

// An Attachment is a process that serves a session.
type Attachment struct {
	Instance string // random
	Server   string
	Host     string
	PID      int
	Wakes    bool // the process can wake the session
}

// Attach registers the session of c, unless it is registered, and the process that serves it.
// The error is [ErrNoContext] if the session is unknown and has no workspace, or [ErrUnproved].
func (s *Store) Attach(ctx context.Context, c Claim, a Attachment) (*Session, error) {
	var found *Session
	wakes := 0
	if a.Wakes {
		wakes = 1
	}
	if c.Tenant == "" {
		c.Tenant = tokenTenant(c.Token)
		c.proved = c.Tenant != ""
	}
	err := s.in(ctx, c.Tenant, func(t *tx) error {
		ref, err := t.claim(c)
		if err != nil {
			return err
		}
		t.exec(`INSERT INTO attachments (tenant, session, instance, server, host, pid, wakes, until, called)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
			ON CONFLICT (tenant, session, instance) DO UPDATE SET until = ?8, called = ?9`,
			ref.Tenant, ref.ID, a.Instance, a.Server, a.Host, a.PID, wakes, t.now+int64(Lease), t.now)
		found, err = t.session(ref)
		return err
	})
	return found, err
}

// claim returns the session of c, and registers it if necessary.
func (t *tx) claim(c Claim) (Ref, error) {
	ref := Ref{Tenant: c.Tenant}
	key, alias := digest(c.Key), ""
	if c.Conversation {
		alias = c.Key
	}
	var token, found string
	var ended bool
	known := t.row(`SELECT id, token, key, ended IS NOT NULL FROM sessions
		WHERE tenant = ?1 AND (key = ?2 OR agent_session = ?3 AND ?3 <> '') ORDER BY token DESC LIMIT 1`, c.Tenant, key, alias).
		find(&ref.ID, &token, &found, &ended)
	switch {
	case !known && c.proved:
		return ref, ErrUnproved
	case !known:
		return t.register(c, key)
	case (token != "" && found == key || c.proved) && digest(c.Token) != token:
		return ref, ErrUnproved
	case token != "" && ended:
		return ref, ErrNoContext
	}
	n := t.exec(`UPDATE sessions SET seen = ?3, ended = NULL,
		trust = CASE WHEN trust = 'sandboxed' AND ended IS NULL THEN trust ELSE ?4 END
		WHERE tenant = ?1 AND id = ?2 AND token = ?5 AND (token = '' OR ended IS NULL)`,
		ref.Tenant, ref.ID, t.now, lowest(c.Trust), token)
	if n == 0 && t.err == nil {
		return t.claim(c) // since it was read, it was ended, or has another token
	}
	return ref, nil
}

// lowest normalises a trust level; "" means sandboxed.
func lowest(trust string) string {
	if sessionstate.NormalizeTrust(trust) == sessionstate.Direct {
		return sessionstate.Direct
	}
	return sessionstate.Sandboxed
}

// register creates the row of a session that a person began.
func (t *tx) register(c Claim, key string) (Ref, error) {
	ref := Ref{c.Tenant, newHandle("ses_")}
	if c.Workspace == "" || c.Key == "" {
		return ref, ErrNoContext
	}
	t.exec(`INSERT INTO sessions (tenant, id, key, workspace, trust, owner, title, created_by, created, seen)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'user', ?8, ?8)`,
		ref.Tenant, ref.ID, key, c.Workspace, lowest(c.Trust), c.Owner, c.Title, t.now)
	return ref, nil
}

// Session returns a session of the registry.
func (s *Store) Session(ctx context.Context, ref Ref) (*Session, error) {
	return view(ctx, s, database.Scope{Tenant: ref.Tenant}, func(t *tx) (*Session, error) { return t.session(ref) })
}

func (t *tx) session(ref Ref) (*Session, error) {
	found := t.one(`SELECT `+columns+` FROM sessions s WHERE s.tenant = ?2 AND s.id = ?3`, t.now, ref.Tenant, ref.ID)
	if found == nil {
		return nil, ErrNoSession
	}
	return found, nil
}

// one returns the session that a query returns, nil if there is none.
func (t *tx) one(query string, args ...any) *Session {
	for _, s := range t.sessions(query, args...) {
		return s
	}
	return nil
}

// sessions returns the sessions that a query for columns returns.
func (t *tx) sessions(query string, args ...any) []*Session {
	return rows(t, func(row database.Rows) (*Session, error) { return scan(row, t.now) }, query, args...)
}

// A Renewal renews the lease of a process.
type Renewal struct {
	Instance string
	// Host, if not "", also renews the leases of the session's other processes on that host.
	Host string
	// Since is how long ago the last call was: the clock of the process may differ from that of the database.
	Since time.Duration
}

// Renew renews a lease.
func (s *Store) Renew(ctx context.Context, ref Ref, r Renewal) error {
	return s.relaxed(ctx, ref.Tenant, func(t *tx) error {
		n := t.exec(`UPDATE attachments SET until = ?5, called = CASE WHEN instance = ?3 AND called < ?6 THEN ?6 ELSE called END
			WHERE tenant = ?1 AND session = ?2 AND (instance = ?3 OR host = ?4 AND ?4 <> '')`,
			ref.Tenant, ref.ID, r.Instance, r.Host, t.now+int64(Lease), t.now-int64(max(r.Since, 0)))
		if n == 0 {
			return ErrNoSession
		}
		t.exec(`UPDATE sessions SET seen = ?3 WHERE tenant = ?1 AND id = ?2`, ref.Tenant, ref.ID, t.now)
		return nil
	})
}

// Detach removes a process that no longer serves a session.
func (s *Store) Detach(ctx context.Context, ref Ref, instance string) error {
	return s.relaxed(ctx, ref.Tenant, func(t *tx) error {
		t.exec(`DELETE FROM attachments WHERE tenant = ?1 AND session = ?2 AND instance = ?3`, ref.Tenant, ref.ID, instance)
		t.exec(`UPDATE sessions SET seen = ?3 WHERE tenant = ?1 AND id = ?2`, ref.Tenant, ref.ID, t.now)
		return nil
	})
}
