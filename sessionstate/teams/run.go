package teams

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

// A RunRef identifies a run of a session that attache started.
type RunRef struct {
	Ref
	Run int
}

// BeginRun begins another run of a session whose last run is over, and returns its number. It
// returns 0 if the last run is not over, if a process of the session is alive, if no message is
// queued, if the session or its parent was ended, or if a limit is reached. At most one of many
// callers begins a run. key and token replace those in [Child]. The number is at least 2, whatever
// another program has put into the registry: the first run has another command than the others.
func (s *Store) BeginRun(ctx context.Context, ref Ref, l Limits, key, token string) (run int, err error) {
	err = s.in(ctx, ref.Tenant, func(t *tx) error {
		run = 0
		n := t.exec(`UPDATE sessions SET run = run + 1, run_state = 'starting', run_until = ?1 + ?4, key = ?5, token = ?6
			WHERE tenant = ?2 AND id = ?3 AND ended IS NULL AND queued > 0 AND run > 0 AND run_state IN ('finished', 'failed')
				AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.tenant = ?2 AND a.session = ?3 AND `+fresh("a.until")+`)`,
			t.now, ref.Tenant, ref.ID, int64(Lease), digest(key), digest(token))
		if n == 0 {
			return nil
		}
		n = t.exec(`UPDATE sessions SET children = children + 1 WHERE tenant = ?1 AND ended IS NULL AND children < ?3
			AND id = (SELECT parent FROM sessions c WHERE c.tenant = ?1 AND c.id = ?2)`, ref.Tenant, ref.ID, l.MaxChildren)
		if n == 0 {
			return errFull // undoes the first statement
		}
		found, err := t.session(ref)
		if err != nil {
			return err
		}
		run = found.Run
		return t.takeRoom(ref.Tenant, found.Workspace, l)
	})
	if _, full := err.(Refusal); full {
		return 0, nil
	}
	return run, err
}

// errFull means that the parent of a run has ended or has reached its limit.
const errFull = Refusal("full")

// MarkRunning records that the agent of a run was started. agentSession is the id that its
// program uses for the session, "" if it is unchanged.
func (s *Store) MarkRunning(ctx context.Context, r RunRef, agentSession string) error {
	return s.in(ctx, r.Tenant, func(t *tx) error {
		t.exec(`UPDATE sessions SET run_state = 'running', run_until = ?4, agent_session = coalesce(nullif(?5, ''), agent_session)
			WHERE tenant = ?1 AND id = ?2 AND run = ?3 AND run_state IN ('starting', 'running')`,
			r.Tenant, r.ID, r.Run, t.now+int64(Lease), agentSession)
		return nil
	})
}

// A RunView tells a supervisor whether its agent must end.
type RunView struct {
	Over       bool // the session was ended, or this run is no longer the current one
	ParentOver bool // the parent was ended, or has been gone for ParentGone
}

// RenewRun renews the lease of a run.
func (s *Store) RenewRun(ctx context.Context, r RunRef) (v RunView, err error) {
	err = s.relaxed(ctx, r.Tenant, func(t *tx) error {
		n := t.exec(`UPDATE sessions SET run_until = ?4, seen = ?5 WHERE tenant = ?1 AND id = ?2 AND run = ?3 AND run_state IN ('starting', 'running')`,
			r.Tenant, r.ID, r.Run, t.now+int64(Lease), t.now)
		if v = (RunView{Over: n == 0}); v.Over {
			return nil
		}
		t.row(`SELECT s.ended IS NOT NULL, `+parentOver+`
			FROM sessions s LEFT JOIN sessions p ON p.tenant = s.tenant AND p.id = s.parent WHERE s.tenant = ?2 AND s.id = ?3`,
			t.now, r.Tenant, r.ID).read(&v.Over, &v.ParentOver)
		return nil
	})
	return v, err
}

// An Ending is the result of a run.
type Ending struct {
	Failed bool
	// NotStarted means that the agent's program did not start. The messages for it become
	// undeliverable: those for the first run at once, the others after two minutes, in which they
	// start it again.
	NotStarted bool
	ExitStatus int
	CostUSD    string // as reported by the agent's program
	Report     string // for the parent
}

// EndRun ends a run: it releases the run's share of the limits and sends the parent a message of
// the kind [Result]. Exactly one of many callers does that, and gets true. If the run counts as
// lost, because its supervisor could not reach the database for longer than a lease, EndRun
// corrects the result and reports once more.
func (s *Store) EndRun(ctx context.Context, r RunRef, e Ending) (mine bool, err error) {
	err = s.in(context.WithoutCancel(ctx), r.Tenant, func(t *tx) error {
		mine = t.endRun(r, e) || t.correctLost(r, e)
		return nil
	})
	return mine && err == nil, err
}

// correctLost corrects the result of a run that counts as lost: endLost has set its lease to 0.
func (t *tx) correctLost(r RunRef, e Ending) bool {
	n := t.exec(`UPDATE sessions SET run_state = ?4, exit_status = ?5, cost_usd = ?6, run_until = ?7
		WHERE tenant = ?1 AND id = ?2 AND run = ?3 AND run_state = 'failed' AND run_until = 0`,
		r.Tenant, r.ID, r.Run, e.state(), e.ExitStatus, e.CostUSD, t.now)
	if n == 0 {
		return false
	}
	var parent string
	t.row(`SELECT parent FROM sessions WHERE tenant = ?1 AND id = ?2`, r.Tenant, r.ID).read(&parent)
	t.deliver(Ref{r.Tenant, parent}, letter{from: r.ID, kind: Result, body: e.Report})
	return true
}

func (e *Ending) state() string {
	if e.Failed {
		return runFailed
	}
	return runFinished
}

// endRun ends a run and reports whether it has not ended before.
func (t *tx) endRun(r RunRef, e Ending) bool {
	n := t.exec(`UPDATE sessions SET run_state = ?4, exit_status = ?5, cost_usd = ?6, seen = ?7
		WHERE tenant = ?1 AND id = ?2 AND run = ?3 AND run_state IN ('starting', 'running')`,
		r.Tenant, r.ID, r.Run, e.state(), e.ExitStatus, e.CostUSD, t.now)
	if n == 0 {
		return false
	}
	var parent, workspace string
	t.row(`SELECT parent, workspace FROM sessions WHERE tenant = ?1 AND id = ?2`, r.Tenant, r.ID).read(&parent, &workspace)
	// Before the row of the workspace is locked: senders lock their own first.
	again := e.NotStarted && t.notStarted(r) // the messages for the agent start it again
	t.exec(`UPDATE sessions SET children = children - 1 WHERE tenant = ?1 AND id = ?2 AND children > 0`, r.Tenant, parent)
	t.exec(`UPDATE workspaces SET live = live - 1 WHERE tenant = ?1 AND id = ?2 AND live > 0`, r.Tenant, workspace)
	if !again {
		t.deliver(Ref{r.Tenant, parent}, letter{from: r.ID, kind: Result, body: e.Report})
	}
	return true
}

// notStarted gives up the messages of a session whose agent did not start. Those for a later run stay
// for startTries, and again reports that there are some: another process may be able to start the agent,
// or this one in a moment. If the agent has never run, its program does not know the session, and cannot
// resume it.
func (t *tx) notStarted(r RunRef) (again bool) {
	until := int64(math.MaxInt64)
	if r.Run > 1 {
		until = t.now - int64(startTries)
	} else {
		t.exec(`UPDATE sessions SET agent_session = NULL WHERE tenant = ?1 AND id = ?2`, r.Tenant, r.ID)
	}
	t.giveUpAll(r.Ref, until, "its agent could not be started")
	t.row(`SELECT queued > 0 FROM sessions WHERE tenant = ?1 AND id = ?2`, r.Tenant, r.ID).read(&again)
	return again
}

// startTries is how long a message starts an agent again that cannot be started.
const startTries = 2 * time.Minute

// End ends a descendant of the session by, with all descendants of that. Their queued messages
// become undeliverable. Ending a session twice is no error. End returns the sessions that were
// ended; the supervisors end their agents.
func (s *Store) End(ctx context.Context, by Ref, id string) (ended []string, err error) {
	err = s.in(ctx, by.Tenant, func(t *tx) error {
		var mine bool
		t.row(`WITH RECURSIVE up (id) AS (
				SELECT parent FROM sessions WHERE tenant = ?1 AND id = ?2
				UNION SELECT s.parent FROM sessions s JOIN up ON s.tenant = ?1 AND s.id = up.id WHERE s.parent <> '')
			SELECT EXISTS (SELECT 1 FROM up WHERE id = ?3)`, by.Tenant, id, by.ID).read(&mine)
		if !mine {
			return ErrNotYours
		}
		ended = t.endTree(Ref{by.Tenant, id})
		return nil
	})
	return ended, err
}

// EndByOperator ends any session and all its descendants.
func (s *Store) EndByOperator(ctx context.Context, ref Ref) (ended []string, err error) {
	err = s.in(ctx, ref.Tenant, func(t *tx) error {
		ended = t.endTree(ref)
		return nil
	})
	return ended, err
}

// endTree ends a session and its descendants. It misses no child that is being created: the update waits for the
// row of its parent, and a session that has ended creates no more. It looks for the children of one session at a
// time. For the children of several sessions, PostgreSQL would read the whole table, because most sessions have
// no parent.
func (t *tx) endTree(root Ref) (ended []string) {
	read := func(row database.Rows) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	}
	tree := []string{root.ID}
	for i := 0; i < len(tree); i++ {
		if t.exec(`UPDATE sessions SET ended = ?3 WHERE tenant = ?1 AND id = ?2 AND ended IS NULL`, root.Tenant, tree[i], t.now) > 0 {
			ended = append(ended, tree[i])
		}
		for _, child := range rows(t, read, `SELECT id FROM sessions WHERE tenant = ?1 AND parent = ?2`, root.Tenant, tree[i]) {
			if !slices.Contains(tree, child) { // another program may have made a circle
				tree = append(tree, child)
			}
		}
	}
	for _, id := range ended {
		t.giveUpAll(Ref{root.Tenant, id}, math.MaxInt64, "its session was ended")
	}
	return ended
}

// giveUpAll removes the messages that were sent until a time from a mailbox and notifies their senders.
func (t *tx) giveUpAll(of Ref, until int64, why string) {
	for _, m := range t.waiting(` WHERE tenant = ?1 AND to_session = ?2 AND state = 'queued' AND created <= ?3 ORDER BY seq`, of.Tenant, of.ID, until) {
		t.giveUp(m, Undeliverable, why)
	}
}

type waitingMessage struct {
	to       Ref
	seq      int64
	id, from string
	kind     Kind
}

// waiting returns the messages that match the clause where.
func (t *tx) waiting(where string, args ...any) []waitingMessage {
	return rows(t, func(row database.Rows) (m waitingMessage, err error) {
		err = row.Scan(&m.to.Tenant, &m.to.ID, &m.seq, &m.id, &m.from, &m.kind)
		return m, err
	}, `SELECT tenant, to_session, seq, id, from_session, kind FROM messages`+where, args...)
}

// giveUp removes a message from its mailbox, if it is still there, and notifies its sender.
func (t *tx) giveUp(m waitingMessage, state, why string) {
	t.exec(`UPDATE sessions SET seen = seen WHERE tenant = ?1 AND id = ?2`, m.to.Tenant, m.to.ID) // locks the mailbox
	// Its receipt has the time at which it expired, or at which it became undeliverable.
	n := t.exec(`UPDATE messages SET state = ?4, expires = CASE WHEN expires > ?5 THEN ?5 ELSE expires END
		WHERE tenant = ?1 AND to_session = ?2 AND seq = ?3 AND state = 'queued'`,
		m.to.Tenant, m.to.ID, m.seq, state, t.now)
	if n == 0 {
		return
	}
	t.exec(`UPDATE sessions SET queued = queued - 1 WHERE tenant = ?1 AND id = ?2`, m.to.Tenant, m.to.ID)
	if m.kind != Text {
		return
	}
	notice := fmt.Sprintf("your message %s to %s did not arrive: %s", m.id, m.to.ID, why)
	t.deliver(Ref{m.to.Tenant, m.from}, letter{from: m.to.ID, kind: Notice, body: notice})
}
