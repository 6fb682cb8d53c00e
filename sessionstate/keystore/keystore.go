// Package keystore stores API keys in a database that several machines share. It stores the
// same entries as a key file, with the hash of each key.
//
// A [Store] reads and changes the keys for people, and a [Resolver] finds the owner of a key. A
// key belongs to a tenant, but the tenant is unknown until the key is found. So look-ups, and
// the commands of the operator, see the keys of all tenants.
package keystore

import (
	"cmp"
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

// Notice is the payload of the notification of changed keys; see [database.Tx.Notify].
const Notice = "keys"

// A Store is a table of keys. It is safe for use by several processes and goroutines.
type Store struct{ db *database.DB }

// New returns the Store in db, which must be opened with [Schema].
func New(db *database.DB) *Store { return &Store{db} }

var allTenants = database.Scope{AllTenants: true}

const columns = `tenant, hash, id, owner, email, roles, permissions, plan, scope, trust, created, expires, revoked`

// Create makes a key for an owner, like [identity.Create].
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

// change runs f in a transaction, and notifies other processes of the change.
func (s *Store) change(ctx context.Context, f func(*database.Tx) error) error {
	return s.db.In(ctx, allTenants, func(tx *database.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return tx.Notify(Notice)
	})
}

// List returns the keys of all tenants, the oldest first.
func (s *Store) List(ctx context.Context) (all []identity.Entry, err error) {
	err = s.db.View(ctx, allTenants, func(tx *database.Tx) (err error) {
		all, err = list(tx)
		return err
	})
	return all, err
}

func list(tx *database.Tx) ([]identity.Entry, error) {
	read := func(row database.Rows) (identity.Entry, error) { return scan(row.Scan) }
	return database.Collect(tx, read, `SELECT `+columns+` FROM api_keys ORDER BY created, id`)
}

// Revoke revokes the key with the given id as of now, like [identity.Revoke].
func (s *Store) Revoke(ctx context.Context, id string, now time.Time) error {
	return s.change(ctx, func(tx *database.Tx) error {
		n, err := tx.Exec(`UPDATE api_keys SET revoked = CASE WHEN revoked = '' THEN ?2 ELSE revoked END WHERE id = ?1`, id, text(now.UTC()))
		if err == nil && n == 0 {
			return fmt.Errorf("%w: the shared database has none with the id %.40q: see attache key list", identity.ErrUnknownKey, id)
		}
		return err
	})
}

// Counts are the numbers of keys that an import added, changed and found unchanged.
type Counts struct{ Added, Changed, Same int }

// Any reports whether there is a key, revoked or not.
func (s *Store) Any(ctx context.Context) (exists bool, err error) {
	err = s.db.View(ctx, allTenants, func(tx *database.Tx) error {
		return tx.Row(`SELECT EXISTS (SELECT 1 FROM api_keys)`).Scan(&exists)
	})
	return exists, err
}

// Import copies the entries of a key file into the database, all of them or none. It updates
// existing entries from the file, but a revoked key stays revoked. Keys that are not in the
// file stay unchanged.
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

// importEntries writes the entries that are not in all or differ there.
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
	return n, write(tx, onConflictUpdate, changed...)
}

// find returns the entry of the key with the given hash, nil if there is none.
func (s *Store) find(ctx context.Context, hash string) (found *identity.Entry, err error) {
	err = s.db.View(ctx, allTenants, func(tx *database.Tx) error {
		e, err := scan(tx.Row(`SELECT `+columns+` FROM api_keys WHERE hash = ?1`, hash).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = &e
		return err
	})
	return found, err
}

// onConflictUpdate makes an INSERT update the rows of existing keys. It keeps a revocation that
// another process may have committed after this one read the row.
const onConflictUpdate = ` ON CONFLICT (hash) DO UPDATE SET
	tenant = excluded.tenant, id = excluded.id, owner = excluded.owner, email = excluded.email, roles = excluded.roles,
	permissions = excluded.permissions, plan = excluded.plan, scope = excluded.scope, trust = excluded.trust,
	created = excluded.created, expires = excluded.expires,
	revoked = CASE WHEN api_keys.revoked = '' THEN excluded.revoked ELSE api_keys.revoked END`

// writeBatch is the number of keys that one statement writes: with one statement for each of
// thousands of keys, a transaction would exceed the timeout of the database.
const writeBatch = 100

// write inserts keys; onConflict is the clause for existing ones.
func write(tx *database.Tx, onConflict string, entries ...identity.Entry) error {
	for some := range slices.Chunk(entries, writeBatch) {
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
		if _, err := tx.Exec(`INSERT INTO api_keys (`+columns+`) VALUES `+strings.Join(rows, ", ")+onConflict, args...); err != nil {
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
	if err := cmp.Or(json.Unmarshal([]byte(roles), &e.Roles), json.Unmarshal([]byte(permissions), &e.Permissions)); err != nil {
		return identity.Entry{}, fmt.Errorf("the roles or permissions of key %s: %w", e.ID, err)
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

// words returns list as JSON. A nil list becomes null and is read back as nil.
func words(list []string) string {
	data, _ := json.Marshal(list) // never fails for strings
	return string(data)
}

// text returns the form of a time in the database.
func text(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}
