package turnstore

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/statetest"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	statetest.Run(t, func(t *testing.T, now func() time.Time) sessionstate.Turns {
		return opened(t, Options{Path: filepath.Join(t.TempDir(), "turns.db"), Now: now})
	})
}

func TestTenants(t *testing.T) {
	testTenants(t, openedDB(t, Options{Path: filepath.Join(t.TempDir(), "turns.db")}))
}

// A tenant neither takes, counts nor sweeps the turns of another.
func testTenants(t *testing.T, s *DB) {
	one, two := s.Of("one"), s.Of("two")
	take(t, one, "a", true)
	take(t, two, "a", true)
	check(t, one.Settle(t.Context(), "a", sessionstate.Unseen))
	if mine, unseen, err := two.Take(t.Context(), "a", 0); mine || unseen != 0 || err != nil {
		t.Errorf("Take = %v, %d, %v; want false and 0", mine, unseen, err)
	}
	for want, turns := range []*Turns{two, one} {
		if n, err := turns.Sweep(t.Context(), 0); n != want || err != nil {
			t.Errorf("Sweep of tenant %s = %d, %v; want %d", turns.tenant, n, err, want)
		}
	}
}

// After an error no turn is taken or settled.
func TestClosed(t *testing.T) {
	s := opened(t, Options{Path: filepath.Join(t.TempDir(), "turns.db")})
	check(t, s.db.Close())
	mine, _, err := s.Take(t.Context(), "a", 0)
	_, sweepErr := s.Sweep(t.Context(), 0)
	if settleErr := s.Settle(t.Context(), "a", sessionstate.Seen); mine || err == nil || settleErr == nil || sweepErr == nil {
		t.Errorf("Take = %v, %v; Settle = %v; Sweep = %v; want errors", mine, err, settleErr, sweepErr)
	}
}

// opened opens a database until the end of the test.
func opened(t testing.TB, o Options) *Turns {
	return openedDB(t, o).Of("")
}

func openedDB(t testing.TB, o Options) *DB {
	t.Helper()
	s, err := Open(t.Context(), o)
	check(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var check = testkit.Check

func take(t *testing.T, s *Turns, key string, want bool) {
	t.Helper()
	if got, _, err := s.Take(t.Context(), key, 0); got != want || err != nil {
		t.Fatalf("Take(%q) = %v, %v; want %v", key, got, err, want)
	}
}

// other opens the file like another program.
func other(t *testing.T, path string, statements ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(1000)")
	check(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(statement, err)
		}
	}
	return db
}

// If many processes start at the same time, one of them creates the file, and each turn goes to
// one of them, although another process is killed meanwhile.
func TestProcessesShareAFile(t *testing.T) {
	t.Parallel()
	if path := os.Getenv("TURNSTORE_TEST_FILE"); path != "" {
		takeAsProcess(t, path)
		return
	}
	for range 5 {
		path := filepath.Join(t.TempDir(), "new", "turns.db")
		gate, start, err := os.Pipe()
		check(t, err)
		begin := func(role string) (*exec.Cmd, *bufio.Reader) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestProcessesShareAFile$")
			cmd.Env = append(os.Environ(), "TURNSTORE_TEST_FILE="+path, "TURNSTORE_TEST_ROLE="+role)
			cmd.Stdin, cmd.Stderr = gate, os.Stderr
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			check(t, err)
			return cmd, bufio.NewReader(out)
		}
		victim, said := begin("victim")
		got := map[string]int{}
		var all []*exec.Cmd
		var outs []*bufio.Reader
		for range 5 {
			cmd, out := begin("")
			all, outs = append(all, cmd), append(outs, out)
		}
		_ = gate.Close()
		_ = start.Close() // starts them
		if _, err := said.ReadByte(); err != nil {
			t.Fatal(err)
		}
		_ = victim.Process.Kill()
		_ = victim.Wait()
		for i, cmd := range all {
			for lines := bufio.NewScanner(outs[i]); lines.Scan(); {
				if key, ok := strings.CutPrefix(lines.Text(), "got "); ok {
					got[key]++
				}
			}
			check(t, cmd.Wait())
		}
		for i := range processKeys {
			if n := got[fmt.Sprint(i)]; n != 1 {
				t.Errorf("%d processes got the turn of session %d, want 1", n, i)
			}
		}
	}
}

// processKeys is the number of turns for which the processes compete.
const processKeys = 50

// takeAsProcess is the program of the processes. The victim takes its own turns until it is
// killed.
func takeAsProcess(t *testing.T, path string) {
	_, _ = io.Copy(io.Discard, os.Stdin) // wait for the start
	s := opened(t, Options{Path: path, Wait: time.Minute})
	for i := 0; os.Getenv("TURNSTORE_TEST_ROLE") == "victim"; i++ {
		take(t, s, fmt.Sprint("victim ", i), true)
		if i == 20 {
			fmt.Println("taking")
		}
	}
	for i := range processKeys {
		mine, _, err := s.Take(t.Context(), fmt.Sprint(i), 0)
		check(t, err)
		if mine {
			fmt.Println("got", i)
		}
	}
}

// Turns outlive the process, whether it closed the file or not.
func TestReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turns.db")
	first := opened(t, Options{Path: path})
	take(t, first, "given", true)
	take(t, first, "held", true)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := first.Settle(over, "given", sessionstate.Seen); err != nil {
		t.Errorf("Settle with a cancelled context: %v", err)
	}

	second := opened(t, Options{Path: path, Now: func() time.Time { return time.Now().Add(sessionstate.Lease) }})
	take(t, second, "given", false)
	take(t, second, "held", true) // its holder died
	check(t, errors.Join(first.db.Close(), second.db.Close()))
	take(t, opened(t, Options{Path: path}), "given", false)
}

// The turns in a file of version 1 stay.
func TestMigrated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turns.db")
	version1, err := files.ReadFile("schema/1.sqlite.sql")
	check(t, err)
	old := other(t, path, string(version1), `PRAGMA user_version = 1`)
	_, err = old.Exec(`INSERT INTO turns (key, used, closed) VALUES (unhex(?), 1, 1)`, digest("given"))
	check(t, errors.Join(err, old.Close()))
	s := opened(t, Options{Path: path})
	take(t, s, "given", false)
	take(t, s, "new", true)
}

// If a file cannot be used, the error names it, and it stays unchanged.
func TestUnusable(t *testing.T) {
	path := func(t *testing.T) string { return filepath.Join(t.TempDir(), "turns.db") }
	tests := []struct {
		name string
		file func(t *testing.T) string
		want string
	}{
		{"its directory is a file", func(t *testing.T) string {
			dir := path(t)
			write(t, dir, nil)
			return filepath.Join(dir, "turns.db")
		}, "turns.db cannot be used: "},
		{"it is a directory", func(t *testing.T) string { return t.TempDir() }, "it is not a regular file"},
		{"it is a dangling link", func(t *testing.T) string {
			file := path(t)
			if err := os.Symlink("nowhere.db", file); err != nil {
				t.Skip("links are not supported:", err)
			}
			return file
		}, "no such file"},
		{"it is no database", func(t *testing.T) string {
			file := path(t)
			write(t, file, bytes.Repeat([]byte("no database\n"), 1000))
			return file
		}, "file is not a database"},
		{"it is of a newer version", func(t *testing.T) string {
			file := path(t)
			other(t, file, `CREATE TABLE turns (id)`, `PRAGMA user_version = 4`).Close()
			return file
		}, "its tables of turns have version 4, and this program knows 2: use a newer attache"},
		{"it has other tables of that name", func(t *testing.T) string {
			file := path(t)
			other(t, file, `CREATE TABLE turns (id)`, `PRAGMA user_version = 2`).Close()
			return file
		}, "no column named tenant"},
		{"it is damaged", func(t *testing.T) string {
			file := path(t)
			s := opened(t, Options{Path: file})
			take(t, s, "a", true)
			_ = s.db.Close()
			whole, err := os.ReadFile(file)
			check(t, err)
			write(t, file, append(whole[:100:100], bytes.Repeat([]byte{0xff}, len(whole)-100)...))
			return file
		}, "malformed"},
		{"its directory cannot be written", func(t *testing.T) string {
			if os.Geteuid() == 0 || runtime.GOOS == "windows" {
				t.Skip("modes do not apply to this user")
			}
			dir := t.TempDir()
			check(t, os.Chmod(dir, 0o500))
			return filepath.Join(dir, "turns.db")
		}, "permission denied"},
		{"another program has locked it, new", func(t *testing.T) string {
			file := path(t)
			other(t, file, `BEGIN EXCLUSIVE`)
			return file
		}, "locked"},
		{"another program has locked it", func(t *testing.T) string {
			file := path(t)
			_ = opened(t, Options{Path: file}).db.Close()
			other(t, file, `BEGIN IMMEDIATE`)
			return file
		}, "locked"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := test.file(t)
			before, _ := os.ReadFile(file)
			s, err := Open(t.Context(), Options{Path: file, Wait: 20 * time.Millisecond})
			if err == nil {
				defer s.Close()
				_, _, err = s.Of("").Take(t.Context(), "a", 0)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v; want it to contain %q", err, test.want)
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
				t.Error("the file has changed")
			}
		})
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	check(t, os.WriteFile(path, text, 0o600))
}

// pragma changes a setting of the only connection to a file.
func pragma(t *testing.T, s *Turns, statement string) error {
	return s.db.db.View(t.Context(), database.Scope{}, func(tx *database.Tx) error {
		_, err := tx.Exec(statement)
		return err
	})
}

// A full disk is an error, and earlier changes stay.
func TestDiskFull(t *testing.T) {
	s := opened(t, Options{Path: filepath.Join(t.TempDir(), "turns.db")})
	take(t, s, "a", true)
	check(t, pragma(t, s, `PRAGMA max_page_count = 1`))
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		_, _, err = s.Take(t.Context(), fmt.Sprint(i), 0)
	}
	if err == nil || !strings.Contains(err.Error(), "full") {
		t.Fatalf("the error is %v; want that the disk is full", err)
	}
	take(t, s, "a", false)
	check(t, pragma(t, s, `PRAGMA max_page_count = 1000`))
	take(t, s, "b", true)
}

// Wait applies only to locks: without a lock, a slow disk or machine causes no error.
func TestSlowIsNotLocked(t *testing.T) {
	s := opened(t, Options{Path: filepath.Join(t.TempDir(), "turns.db"), Wait: time.Nanosecond})
	take(t, s, "a", true)
}

// No other user may read or change the file.
func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no modes")
	}
	dir := filepath.Join(t.TempDir(), "state", "attache")
	path := filepath.Join(dir, "turns.db")
	s := opened(t, Options{Path: path})
	take(t, s, "session-1", true)
	modes := map[string]fs.FileMode{dir: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600}
	for name, want := range modes {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode().Perm(), err, want)
		}
		if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte("session-1")) {
			t.Errorf("%s contains the key", name)
		}
	}
	check(t, errors.Join(s.db.Close(), os.Chmod(path, 0o644)))
	opened(t, Options{Path: path})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file that others could read has mode %v (%v), want 0600", info.Mode().Perm(), err)
	}
}

func TestOddPaths(t *testing.T) {
	for _, name := range []string{"a b.db", "a?mode=memory", "a#b", "a%20b", "naïve 'file'", "file:x"} {
		if runtime.GOOS == "windows" && strings.ContainsAny(name, "?:") {
			continue
		}
		path := filepath.Join(t.TempDir(), name)
		s := opened(t, Options{Path: path})
		take(t, s, "a", true)
		check(t, s.db.Close())
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q is not the file that was written: %v", name, err)
		}
	}
}

// A turn that was taken before the clock was set back is free if it would be held for longer than
// two leases, but not otherwise; a turn that was settled as Seen stays closed.
func TestClockSetBack(t *testing.T) {
	tests := []struct {
		name string
		back time.Duration
		free bool
	}{
		{"by less than a lease", sessionstate.Lease - time.Nanosecond, false},
		{"by a lease", sessionstate.Lease, false},
		{"by more than a lease", sessionstate.Lease + time.Nanosecond, true},
		{"by a year", 365 * 24 * time.Hour, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now := time.Now()
			s := opened(t, Options{Path: filepath.Join(t.TempDir(), "turns.db"), Now: func() time.Time { return now }})
			take(t, s, "held", true)
			take(t, s, "given", true)
			check(t, s.Settle(t.Context(), "given", sessionstate.Seen))
			now = now.Add(-test.back)
			take(t, s, "held", test.free)
			take(t, s, "held", false)
			take(t, s, "given", false)
		})
	}
}

func TestIsBounded(t *testing.T) {
	now := time.Now()
	s := opened(t, Options{Path: filepath.Join(t.TempDir(), "turns.db"), Now: func() time.Time { return now }})
	s.db.max = 3
	for i := range 5 {
		now = now.Add(time.Second)
		take(t, s, fmt.Sprint(i), true)
		check(t, s.Settle(t.Context(), fmt.Sprint(i), sessionstate.Seen))
	}
	take(t, s.db.Of("another tenant"), "5", true) // does not count
	if n, err := s.Sweep(t.Context(), time.Hour); n != 2 || err != nil {
		t.Errorf("Sweep = %d, %v; want the 2 least recently used removed", n, err)
	}
	take(t, s, "2", false)
	take(t, s, "1", true)
}

func BenchmarkTake(b *testing.B) {
	turns := opened(b, Options{Path: filepath.Join(b.TempDir(), "turns.db")})
	for b.Loop() {
		if _, _, err := turns.Take(b.Context(), "a", 0); err != nil {
			b.Fatal(err)
		}
	}
}
