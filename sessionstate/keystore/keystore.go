// Package keystore keeps API keys in a database that several machines share: the entries of a
// key file, with the hash of each key.
//
// A [Store] reads and changes them for people, a [Resolver] says whose a key is. A key belongs
// to a tenant, which is known only once the key was found; so a look-up sees all tenants, and
// nothing else does it but the commands of the operator.
package keystore

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

//go:embed schema/*.sql
var files embed.FS

// Schema returns the table of keys.
func Schema() database.Schema { return database.Schema{Name: "keys", Files: files} }

// Notice is what other processes hear of when keys have changed; see [database.Tx.Notify].
const Notice = "keys"

// A Store keeps the keys. It is safe for use by several processes and goroutines.
type Store struct{ db *database.DB }

// New returns the keys in db, which was opened with [Schema].
func New(db *database.DB) *Store { return &Store{db} }

// everyone is the scope of a look-up by hash or id.
var everyone = database.Scope{AllTenants: true}

const columns = `tenant, hash, id, owner, email, roles, permissions, plan, scope, trust, created, expires, revoked`

// Create makes a key for an owner, as [identity.Create] does in a file.
func (s *Store) Create(ctx context.Context, a identity.Attributes, prefix string, expiry time.Duration, now time.Time) (key string, e identity.Entry, err error) {
	if key, e, err = identity.NewKey(a, prefix, expiry, now); err != nil {
		return "", identity.Entry{}, err
	}
	err = s.change(ctx, func(tx *database.Tx) error { return write(tx, "", e) })
	if err != nil {
		return "", identity.Entry{}, fmt.Errorf("making the key: %w", err)
	}
	return key, e, nil
}

// change runs f in a transaction, and tells other processes that keys have changed.
func (s *Store) change(ctx context.Context, f func(*database.Tx) error) error {
	return s.db.In(ctx, everyone, func(tx *database.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return tx.Notify(Notice)
	})
}

// List returns the keys of all tenants, the oldest first.
func (s *Store) List(ctx context.Context) (all []identity.Entry, err error) {
	err = s.db.View(ctx, everyone, func(tx *database.Tx) (err error) {
		all, err = list(tx)
		return err
	})
	return all, err
}

func list(tx *database.Tx) ([]identity.Entry, error) {
	read := func(row database.Rows) (identity.Entry, error) { return scan(row.Scan) }
	return database.Collect(tx, read, `SELECT `+columns+` FROM api_keys ORDER BY created, id`)
}

// Revoke revokes the key with an id as of now, as [identity.Revoke] does in a file.
func (s *Store) Revoke(ctx context.Context, id string, now time.Time) error {
	return s.change(ctx, func(tx *database.Tx) error {
		for {
			n, err := tx.Exec(`UPDATE api_keys SET revoked = ?2 WHERE id = ?1 AND revoked = ''`, id, text(now.UTC()))
			if err != nil || n > 0 {
				return err
			}
			var revoked string
			err = tx.Row(`SELECT revoked FROM api_keys WHERE id = ?1`, id).Scan(&revoked)
			switch {
			case errors.Is(err, sql.ErrNoRows):
				return fmt.Errorf("%w: the shared database has none with the id %.40q: see attache key list", identity.ErrUnknownKey, id)
			case err != nil || revoked != "":
				return err
			}
			// An import has just brought the key: each statement sees what is committed by then.
		}
	})
}

// Counts are how many keys an import added, changed and found as they were.
type Counts struct{ Added, Changed, Same int }

// Any reports whether there is a key, revoked or not.
func (s *Store) Any(ctx context.Context) (there bool, err error) {
	err = s.db.View(ctx, everyone, func(tx *database.Tx) error {
		return tx.Row(`SELECT EXISTS (SELECT 1 FROM api_keys)`).Scan(&there)
	})
	return there, err
}

// Import brings entries of a key file into the database, all of them or none. An entry that is
// there is changed to what the file says, but a key that was revoked stays revoked. Keys that
// the file does not have stay.
func (s *Store) Import(ctx context.Context, entries []identity.Entry) (n Counts, err error) {
	err = s.change(ctx, func(tx *database.Tx) error {
		all, err := list(tx)
		if err != nil {
			return err
		}
		n, err = importEntries(tx, all, entries)
		return err
	})
	return n, err
}

// importEntries writes what is not in all as it is in entries.
func importEntries(tx *database.Tx, all, entries []identity.Entry) (n Counts, err error) {
	byHash, byID := make(map[string]*identity.Entry, len(all)), make(map[string]*identity.Entry, len(all))
	for i := range all {
		byHash[all[i].SHA256], byID[all[i].ID] = &all[i], &all[i]
	}
	var added, changed []identity.Entry
	for _, e := range entries {
		old := byHash[e.SHA256]
		if taken := byID[e.ID]; taken != nil && taken != old {
			return Counts{}, fmt.Errorf("the id %.40q belongs to another key in the database: give the entry another id", e.ID)
		}
		if old == nil {
			added = append(added, e)
			continue
		}
		if !old.Revoked.IsZero() {
			e.Revoked = old.Revoked
		}
		if reflect.DeepEqual(*old, e) {
			n.Same++
			continue
		}
		changed = append(changed, e)
	}
	n.Added, n.Changed = len(added), len(changed)
	if err := write(tx, "", added...); err != nil {
		return Counts{}, err
	}
	return n, write(tx, replacing, changed...)
}

// find returns the entry of the key with a hash, nil if there is none.
func (s *Store) find(ctx context.Context, hash string) (found *identity.Entry, err error) {
	err = s.db.View(ctx, everyone, func(tx *database.Tx) error {
		found = nil
		e, err := scan(tx.Row(`SELECT `+columns+` FROM api_keys WHERE hash = ?1`, hash).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = &e
		return err
	})
	return found, err
}

// replacing has an insertion change the rows of keys that are there. The statement itself keeps a
// revocation: another process may have committed one after the row was read.
const replacing = ` ON CONFLICT (hash) DO UPDATE SET
	tenant = excluded.tenant, id = excluded.id, owner = excluded.owner, email = excluded.email, roles = excluded.roles,
	permissions = excluded.permissions, plan = excluded.plan, scope = excluded.scope, trust = excluded.trust,
	created = excluded.created, expires = excluded.expires,
	revoked = CASE WHEN api_keys.revoked = '' THEN excluded.revoked ELSE api_keys.revoked END`

// writeAtOnce is how many keys one statement writes: a transaction with one statement for each
// of thousands would take longer than the database is given.
const writeAtOnce = 100

// write inserts keys; conflict says what to do about those that are there.
func write(tx *database.Tx, conflict string, entries ...identity.Entry) error {
	for some := range slices.Chunk(entries, writeAtOnce) {
		var rows []string
		var args []any
		for _, e := range some {
			row := []any{
				e.Tenant, e.SHA256, e.ID, e.User, e.Email, words(e.Roles), words(e.Permissions), e.Plan, e.Scope, e.Trust,
				text(e.Created), text(e.Expires), text(e.Revoked),
			}
			var places []string
			for i := range row {
				places = append(places, fmt.Sprintf("?%d", len(args)+i+1))
			}
			rows, args = append(rows, "("+strings.Join(places, ", ")+")"), append(args, row...)
		}
		if _, err := tx.Exec(`INSERT INTO api_keys (`+columns+`) VALUES `+strings.Join(rows, ", ")+conflict, args...); err != nil {
			return err
		}
	}
	return nil
}

func scan(into func(...any) error) (e identity.Entry, err error) {
	var roles, permissions, created, expires, revoked string
	err = into(&e.Tenant, &e.SHA256, &e.ID, &e.User, &e.Email, &roles, &permissions, &e.Plan, &e.Scope, &e.Trust, &created, &expires, &revoked)
	if err != nil {
		return identity.Entry{}, err
	}
	for _, list := range []struct {
		from string
		to   *[]string
	}{{roles, &e.Roles}, {permissions, &e.Permissions}} {
		if err := json.Unmarshal([]byte(list.from), list.to); err != nil {
			return identity.Entry{}, fmt.Errorf("the roles or permissions of key %s: %w", e.ID, err)
		}
	}
	for _, t := range []struct {
		from string
		to   *time.Time
	}{{created, &e.Created}, {expires, &e.Expires}, {revoked, &e.Revoked}} {
		if t.from == "" {
			continue
		}
		if *t.to, err = time.Parse(time.RFC3339, t.from); err != nil {
			return identity.Entry{}, fmt.Errorf("a time of key %s: %w", e.ID, err)
		}
	}
	return e, nil
}

// words returns a JSON array, null for none: it is read back as it was.
func words(list []string) string {
	data, _ := json.Marshal(list) // texts are always valid
	return string(data)
}

// text returns a time as the database has it.
func text(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}
