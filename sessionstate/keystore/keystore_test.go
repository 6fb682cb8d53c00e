package keystore

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/databasetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// suite has the tests for both engines. open returns another store with the same keys.
var suite = []struct {
	name string
	test func(t *testing.T, open func() *Store)
}{
	{"an entry is read back unchanged", testRoundTrip},
	{"revoke", testRevoke},
	{"import", testImport},
	{"several import at once", testImportAtOnce},
	{"an entry that cannot be read", testUnreadable},
	{"an unknown key", testUnknown},
}

var check = testkit.Check

func TestOnSQLite(t *testing.T) {
	for _, test := range suite {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys.db")
			test.test(t, func() *Store {
				db, err := database.OpenFile(t.Context(), database.FileOptions{Path: path, Wait: time.Minute, Schema: Schema()})
				check(t, err)
				t.Cleanup(func() { _ = db.Close() })
				return New(db)
			})
		})
	}
}

func TestOnPostgreSQL(t *testing.T) {
	cluster := pgtest.New(t, os.Getenv)
	made := databasetest.Migrate(t, cluster.Database(), Schema())
	for _, test := range suite {
		t.Run(test.name, func(t *testing.T) {
			url := cluster.Copy(made)
			test.test(t, func() *Store { return New(databasetest.Connect(t, url).Open(Schema())) })
		})
	}
	t.Run("a role that may only read", func(t *testing.T) {
		server := databasetest.Connect(t, cluster.Copy(made))
		s := New(server.Open(Schema()))
		_, e, err := s.Create(t.Context(), ada, "", 0, start)
		check(t, err)
		err = s.db.In(t.Context(), allTenants, func(tx *database.Tx) error {
			_, err := tx.Exec(`REVOKE INSERT, UPDATE, DELETE ON api_keys FROM attache`) // the owner in this test
			return err
		})
		check(t, err)
		if found, err := s.find(t.Context(), e.SHA256); err != nil || found == nil {
			t.Errorf("find = %v, %v", found, err)
		}
		if err := s.Revoke(t.Context(), e.ID, start); err == nil || errors.Is(err, identity.ErrUnknownKey) {
			t.Errorf("Revoke: %v", err)
		}
		if key, _, err := s.Create(t.Context(), ada, "", 0, start); err == nil || key != "" {
			t.Errorf("Create = %q, %v", key, err)
		}
		if problems, err := server.Problems(t.Context(), []database.Schema{Schema()}); err != nil || slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, "api_keys") }) {
			t.Errorf("Problems = %q, %v", problems, err)
		}
	})
	t.Run("without the table nobody knows whether there are keys", func(t *testing.T) {
		if any, err := New(databasetest.Connect(t, cluster.Database()).Open(Schema())).Any(t.Context()); err == nil {
			t.Errorf("Any = %v", any)
		}
	})
	testRevokeBesideImport(t, func() string { return cluster.Copy(made) })
	t.Run("tenants are apart", func(t *testing.T) { testTenants(t, New(databasetest.Connect(t, cluster.Copy(made)).Open(Schema()))) })
}

var (
	start = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	ada   = identity.Attributes{User: "ada", Tenant: "acme", Email: "ada@acme.example", Roles: []string{"dev", `"quoted"`}, Permissions: []string{"records:read"}, Plan: "pro", Scope: "acme/x", Trust: "sandboxed"}
)

// Entries with all fields and with none are read back unchanged.
func testRoundTrip(t *testing.T, open func() *Store) {
	s := open()
	if any, err := s.Any(t.Context()); any || err != nil {
		t.Errorf("Any of an empty table = %v, %v", any, err)
	}
	var want []identity.Entry
	for i, a := range []identity.Attributes{ada, {Scope: "x"}, ada, {}, ada, {}} {
		_, e, err := s.Create(t.Context(), a, "", time.Duration(i)*time.Hour, start.Add(-time.Duration(i/2)*time.Second))
		check(t, err)
		want = append(want, e)
	}
	slices.SortFunc(want, func(a, b identity.Entry) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	got, err := open().List(t.Context())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("List = %+v, %v\nwant %+v", got, err, want)
	}
	if any, err := s.Any(t.Context()); !any || err != nil {
		t.Errorf("Any = %v, %v", any, err)
	}
	if _, _, err := s.Create(t.Context(), ada, "bad prefix", 0, start); err == nil {
		t.Error("a key with a bad prefix was made")
	}
}

func testRevoke(t *testing.T, open func() *Store) {
	s := open()
	_, e, err := s.Create(t.Context(), ada, "", 0, start)
	check(t, err)
	for i := range 2 { // repeating it is no error and changes nothing
		check(t, s.Revoke(t.Context(), e.ID, start.Add(time.Duration(i)*time.Hour)))
		if all, err := s.List(t.Context()); err != nil || !all[0].Revoked.Equal(start) {
			t.Errorf("the key is %+v, %v; want revoked at %v", all[0], err, start)
		}
	}
	if err := s.Revoke(t.Context(), "nobody", start); !errors.Is(err, identity.ErrUnknownKey) || !strings.Contains(err.Error(), `"nobody": see attache key list`) {
		t.Errorf("revoking an unknown key: %v", err)
	}
}

// A key whose entry cannot be read belongs to nobody.
func testUnreadable(t *testing.T, open func() *Store) {
	s := open()
	for _, change := range []string{`roles = 'dev'`, `permissions = ''`, `expires = 'tomorrow'`} {
		key, e, err := s.Create(t.Context(), ada, "", 0, start)
		check(t, err)
		check(t, s.db.In(t.Context(), allTenants, func(tx *database.Tx) error {
			_, err := tx.Exec(`UPDATE api_keys SET `+change+` WHERE id = ?1`, e.ID)
			return err
		}))
		p, err := NewResolver(s, time.Minute, nil).Resolve(t.Context(), key)
		if !errors.Is(err, identity.ErrKeyStore) || !strings.Contains(err.Error(), e.ID) {
			t.Errorf("%s: Resolve = %v, %v", change, p, err)
		}
		if n, err := s.Import(t.Context(), nil); err == nil {
			t.Errorf("%s: Import = %+v", change, n)
		}
		if all, err := s.List(t.Context()); err == nil {
			t.Errorf("%s: List = %+v", change, all)
		}
	}
}

func testUnknown(t *testing.T, open func() *Store) {
	s := open()
	_, _, err := s.Create(t.Context(), ada, "", 0, start)
	check(t, err)
	if p, err := NewResolver(s, time.Minute, nil).Resolve(t.Context(), "made-up"); !errors.Is(err, identity.ErrUnknownKey) || p != nil {
		t.Errorf("Resolve = %v, %v", p, err)
	}
}

// An import can be repeated, updates changed entries, and does not restore revoked keys.
func testImport(t *testing.T, open func() *Store) {
	s := open()
	_, first, _ := identity.NewKey(ada, "", time.Hour, start)
	_, second, _ := identity.NewKey(identity.Attributes{User: "bob"}, "", 0, start)
	doImport := func(want Counts, entries ...identity.Entry) {
		t.Helper()
		if n, err := s.Import(t.Context(), entries); err != nil || n != want {
			t.Errorf("Import = %+v, %v; want %+v", n, err, want)
		}
		all, err := s.List(t.Context())
		for _, e := range entries {
			i := slices.IndexFunc(all, func(other identity.Entry) bool { return other.SHA256 == e.SHA256 })
			if i >= 0 && e.Revoked.IsZero() {
				e.Revoked = all[i].Revoked
			}
			if err != nil || i < 0 || !reflect.DeepEqual(all[i], e) {
				t.Errorf("the keys are %+v, %v; want %+v", all, err, e)
			}
		}
	}
	doImport(Counts{Added: 2}, first, second)
	doImport(Counts{Same: 2}, first, second)
	moved := identity.Entry{ID: "moved", SHA256: first.SHA256, Created: start.Add(time.Hour), Expires: start.Add(9 * time.Hour)}
	moved.Attributes = identity.Attributes{User: "eve", Tenant: "other", Email: "eve@other.example", Permissions: []string{"x"}, Plan: "team", Scope: "y", Trust: "direct"}
	doImport(Counts{Changed: 1}, moved)
	check(t, s.Revoke(t.Context(), moved.ID, start))
	doImport(Counts{Same: 2}, moved, second)
	moved.Plan = "free"
	doImport(Counts{Changed: 1}, moved)
	moved.Revoked = start
	second.Revoked = start
	doImport(Counts{Changed: 1, Same: 1}, moved, second)

	// If one entry is invalid, nothing is imported.
	_, third, _ := identity.NewKey(ada, "", 0, start)
	_, stranger, _ := identity.NewKey(ada, "", 0, start)
	stranger.ID = second.ID
	if _, err := s.Import(t.Context(), []identity.Entry{third, stranger}); err == nil || !strings.Contains(err.Error(), "belongs to another key") {
		t.Errorf("an id of another key: %v", err)
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("%d keys, %v", len(all), err)
	}
}

// A large file takes few statements, because each is a round trip to a server.
func TestImportTakesFewStatements(t *testing.T) {
	statements := 0
	db, err := database.OpenFile(t.Context(), database.FileOptions{
		Path: filepath.Join(t.TempDir(), "keys.db"), Wait: time.Minute, Schema: Schema(), Trace: func(string) { statements++ },
	})
	check(t, err)
	defer db.Close()
	var entries []identity.Entry
	for range 2*writeBatch + 1 {
		_, e, _ := identity.NewKey(ada, "", 0, start)
		entries = append(entries, e)
	}
	s := New(db)
	for _, want := range []Counts{{Added: len(entries)}, {Changed: len(entries)}, {Same: len(entries)}} {
		statements = 0
		n, err := s.Import(t.Context(), entries)
		if err != nil || n != want || statements > 4 {
			t.Errorf("Import = %+v, %v with %d statements; want %+v with 4 at most", n, err, statements, want)
		}
		for i := range entries {
			entries[i].Plan = "free"
		}
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != len(entries) || all[len(all)-1].Plan != "free" {
		t.Errorf("%d keys, %v", len(all), err)
	}
}

// Several processes import the same file at once.
func testImportAtOnce(t *testing.T, open func() *Store) {
	var entries []identity.Entry
	for range 20 {
		_, e, _ := identity.NewKey(ada, "", 0, start)
		entries = append(entries, e)
	}
	results := make(chan Counts)
	for range 5 {
		s := open()
		go func() {
			n, err := s.Import(context.WithoutCancel(t.Context()), entries)
			if err != nil {
				t.Error(err)
			}
			results <- n
		}()
	}
	var sum Counts
	for range 5 {
		n := <-results
		sum.Added, sum.Changed, sum.Same = sum.Added+n.Added, sum.Changed+n.Changed, sum.Same+n.Same
	}
	if want := (Counts{Added: 20, Same: 80}); sum != want {
		t.Errorf("together %+v, want %+v", sum, want)
	}
}

// After a revocation during an import of the same key, the key is revoked, or there is an error.
func testRevokeBesideImport(t *testing.T, newDatabase func() string) {
	changes := map[string]struct {
		change func(*identity.Entry)
		want   error // of a revocation that waited for the import
	}{
		"the plan":   {func(e *identity.Entry) { e.Plan = "free" }, nil},
		"the tenant": {func(e *identity.Entry) { e.Tenant = "other" }, nil},
		"the id":     {func(e *identity.Entry) { e.ID = "another" }, identity.ErrUnknownKey},
	}
	for name, test := range changes {
		for order, revoke := range map[string]func(*testing.T, *Store, *Store, identity.Entry, string) error{
			"is revoked before the import writes": revokeBeforeWrite, "is revoked before the import ends": revokeBeforeCommit,
		} {
			t.Run("a key whose import changes "+name+" "+order, func(t *testing.T) {
				server := databasetest.Connect(t, newDatabase())
				importer, revoker := New(server.Open(Schema())), New(server.Open(Schema()))
				_, old, err := importer.Create(t.Context(), ada, "", 0, start)
				check(t, err)
				changed := old
				test.change(&changed)
				err = revoke(t, importer, revoker, changed, old.ID)
				if err != nil && !errors.Is(err, test.want) {
					t.Fatal(err)
				}
				changed.Revoked = start
				if err != nil {
					changed.Revoked = time.Time{}
				}
				if all, err := revoker.List(t.Context()); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], changed) {
					t.Errorf("the keys are %+v, %v\nwant %+v", all, err, changed)
				}
			})
		}
	}
}

// revokeBeforeWrite revokes a key after an import of e has read the keys and before it changes
// them.
func revokeBeforeWrite(t *testing.T, importer, revoker *Store, e identity.Entry, id string) error {
	var revoked error
	var n Counts
	err := importer.change(t.Context(), func(tx *database.Tx) error {
		there, err := list(tx)
		if err != nil {
			return err
		}
		revoked = revoker.Revoke(t.Context(), id, start)
		n, err = importEntries(tx, there, []identity.Entry{e})
		return err
	})
	if err != nil || n != (Counts{Changed: 1}) {
		t.Errorf("Import = %+v, %v", n, err)
	}
	return revoked
}

// revokeBeforeCommit revokes a key after an import of e has changed it and before the import
// commits: the revocation waits for that.
func revokeBeforeCommit(t *testing.T, importer, revoker *Store, e identity.Entry, id string) error {
	revoked := make(chan error, 1)
	err := importer.change(t.Context(), func(tx *database.Tx) error {
		there, err := list(tx)
		if err != nil {
			return err
		}
		if _, err := importEntries(tx, there, []identity.Entry{e}); err != nil {
			return err
		}
		ctx := context.WithoutCancel(t.Context())
		go func() { revoked <- revoker.Revoke(ctx, id, start) }()
		for waits := false; !waits && len(revoked) == 0; {
			err := tx.Row(`SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted)`).Scan(&waits)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("Import: %v", err)
	}
	return <-revoked
}

// The role of attache sees keys of other tenants only with AllTenants.
func testTenants(t *testing.T, s *Store) {
	if _, _, err := s.Create(t.Context(), ada, "", 0, start); err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string]int{"acme": 1, "other": 0, "": 0} {
		err := s.db.View(t.Context(), database.Scope{Tenant: tenant}, func(tx *database.Tx) error {
			all, err := list(tx)
			if len(all) != want {
				t.Errorf("tenant %q sees %d keys, want %d", tenant, len(all), want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
