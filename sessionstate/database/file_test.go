package database

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
)

// tables returns a schema of one version.
func tables() Schema {
	return Schema{Name: "test", Files: fstest.MapFS{"schema/1.sql": &fstest.MapFile{Data: []byte(`CREATE TABLE a (b TEXT)`)}}}
}

// If many processes open a new file at the same time, one of them creates the tables.
func TestOpenAtOnce(t *testing.T) {
	for range 20 {
		o := FileOptions{Path: filepath.Join(t.TempDir(), "new", "x.db"), Wait: time.Minute, Schema: tables()}
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() {
				db, err := OpenFile(t.Context(), o)
				if err == nil {
					_, err = db.sql.Exec(`INSERT INTO a VALUES ('c')`)
					err = errors.Join(err, db.Close())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
}

// The error for a damaged file says what to do.
func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	check(t, os.WriteFile(path, []byte(strings.Repeat("damaged ", 1000)), 0o600))
	_, err := OpenFile(t.Context(), FileOptions{Path: path, Wait: time.Minute, Schema: tables()})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move the file away") {
		t.Errorf("got %v", err)
	}
}

// So does the error for a page that is found damaged after the file was opened.
func TestDamagedPage(t *testing.T) {
	o := FileOptions{Path: filepath.Join(t.TempDir(), "x.db"), Wait: time.Minute, Schema: tables()}
	db, err := OpenFile(t.Context(), o)
	if err == nil {
		err = db.Close()
	}
	check(t, err)
	f, err := os.OpenFile(o.Path, os.O_WRONLY, 0)
	check(t, err)
	if _, err := f.WriteAt([]byte(strings.Repeat("damaged ", 500)), 4096); err != nil { // the page of the table
		t.Fatal(err)
	}
	check(t, f.Close())
	if db, err = OpenFile(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	const query = `SELECT b FROM a`
	var b string
	ask := func(tx *Tx) error { return tx.Row(query).Scan(&b) }
	_, execErr := db.Exec(t.Context(), Scope{}, `INSERT INTO a VALUES ('c')`)
	for name, err := range map[string]error{
		"In": db.In(t.Context(), Scope{}, ask), "View": db.View(t.Context(), Scope{}, ask),
		"Row": db.Row(t.Context(), Scope{}, query).Scan(&b), "Exec": execErr,
	} {
		if err == nil || !strings.Contains(err.Error(), o.Path) || !strings.Contains(err.Error(), "move the file away") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The error for a file on a file system without shared mappings (as FUSE may be) says what to do.
// Its code is what SQLite returned there.
func TestRemedy(t *testing.T) {
	for code, want := range map[int]string{5386: "XDG_STATE_HOME", 11: "move the file away", 26: "move the file away", 13: ""} {
		if got := remedy(code); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%d: %q", code, got)
		}
	}
}

// If something truncates the file that SQLite maps into memory, as a full disk may, a statement
// fails. The process does not end.
func TestMappedFileTruncated(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows refuses to truncate a mapped file")
	}
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := OpenFile(t.Context(), FileOptions{Path: path, Wait: time.Minute, Schema: tables()})
	check(t, err)
	defer func() { _ = db.Close() }()
	check(t, os.Truncate(path+"-shm", 0))
	if _, err := db.sql.Exec(`INSERT INTO a VALUES ('c')`); err == nil {
		t.Error("a statement succeeded")
	}
}

var check = testkit.Check
