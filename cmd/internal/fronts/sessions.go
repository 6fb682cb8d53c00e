package fronts

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"hash/fnv"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/sessionstate/database"
)

// Sessions returns the sessions of one server of the service.
func (f *Front) Sessions(server string) sessions.Store { return &store{Front: f, server: server} }

// A store implements sessions.Store.
type store struct {
	*Front
	server  string
	endings endings
}

// Save implements sessions.Store.
func (s *store) Save(ctx context.Context, k sessions.Key, v sessions.Session) error {
	subscriptions, err := json.Marshal(v.Subscriptions)
	if err != nil {
		return err
	}
	if err := s.hold(ctx); err != nil {
		return err
	}
	n, err := s.db.Exec(ctx, database.Scope{Tenant: tenant}, `INSERT INTO front_sessions (tenant, server, id, principal, front, initialize, version, capabilities, level, subscriptions)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
		ON CONFLICT (tenant, server, id) DO UPDATE SET initialize = ?6, version = ?7, capabilities = ?8, level = ?9, subscriptions = ?10
		WHERE front_sessions.principal = ?4 AND front_sessions.front = ?5`,
		tenant, s.server, k.ID, k.Principal, s.id, v.Initialize, v.Version, v.Capabilities, v.Level, string(subscriptions))
	if err == nil && n == 0 {
		err = sessions.ErrElsewhere
	}
	return err
}

// deathTime is how long Take waits for a process of this machine that has stopped listening and
// still holds its lock. deathLook is the time between two checks.
const (
	deathTime = 5 * time.Second
	deathLook = 10 * time.Millisecond
)

// Take implements sessions.Store.
func (s *store) Take(ctx context.Context, k sessions.Key) (sessions.Session, error) {
	if err := s.hold(ctx); err != nil {
		return sessions.Session{}, err
	}
	for until := time.Now().Add(deathTime); ; {
		v, owner, err := s.take(ctx, k)
		if !errors.Is(err, sessions.ErrElsewhere) || time.Now().After(until) || !s.dying(ctx, owner) {
			return v, err
		}
		select {
		case <-time.After(deathLook):
		case <-ctx.Done():
			return v, err
		}
	}
}

// dying reports whether a front of this machine has stopped listening while it still holds its lock:
// a killed process closes its sockets first.
func (s *store) dying(ctx context.Context, p peer) bool {
	if s.lock == nil || p.host != s.host {
		return false
	}
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, "tcp", p.address)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// take takes a session and returns the front to which it belonged.
func (s *store) take(ctx context.Context, k sessions.Key) (v sessions.Session, owner peer, err error) {
	err = s.db.In(ctx, database.Scope{Tenant: tenant}, func(t *database.Tx) error {
		r, err := s.find(t, k)
		now := t.Now().UnixNano()
		v, owner = sessions.Session{}, r.owner
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return sessions.ErrNone
		case err != nil:
			return err
		case r.owner.id == s.id:
		case s.alive(r.owner, now):
			return sessions.ErrElsewhere
		case r.leftAt() <= now-int64(s.o.Idle):
			return sessions.ErrNone // not swept yet
		default:
			if r.owner.known {
				if err := s.lockLease(t, r.owner); err != nil {
					return err
				}
			}
			// Check that no other front has taken it meanwhile.
			n, err := t.Exec(`UPDATE front_sessions SET front = ?5 WHERE tenant = ?1 AND server = ?2 AND id = ?3 AND front = ?4`, tenant, s.server, k.ID, r.owner.id, s.id)
			if err != nil || n == 0 {
				return cmp.Or(err, sessions.ErrElsewhere)
			}
		}
		v = r.session
		if err := json.Unmarshal([]byte(r.subscriptions), &v.Subscriptions); err != nil || isWhole(v) {
			return err
		}
		return sessions.ErrNone
	})
	return v, owner, err
}

// lockLease checks that a front has not renewed its lease meanwhile, and locks its row so that it cannot. Others may lock
// it too: after the end of a front, clients ask for many of its sessions at once.
func (s *store) lockLease(t *database.Tx, p peer) error {
	query := `SELECT until FROM fronts WHERE tenant = ?1 AND id = ?2 AND until = ?3`
	if s.db.Shared() { // a transaction in a file is alone
		query += ` FOR SHARE`
	}
	err := t.Row(query, tenant, p.id, p.until).Scan(new(int64))
	if errors.Is(err, sql.ErrNoRows) {
		return sessions.ErrElsewhere
	}
	return err
}

// isWhole reports whether each text that becomes the params of a frame is one JSON value on one line, as Save got it.
// Other programs may write to the database, and a server could read another text as further frames, such as calls
// that no layer has seen.
func isWhole(v sessions.Session) bool {
	texts := append([]string{v.Initialize, cmp.Or(v.Level, "{}")}, v.Subscriptions...)
	return !slices.ContainsFunc(texts, func(text string) bool { return !json.Valid([]byte(text)) || strings.ContainsAny(text, "\r\n") })
}

// A row is a session with the front to which it belongs.
type row struct {
	session       sessions.Session
	subscriptions string
	releasedAt    int64 // by a front that released it
	owner         peer
}

// leftAt returns the time since which no front serves the session.
func (r *row) leftAt() int64 {
	if r.owner.known {
		return r.owner.until
	}
	return r.releasedAt
}

func (s *store) find(t *database.Tx, k sessions.Key) (r row, err error) {
	var host, address sql.NullString
	var until sql.NullInt64
	err = t.Row(`SELECT s.initialize, s.version, s.capabilities, s.level, s.subscriptions, s.left_at, s.front, f.host, f.address, f.until
		FROM front_sessions s LEFT JOIN fronts f ON f.tenant = s.tenant AND f.id = s.front
		WHERE s.tenant = ?1 AND s.server = ?2 AND s.id = ?3 AND s.principal = ?4`, tenant, s.server, k.ID, k.Principal).
		Scan(&r.session.Initialize, &r.session.Version, &r.session.Capabilities, &r.session.Level, &r.subscriptions, &r.releasedAt,
			&r.owner.id, &host, &address, &until)
	r.owner.host, r.owner.address, r.owner.until, r.owner.known = host.String, address.String, until.Int64, until.Valid
	return r, err
}

// Leave implements sessions.Store.
func (s *store) Leave(ctx context.Context, k sessions.Key, ended bool) error {
	if ended {
		return s.end(ctx, k.ID)
	}
	return s.db.In(ctx, database.Scope{Tenant: tenant}, func(t *database.Tx) error {
		_, err := t.Exec(`UPDATE front_sessions SET front = '', left_at = ?5 WHERE tenant = ?1 AND server = ?2 AND id = ?3 AND front = ?4`, tenant, s.server, k.ID, s.id, t.Now().UnixNano())
		return err
	})
}

// Elsewhere implements sessions.Store. For a session that several fronts may take it always chooses
// the same front, so that concurrent requests meet there.
func (s *store) Elsewhere(ctx context.Context, k sessions.Key) (address string, err error) {
	err = s.db.In(ctx, database.Scope{Tenant: tenant}, func(t *database.Tx) error {
		address = ""
		now := t.Now().UnixNano()
		r, err := s.find(t, k)
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		case err == nil && r.owner.id != s.id && s.alive(r.owner, now):
			address = r.owner.address
			return nil
		}
		others, err := s.others(t, now)
		if len(others) > 0 {
			h := fnv.New32a()
			_, _ = h.Write([]byte(k.ID))
			address = others[h.Sum32()%uint32(len(others))].address
		}
		return err
	})
	return address, err
}

// others returns the other fronts of the service that are alive and not draining.
func (s *store) others(t *database.Tx, now int64) ([]peer, error) {
	all, err := peers(t, `SELECT id, host, address, until FROM fronts WHERE tenant = ?1 AND service = ?2 AND id <> ?3 AND ending = 0 ORDER BY id`, tenant, s.o.Service, s.id)
	return slices.DeleteFunc(all, func(p peer) bool { return !s.alive(p, now) }), err
}
