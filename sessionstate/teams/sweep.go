package teams

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

// sweepEvery is how often one of the processes that share a server sweeps, and sweepBatch the
// number of rows that it handles at once. With 100,000 sessions a day, stored for seven days,
// deleting so many rows takes 31 to 276 ms, and 23 rows of a kind are due per second. A table for
// each day would need the day in every key, and two forms of each statement.
const (
	sweepEvery = 20 * time.Second
	sweepBatch = 1000
)

// Sweep ends lost runs, expired messages, and sessions of people that were unused for idle, or for [Expiry] if
// that is longer. It deletes everything that ended [Retention] ago. It covers all tenants. Only one of the
// processes that share a server does the work.
func (s *Store) Sweep(ctx context.Context, idle time.Duration) error {
	if s.db.Shared() {
		if mine, err := s.takeSweep(ctx); err != nil || !mine {
			return err
		}
	}
	if err := s.sweepRuns(ctx); err != nil {
		return err
	}
	if err := s.sweepMessages(ctx); err != nil {
		return err
	}
	return s.forget(ctx, idle)
}

// takeSweep reports whether this process must sweep now. It reads the lease before it takes it,
// because processes that write at the same time wait for each other.
func (s *Store) takeSweep(ctx context.Context) (mine bool, err error) {
	var until int64
	row := s.db.Row(ctx, database.Scope{Relaxed: true}, `SELECT until FROM leases WHERE tenant = ?1 AND name = 'sweep'`, "")
	if err := row.Scan(&until); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, unavailable(err)
	}
	// If more is left, the lease was taken before the clock was set back.
	if left := until - row.Now().UnixNano(); left > 0 && left <= int64(2*sweepEvery) {
		return false, nil
	}
	err = s.relaxed(ctx, "", func(t *tx) error {
		mine = t.exec(`INSERT INTO leases (tenant, name, until) VALUES ('', 'sweep', ?1 + ?2)
			ON CONFLICT (tenant, name) DO UPDATE SET until = ?1 + ?2 WHERE leases.until <= ?1 OR leases.until > ?1 + 2 * ?2`, t.now, int64(sweepEvery)) > 0
		return nil
	})
	return mine, err
}

// lostReport is the report of a lost run to the parent.
const lostReport = "lost: the machine or the supervisor ended, so it is not known how far the agent came"

// sweepRuns ends the runs whose supervisors did not renew the lease. It also recounts the running
// sessions, so that a crash never occupies slots for ever.
func (s *Store) sweepRuns(ctx context.Context) error {
	read := func(row database.Rows) (r RunRef, err error) {
		err = row.Scan(&r.Tenant, &r.ID, &r.Run)
		return r, err
	}
	lost, err := view(ctx, s, database.Scope{AllTenants: true}, func(t *tx) ([]RunRef, error) {
		return rows(t, read, `SELECT tenant, id, run FROM sessions
			WHERE run_state IN ('starting', 'running') AND NOT `+fresh("run_until")+` LIMIT ?2`, t.now, sweepBatch), nil
	})
	for _, r := range lost {
		if err == nil {
			err = s.in(ctx, r.Tenant, func(t *tx) error { t.endLost(r); return nil })
		}
	}
	return err
}

// endLost ends a run, unless its lease was renewed meanwhile, and recounts the running sessions. If the task of
// the agent is still queued, it is given up: the agent may have begun it, and its creator, which is told that the run
// is lost, may give the task to another agent.
func (t *tx) endLost(r RunRef) {
	n := t.exec(`UPDATE sessions SET run_until = 0 WHERE tenant = ?2 AND id = ?3 AND run = ?4 AND NOT `+fresh("run_until"), t.now, r.Tenant, r.ID, r.Run)
	if n == 0 || !t.endRun(r, Ending{Failed: true, ExitStatus: -1, Report: lostReport}) {
		return
	}
	for _, m := range t.waiting(` WHERE tenant = ?1 AND to_session = ?2 AND state = 'queued' AND kind = 'initial'`, r.Tenant, r.ID) {
		t.giveUp(m, Undeliverable, "")
	}
	// This transaction has locked the rows, so the counts cannot change.
	t.exec(`UPDATE sessions SET children = (SELECT count(*) FROM sessions c
			WHERE c.tenant = ?1 AND c.parent = sessions.id AND c.run_state IN ('starting', 'running'))
		WHERE tenant = ?1 AND children > 0 AND id = (SELECT me.parent FROM sessions me WHERE me.tenant = ?1 AND me.id = ?2)`, r.Tenant, r.ID)
	t.exec(`UPDATE workspaces SET live = (SELECT count(*) FROM sessions c
			WHERE c.tenant = ?1 AND c.workspace = workspaces.id AND c.run_state IN ('starting', 'running'))
		WHERE tenant = ?1 AND live > 0 AND id = (SELECT me.workspace FROM sessions me WHERE me.tenant = ?1 AND me.id = ?2)`, r.Tenant, r.ID)
}

// sweepMessages gives up the messages that nobody took in time.
func (s *Store) sweepMessages(ctx context.Context) error {
	expired, err := view(ctx, s, database.Scope{AllTenants: true}, func(t *tx) ([]waitingMessage, error) {
		return t.waiting(` WHERE state = 'queued' AND expires <= ?1 ORDER BY expires LIMIT ?2`, t.now, sweepBatch), nil
	})
	for _, m := range expired {
		if err == nil {
			err = s.in(ctx, m.to.Tenant, func(t *tx) error { t.giveUp(m, Expired, "nobody took it within 24 hours"); return nil })
		}
	}
	return err
}

// forgetBatch is the number of rows that one transaction of forget changes, and forgetRounds the
// maximum number of transactions. Each has to be short: see [database.Timeouts].
const forgetBatch, forgetRounds = 200, 10

// forget deletes a bounded number of old rows of each kind. It checks the time of a session twice, because
// its user may come back while it waits for the row. Each search has the order of an index. Without it,
// PostgreSQL reads the whole table if its statistics promise many rows, and the statement times out.
func (s *Store) forget(ctx context.Context, idle time.Duration) error {
	for _, f := range []func(*tx) int64{
		func(t *tx) int64 {
			t.exec(`DELETE FROM attachments WHERE NOT `+fresh("until"), t.now)
			return 0 // one round deletes all
		},
		func(t *tx) int64 {
			return t.exec(`UPDATE messages SET body = '' WHERE (tenant, id) IN (SELECT tenant, id FROM messages
				WHERE state IN ('carried', 'seen') AND carried <= ?1 AND body <> '' ORDER BY carried LIMIT ?2)`, t.now-int64(Expiry), forgetBatch)
		},
		func(t *tx) int64 {
			return t.exec(`DELETE FROM messages WHERE (tenant, id) IN (SELECT tenant, id FROM messages
				WHERE state <> 'queued' AND created <= ?1 ORDER BY created LIMIT ?2)`, t.now-int64(Retention), forgetBatch)
		},
		func(t *tx) int64 { // created, which is never after seen, has an index
			return t.exec(`UPDATE sessions SET ended = ?1 WHERE seen <= ?2 AND (tenant, id) IN (SELECT s.tenant, s.id FROM sessions s
				WHERE s.ended IS NULL AND s.created <= ?2 AND s.seen <= ?2 AND s.run_state NOT IN ('starting', 'running')
				AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.tenant = s.tenant AND a.session = s.id)
				AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.tenant = s.tenant AND m.to_session = s.id AND m.state = 'queued') ORDER BY s.created LIMIT ?3)`,
				t.now, t.now-int64(max(idle, Expiry)), forgetBatch)
		},
		func(t *tx) int64 {
			return t.exec(`DELETE FROM sessions WHERE ended <= ?1 AND (tenant, id) IN (SELECT s.tenant, s.id FROM sessions s
				WHERE s.ended <= ?1 AND s.run_state NOT IN ('starting', 'running')
				AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.tenant = s.tenant AND m.to_session = s.id) ORDER BY s.ended LIMIT ?2)`, t.now-int64(Retention), forgetBatch)
		},
	} {
		n := int64(forgetBatch)
		for round := 0; round < forgetRounds && n == forgetBatch; round++ {
			err := s.transact(ctx, database.Scope{AllTenants: true, Relaxed: true}, func(t *tx) error {
				n = f(t)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
