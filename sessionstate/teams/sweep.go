package teams

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

// sweepEvery is how often one of the processes that share a server forgets what is over, and
// sweepAtOnce how many rows it deals with at once. Among the rows of 100,000 sessions a day, kept
// for seven days, deleting as many takes 31 to 276 ms, and 23 of a kind are due a second at the full
// rate. A table for each day would need the day in every key, and two forms of each statement.
const (
	sweepEvery  = 20 * time.Second
	sweepAtOnce = 1000
)

// Sweep ends what is over: runs that are lost, messages that expired, sessions of people that
// were unused for idle; and forgets what was over for [Retention]. It is for all tenants. Of
// the processes that share a server one does it.
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

// takeSweep reports whether it is the turn of this process to sweep. It looks before it takes
// it: those that took it at once would wait for each other.
func (s *Store) takeSweep(ctx context.Context) (mine bool, err error) {
	var until int64
	row := s.db.Row(ctx, database.Scope{Relaxed: true}, `SELECT until FROM leases WHERE tenant = ?1 AND name = 'sweep'`, "")
	if err := row.Scan(&until); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, unavailable(err)
	}
	if left := until - row.Now().UnixNano(); left > 0 && left <= int64(2*sweepEvery) {
		return false, nil
	}
	err = s.soon(ctx, "", func(t *tx) error {
		n, err := t.Exec(`INSERT INTO leases (tenant, name, until) VALUES ('', 'sweep', ?1 + ?2)
			ON CONFLICT (tenant, name) DO UPDATE SET until = ?1 + ?2 WHERE leases.until <= ?1 OR leases.until > ?1 + 2 * ?2`, t.now, int64(sweepEvery))
		mine = n > 0
		return err
	})
	return mine, err
}

// lostReport is what the parent of a lost run is told.
const lostReport = "lost: the machine or the supervisor ended, so it is not known how far the agent came"

// sweepRuns ends the runs whose supervisor did not renew their lease, and counts again what
// runs, so that no crash takes slots for ever.
func (s *Store) sweepRuns(ctx context.Context) error {
	var lost []RunRef
	read := func(row database.Rows) (r RunRef, err error) {
		err = row.Scan(&r.Tenant, &r.ID, &r.Run)
		return r, err
	}
	err := s.view(ctx, database.Scope{AllTenants: true}, func(t *tx) (err error) {
		lost, err = database.Collect(t.Tx, read, `SELECT tenant, id, run FROM sessions
			WHERE run_state IN ('starting', 'running') AND NOT `+fresh("run_until")+` LIMIT ?2`, t.now, sweepAtOnce)
		return err
	})
	for _, r := range lost {
		if err == nil {
			err = s.in(ctx, r.Tenant, func(t *tx) error { return t.endLost(r) })
		}
	}
	return err
}

// endLost ends a run, unless its lease was renewed meanwhile, and counts what runs beside it.
func (t *tx) endLost(r RunRef) error {
	n, err := t.Exec(`UPDATE sessions SET run_until = 0 WHERE tenant = ?2 AND id = ?3 AND run = ?4 AND NOT `+fresh("run_until"), t.now, r.Tenant, r.ID, r.Run)
	if err != nil || n == 0 {
		return err
	}
	mine, err := t.endRun(r, Ending{Failed: true, ExitStatus: -1, Report: lostReport})
	if err != nil || !mine {
		return err
	}
	// The rows are locked by now, so nobody else changes what is counted.
	if _, err := t.Exec(`UPDATE sessions SET children = (SELECT count(*) FROM sessions c
			WHERE c.tenant = ?1 AND c.parent = sessions.id AND c.run_state IN ('starting', 'running'))
		WHERE tenant = ?1 AND children > 0 AND id = (SELECT me.parent FROM sessions me WHERE me.tenant = ?1 AND me.id = ?2)`, r.Tenant, r.ID); err != nil {
		return err
	}
	_, err = t.Exec(`UPDATE workspaces SET live = (SELECT count(*) FROM sessions c
			WHERE c.tenant = ?1 AND c.workspace = workspaces.id AND c.run_state IN ('starting', 'running'))
		WHERE tenant = ?1 AND live > 0 AND id = (SELECT me.workspace FROM sessions me WHERE me.tenant = ?1 AND me.id = ?2)`, r.Tenant, r.ID)
	return err
}

// sweepMessages gives up the messages that nobody took in time.
func (s *Store) sweepMessages(ctx context.Context) error {
	var expired []waitingMessage
	err := s.view(ctx, database.Scope{AllTenants: true}, func(t *tx) (err error) {
		expired, err = t.waiting(` WHERE state = 'queued' AND expires <= ?1 ORDER BY expires LIMIT ?2`, t.now, sweepAtOnce)
		return err
	})
	for _, m := range expired {
		if err == nil {
			err = s.in(ctx, m.to.Tenant, func(t *tx) error { return t.giveUp(m, Expired, "nobody took it within 24 hours") })
		}
	}
	return err
}

// forgetAtOnce is how many rows one transaction of forget changes, and forgetRounds how many
// transactions there are at most in one sweep. Each has to be short: see [database.Timeouts].
const forgetAtOnce, forgetRounds = 200, 10

// forget deletes what is over, a bounded number of rows of each kind.
func (s *Store) forget(ctx context.Context, idle time.Duration) error {
	for _, f := range []func(*tx) (int64, error){
		func(t *tx) (int64, error) {
			_, err := t.Exec(`DELETE FROM attachments WHERE NOT `+fresh("until"), t.now)
			return 0, err // all of them
		},
		func(t *tx) (int64, error) {
			return t.Exec(`UPDATE messages SET body = '' WHERE (tenant, id) IN (SELECT tenant, id FROM messages
				WHERE state IN ('carried', 'seen') AND carried <= ?1 AND body <> '' LIMIT ?2)`, t.now-int64(Expiry), forgetAtOnce)
		},
		func(t *tx) (int64, error) {
			return t.Exec(`DELETE FROM messages WHERE (tenant, id) IN (SELECT tenant, id FROM messages
				WHERE state <> 'queued' AND created <= ?1 LIMIT ?2)`, t.now-int64(Retention), forgetAtOnce)
		},
		func(t *tx) (int64, error) { // created is in the condition as there is an index of it: it is before seen
			return t.Exec(`UPDATE sessions SET ended = ?1 WHERE seen <= ?2 AND (tenant, id) IN (SELECT s.tenant, s.id FROM sessions s
				WHERE s.ended IS NULL AND s.created <= ?2 AND s.seen <= ?2 AND s.run_state NOT IN ('starting', 'running')
				AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.tenant = s.tenant AND a.session = s.id)
				AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.tenant = s.tenant AND m.to_session = s.id AND m.state = 'queued') LIMIT ?3)`,
				t.now, t.now-int64(max(idle, Expiry)), forgetAtOnce)
		},
		func(t *tx) (int64, error) {
			return t.Exec(`DELETE FROM sessions WHERE (tenant, id) IN (SELECT s.tenant, s.id FROM sessions s
				WHERE s.ended <= ?1 AND s.run_state NOT IN ('starting', 'running')
				AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.tenant = s.tenant AND m.to_session = s.id) LIMIT ?2)`, t.now-int64(Retention), forgetAtOnce)
		},
	} {
		n := int64(forgetAtOnce)
		for round := 0; round < forgetRounds && n == forgetAtOnce; round++ {
			err := s.transact(ctx, database.Scope{AllTenants: true, Relaxed: true}, func(t *tx) (err error) {
				n, err = f(t)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
