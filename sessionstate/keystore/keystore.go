// Package keystore keeps API keys in a database that several machines share: the entries of a
// key file, with the hash of each key.
//
// A [Store] reads and changes them for people, a [Resolver] says whose a key is. A key belongs
// to a tenant, which is known only once the key was found; so a look-up sees all tenants, and
// nothing else does it but the commands of the operator.
//
// The rule numbers (S9) are those of the design.
package keystore

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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
	err = s.change(ctx, func(tx *database.Tx) error { return insert(tx, e) })
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

func list(tx *database.Tx) (all []identity.Entry, err error) {
	rows, err := tx.Rows(`SELECT ` + columns + ` FROM api_keys ORDER BY created, id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		e, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, rows.Err()
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
		n = Counts{}
		all, err := list(tx)
		if err != nil {
			return err
		}
		there := newIndex(all)
		for _, e := range entries {
			if err := importEntry(tx, there, e, &n); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// An index has the entries of a database by their hashes and ids.
type index struct{ byHash, byID map[string]*identity.Entry }

func newIndex(all []identity.Entry) index {
	x := index{make(map[string]*identity.Entry, len(all)), make(map[string]*identity.Entry, len(all))}
	for i := range all {
		x.byHash[all[i].SHA256], x.byID[all[i].ID] = &all[i], &all[i]
	}
	return x
}

func importEntry(tx *database.Tx, there index, e identity.Entry, n *Counts) error {
	old := there.byHash[e.SHA256]
	if taken := there.byID[e.ID]; taken != nil && taken != old {
		return fmt.Errorf("the id %.40q belongs to another key in the database: give the entry another id", e.ID)
	}
	if old == nil {
		n.Added++
		return insert(tx, e)
	}
	if !old.Revoked.IsZero() {
		e.Revoked = old.Revoked
	}
	if reflect.DeepEqual(*old, e) {
		n.Same++
		return nil
	}
	n.Changed++
	return replace(tx, e)
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

const insertion = `INSERT INTO api_keys (` + columns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)`

func insert(tx *database.Tx, e identity.Entry) error { return write(tx, insertion, e) }

// replace changes the row of a key to e. The statement itself keeps a revocation: another process
// may have committed one after the row was read.
func replace(tx *database.Tx, e identity.Entry) error {
	return write(tx, insertion+` ON CONFLICT (hash) DO UPDATE SET
		tenant = excluded.tenant, id = excluded.id, owner = excluded.owner, email = excluded.email, roles = excluded.roles,
		permissions = excluded.permissions, plan = excluded.plan, scope = excluded.scope, trust = excluded.trust,
		created = excluded.created, expires = excluded.expires,
		revoked = CASE WHEN api_keys.revoked = '' THEN excluded.revoked ELSE api_keys.revoked END`, e)
}

func write(tx *database.Tx, statement string, e identity.Entry) error {
	_, err := tx.Exec(statement,
		e.Tenant, e.SHA256, e.ID, e.User, e.Email, words(e.Roles), words(e.Permissions), e.Plan, e.Scope, e.Trust,
		text(e.Created), text(e.Expires), text(e.Revoked))
	return err
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
