package teams

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
)

// A Ref names a session: its tenant, "" where there is one, and its handle.
type Ref struct{ Tenant, ID string }

// A State says what a session is doing.
type State string

// The states. A session is active in the first three.
const (
	Starting State = "starting" // created, its agent does not run yet
	Working  State = "working"  // it has made a call within [BusyFor], or its agent runs
	Idle     State = "idle"     // it is alive and has made no call for a while
	Gone     State = "gone"     // no process of it renews its lease
	Finished State = "finished" // its agent's run is over
	Failed   State = "failed"   // its agent's run failed
	Ended    State = "ended"    // it was ended, and takes no messages
)

// A Session is what the registry knows of a session.
type Session struct {
	Ref
	Workspace, Trust, Title, Agent string
	Parent, CreatedBy              string // Parent is a handle, "" for none
	Depth, Children                int
	State                          State
	ParentOver                     bool // its run is over, and so is the session that created it
	Attached                       bool // one of its processes is alive
	Wakes                          bool // one of them can wake it
	Run                            int
	AgentSession                   string // the id by which the agent's program knows the session
	ExitStatus                     int
	CostUSD                        string
	Created, LastActive            time.Time
	Queued                         int
}

// Active reports whether the session works or can be expected to.
func (s *Session) Active() bool {
	return s.State == Starting || s.State == Working || s.State == Idle
}

// columns are what scan reads, for time ?1.
var columns = `s.tenant, s.id, s.workspace, s.trust, s.title, s.agent, s.parent, s.created_by, s.depth, s.children,
	s.run, s.run_state, s.run_until, coalesce(s.agent_session, ''), s.exit_status, s.cost_usd, s.created, s.seen, s.ended IS NOT NULL, s.queued,
	s.run_state IN ('finished', 'failed') AND (SELECT ` + parentOver + ` FROM (SELECT 1 AS one) AS one LEFT JOIN sessions p ON p.tenant = s.tenant AND p.id = s.parent),
	(SELECT max(a.called) FROM attachments a WHERE a.tenant = s.tenant AND a.session = s.id AND ` + fresh("a.until") + `),
	(SELECT max(a.wakes) FROM attachments a WHERE a.tenant = s.tenant AND a.session = s.id AND ` + fresh("a.until") + `)`

// scan reads a session from a row of columns, and what the row has behind them into more.
func scan(row interface{ Scan(...any) error }, now int64, more ...any) (*Session, error) {
	var s Session
	var runState string
	var runUntil, created, seen int64
	var ended bool
	var called, wakes sql.NullInt64
	to := []any{&s.Tenant, &s.ID, &s.Workspace, &s.Trust, &s.Title, &s.Agent, &s.Parent, &s.CreatedBy, &s.Depth, &s.Children,
		&s.Run, &runState, &runUntil, &s.AgentSession, &s.ExitStatus, &s.CostUSD, &created, &seen, &ended, &s.Queued, &s.ParentOver, &called, &wakes}
	if err := row.Scan(append(to, more...)...); err != nil {
		return nil, err
	}
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
		s.State = Failed // also of a run that is lost and not yet swept
	default:
		s.State = Gone
	}
	return &s, nil
}

// A Claim is what a process says of the session that it is of.
type Claim struct {
	Tenant string
	// Key is the session key. Conversation says that the host wrote it into the request's
	// _meta, where no variable of an agent's reaches: it may then also be the id by which
	// an agent's program knows a session that attache started.
	Key          string
	Conversation bool
	// Token proves a session that attache started.
	Token string
	// Workspace is the id of the workspace; without one only a session that is registered
	// already can be attached to.
	Workspace string
	// Trust, Owner and Title are of a session that is not registered yet. The lowest trust
	// that any of its processes had holds.
	Trust, Owner, Title string
}

// An Attachment is a process that serves a session.
type Attachment struct {
	Instance string // random
	Server   string
	Host     string
	PID      int
	Wakes    bool // the process can wake the session
}

// Attach registers the session of c, if it is not known, and the process that serves it.
// It returns [ErrNoContext] for a session that is not known and has no workspace,
// and [ErrUnproved].
func (s *Store) Attach(ctx context.Context, c Claim, a Attachment) (*Session, error) {
	var found *Session
	wakes := 0
	if a.Wakes {
		wakes = 1
	}
	err := s.in(ctx, c.Tenant, func(t *tx) error {
		ref, err := t.claim(c)
		if err != nil {
			return err
		}
		_, err = t.Exec(`INSERT INTO attachments (tenant, session, instance, server, host, pid, wakes, until, called)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
			ON CONFLICT (tenant, session, instance) DO UPDATE SET until = ?8, called = ?9`,
			ref.Tenant, ref.ID, a.Instance, a.Server, a.Host, a.PID, wakes, t.now+int64(Lease), t.now)
		if err == nil {
			found, err = t.session(ref)
		}
		return err
	})
	return found, err
}

// claim returns the session that c is of, registered if it was not.
func (t *tx) claim(c Claim) (Ref, error) {
	ref := Ref{Tenant: c.Tenant}
	key, alias := digest(c.Key), ""
	if c.Conversation {
		alias = c.Key
	}
	var token, found string
	var ended bool
	err := t.Row(`SELECT id, token, key, ended IS NOT NULL FROM sessions
		WHERE tenant = ?1 AND (key = ?2 OR agent_session = ?3 AND ?3 <> '') ORDER BY token DESC LIMIT 1`, c.Tenant, key, alias).
		Scan(&ref.ID, &token, &found, &ended)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return t.register(c, key)
	case err != nil:
		return ref, err
	case token != "" && found == key && digest(c.Token) != token:
		return ref, ErrUnproved
	case token != "" && ended:
		return ref, ErrNoContext
	}
	_, err = t.Exec(`UPDATE sessions SET seen = ?3, ended = NULL,
		trust = CASE WHEN trust = 'sandboxed' AND ended IS NULL THEN trust ELSE ?4 END WHERE tenant = ?1 AND id = ?2`,
		ref.Tenant, ref.ID, t.now, lowest(c.Trust))
	return ref, err
}

// lowest returns a level of trust, sandboxed where it is not said.
func lowest(trust string) string {
	if sessionstate.NormalizeTrust(trust) == sessionstate.Direct {
		return sessionstate.Direct
	}
	return sessionstate.Sandboxed
}

// register makes the row of a session that a person began.
func (t *tx) register(c Claim, key string) (Ref, error) {
	ref := Ref{c.Tenant, newHandle("ses_")}
	if c.Workspace == "" || c.Key == "" {
		return ref, ErrNoContext
	}
	_, err := t.Exec(`INSERT INTO sessions (tenant, id, key, workspace, trust, owner, title, created_by, created, seen)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'user', ?8, ?8)`,
		ref.Tenant, ref.ID, key, c.Workspace, lowest(c.Trust), c.Owner, c.Title, t.now)
	return ref, err
}

// Session returns what is known of a session.
func (s *Store) Session(ctx context.Context, ref Ref) (*Session, error) {
	var found *Session
	err := s.view(ctx, database.Scope{Tenant: ref.Tenant}, func(t *tx) (err error) {
		found, err = t.session(ref)
		return err
	})
	return found, err
}

func (t *tx) session(ref Ref) (*Session, error) {
	found, err := scan(t.Row(`SELECT `+columns+` FROM sessions s WHERE s.tenant = ?2 AND s.id = ?3`, t.now, ref.Tenant, ref.ID), t.now)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoSession
	}
	return found, err
}

// A Renewal is what a process says when it renews its lease.
type Renewal struct {
	Instance string
	// Host, if not "", renews the leases of all processes of the session there.
	Host string
	// Called is when the process had its last call.
	Called time.Time
}

// Renew renews the lease of a process.
func (s *Store) Renew(ctx context.Context, ref Ref, r Renewal) error {
	return s.soon(ctx, ref.Tenant, func(t *tx) error {
		n, err := t.Exec(`UPDATE attachments SET until = ?5, called = CASE WHEN instance = ?3 AND called < ?6 THEN ?6 ELSE called END
			WHERE tenant = ?1 AND session = ?2 AND (instance = ?3 OR host = ?4 AND ?4 <> '')`,
			ref.Tenant, ref.ID, r.Instance, r.Host, t.now+int64(Lease), r.Called.UnixNano())
		if err == nil && n == 0 {
			return errNoSession
		}
		if err == nil {
			_, err = t.Exec(`UPDATE sessions SET seen = ?3 WHERE tenant = ?1 AND id = ?2`, ref.Tenant, ref.ID, t.now)
		}
		return err
	})
}

// Detach removes a process that no longer serves a session.
func (s *Store) Detach(ctx context.Context, ref Ref, instance string) error {
	return s.soon(ctx, ref.Tenant, func(t *tx) error {
		_, err := t.Exec(`DELETE FROM attachments WHERE tenant = ?1 AND session = ?2 AND instance = ?3`, ref.Tenant, ref.ID, instance)
		if err == nil {
			_, err = t.Exec(`UPDATE sessions SET seen = ?3 WHERE tenant = ?1 AND id = ?2`, ref.Tenant, ref.ID, t.now)
		}
		return err
	})
}
