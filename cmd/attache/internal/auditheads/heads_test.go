package auditheads_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/auditheads"
	"github.com/attache-mcp/attache/cmd/attache/internal/auditlog"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/databasetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// A scene is a log, with the heads that its writers store.
type scene struct {
	t     *testing.T
	store *auditheads.Store
	path  string
	hour  int // of the clock
}

func (s *scene) now() time.Time { return time.Date(2026, 11, 22, s.hour, 30, 0, 0, time.UTC) }

// writer returns a writer that stores its first head, and one when it is closed.
func (s *scene) writer() *auditheads.Writer {
	now := s.now()
	return auditheads.NewWriter(auditheads.Options{
		Store: s.store, Place: auditheads.PlaceOf(s.path), Every: 24 * time.Hour, Now: func() time.Time { return now },
	})
}

// write writes n records as one process does between its start and its end.
func (s *scene) write(n int, maxSize int64) {
	s.t.Helper()
	w := s.writer()
	s.log(chain.Options{File: s.path, MaxSize: maxSize, Head: w.Note}, s.t.Name(), n)
	for range 2 {
		w.Close(time.Minute)
	}
}

// append writes n records and returns the head after them without storing it.
func (s *scene) append(name string, n int) (head chain.Head) {
	s.t.Helper()
	s.log(chain.Options{File: s.path, Now: s.now, Head: func(h chain.Head) { head = h }}, name, n)
	return head
}

func (s *scene) log(o chain.Options, name string, n int) {
	s.t.Helper()
	log := chain.New(o)
	for i := range n {
		<-log.Commit(fmt.Appendf(nil, `{"kind":"call","n":%d,"random":%q}`, i, name)).Done()
	}
	if err := log.Close(time.Minute); err != nil {
		s.t.Fatal(err)
	}
}

// noted returns the stored heads of a file.
func (s *scene) noted(file chain.Digest) []auditheads.Entry {
	s.t.Helper()
	all, err := s.store.OfFile(s.t.Context(), file)
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// cut truncates the file to its first n lines.
func (s *scene) cut(n int) {
	s.t.Helper()
	data, err := os.ReadFile(s.path)
	if err == nil {
		err = os.WriteFile(s.path, bytes.Join(bytes.SplitAfter(data, []byte("\n"))[:n], nil), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) remove(path string) {
	s.t.Helper()
	if err := os.Remove(path); err != nil {
		s.t.Fatal(err)
	}
}

// rotated returns the renamed files, oldest first.
func (s *scene) rotated() []string {
	all, _ := filepath.Glob(filepath.Join(filepath.Dir(s.path), "audit-*.jsonl"))
	return all
}

func TestHeads(t *testing.T) { t.Parallel(); run(t, empty) }

// TestHeadsOnPostgreSQL runs the same tests on PostgreSQL.
func TestHeadsOnPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	made := cluster.Database()
	first := databasetest.Connect(t, made)
	if _, err := first.Migrate(t.Context(), []database.Schema{auditheads.Schema()}); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	run(t, func(t *testing.T) *auditheads.Store {
		return auditheads.Open(databasetest.Connect(t, cluster.Copy(made)).Open(auditheads.Schema()))
	})
	t.Run("away", func(t *testing.T) {
		url := cluster.Copy(made)
		s := &scene{t: t, store: auditheads.Open(databasetest.Connect(t, url).Open(auditheads.Schema())), path: filepath.Join(t.TempDir(), "audit.jsonl"), hour: 9}
		s.write(1, 0)
		cluster.Kill()
		s.write(2, 0) // every record is in the file nevertheless
		var out strings.Builder
		err := auditlog.Verify(t.Context(), &out, &chain.Verifier{}, s.store, s.path)
		if err == nil || !strings.Contains(err.Error(), "the files were not compared") || !strings.Contains(out.String(), "ok: records 1 to 4") {
			t.Errorf("while the database is away: %v\n%s", err, &out)
		}
		cluster.Start()
		s.store = auditheads.Open(databasetest.Connect(t, url).Open(auditheads.Schema()))
		s.write(1, 0)
		out.Reset()
		if err := auditlog.Verify(t.Context(), &out, &chain.Verifier{}, s.store, s.path); err != nil || !strings.Contains(out.String(), "the last is record 5") {
			t.Errorf("when it is back: %v\n%s", err, &out)
		}
	})
}

// run changes logs whose ends were stored, and checks what verify prints.
func run(t *testing.T, open func(t *testing.T) *auditheads.Store) {
	for _, c := range []struct {
		name string
		do   func(s *scene, v *chain.Verifier)
		want string
		bad  bool
	}{
		{"whole", func(s *scene, _ *chain.Verifier) { s.write(3, 0); s.write(2, 0) }, "1 end in the shared database: all are there, the last is record 6 at 2026-11-22T09:30:00Z\n", false},
		{"an hour later", func(s *scene, _ *chain.Verifier) { s.write(3, 0); s.hour++; s.write(2, 0) }, "2 ends in the shared database: all are there, the last is record 6 at 2026-11-22T10:30:00Z\n", false},
		{"cut", func(s *scene, _ *chain.Verifier) { s.write(3, 0); s.cut(2) }, "audit.jsonl: record 4 is missing, which was there at 2026-11-22T09:30:00Z: the file was cut\n", true},
		{"cut and grown again", func(s *scene, _ *chain.Verifier) { s.write(3, 0); s.cut(2); s.write(9, 0) }, "audit.jsonl: record 4 differs from the one at 2026-11-22T09:30:00Z: the file was replaced\n", true},
		{"replaced", func(s *scene, _ *chain.Verifier) { s.write(3, 0); s.remove(s.path); s.write(9, 0) }, "audit.jsonl of HOST: the file that had record 4 at 2026-11-22T09:30:00Z is missing\n", true},
		{"lost", func(s *scene, _ *chain.Verifier) { s.write(3, 0); s.remove(s.path) }, "audit.jsonl of HOST: the file that had record 4 at 2026-11-22T09:30:00Z is missing\n", true},
		{"renamed", func(s *scene, _ *chain.Verifier) { s.write(3, 400); s.write(3, 400) }, "all are there", false},
		{"the newest is lost", func(s *scene, _ *chain.Verifier) { s.write(3, 400); s.hour++; s.write(3, 400); s.remove(s.path) }, "at 2026-11-22T10:30:00Z is missing\n", true},
		{"the oldest was taken away", func(s *scene, v *chain.Verifier) {
			s.write(1, 500)
			s.hour++
			s.write(9, 500)
			var old chain.Verifier
			f, _ := os.Open(s.rotated()[0])
			defer f.Close()
			_ = old.File("old", f)
			v.After = old.Digest
			s.remove(s.rotated()[0])
		}, "all are there, the last is record ", false},
		{"a copy elsewhere, cut", func(s *scene, _ *chain.Verifier) {
			s.write(3, 0)
			copied := filepath.Join(s.t.TempDir(), "audit.jsonl")
			if err := os.Rename(s.path, copied); err != nil {
				s.t.Fatal(err)
			}
			s.path = copied
			s.cut(3)
		}, "audit.jsonl: record 4 is missing, which was there", true},
		{"a place that another program has invented", func(s *scene, _ *chain.Verifier) {
			s.write(3, 0)
			place := auditheads.Place{Host: "\x1b[2J", Path: "/\u202e/audit.jsonl"}
			beside := &scene{t: s.t, store: s.store, path: filepath.Join(s.t.TempDir(), "other.jsonl"), hour: s.hour}
			for _, h := range []chain.Head{s.append("here", 1), beside.append("elsewhere", 3)} {
				w := auditheads.NewWriter(auditheads.Options{Store: s.store, Place: place, Every: 24 * time.Hour, Now: func() time.Time { return s.now().Add(time.Hour) }})
				w.Note(h)
				w.Close(time.Minute)
			}
		}, "/\ufffd/audit.jsonl of \ufffd[2J: the file that had record", true},
		{"of another log", func(s *scene, _ *chain.Verifier) {
			s.write(3, 0)
			s.path = filepath.Join(s.t.TempDir(), "audit.jsonl")
			none := &scene{t: s.t, store: empty(s.t), path: s.path, hour: s.hour}
			none.write(3, 0)
		}, "the shared database knows no end of these files\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := open(t)
			s := &scene{t: t, store: store, path: filepath.Join(t.TempDir(), "audit.jsonl"), hour: 9}
			v := &chain.Verifier{}
			c.do(s, v)
			var out strings.Builder
			err := auditlog.Verify(t.Context(), &out, v, store, s.path)
			host, _ := os.Hostname()
			if got := strings.ReplaceAll(out.String(), host, "HOST"); !strings.Contains(got, c.want) || (err != nil) != c.bad {
				t.Errorf("%v\n%s\nwant %s", err, got, c.want)
			}
		})
	}
}

// A process that continues to write does not replace the head that it stored if the file now has
// another record there.
func TestAProcessKeepsItsOwnEvidence(t *testing.T) {
	s := &scene{t: t, store: empty(t), path: filepath.Join(t.TempDir(), "audit.jsonl"), hour: 9}
	before := s.append("before", 3)
	w := s.writer()
	w.Note(before)
	for len(s.noted(before.File)) == 0 { // until the test times out
	}
	s.cut(2)
	after := s.append("after", 3)
	w.Note(after)
	w.Close(time.Minute)
	if got := s.noted(after.File); len(got) != 1 || got[0].Head != before {
		t.Errorf("noted are %v, want %v alone", got, before)
	}
	var out strings.Builder
	err := auditlog.Verify(t.Context(), &out, &chain.Verifier{}, s.store, s.path)
	if want := "record 4 differs from the one at 2026-11-22T09:30:00Z: the file was replaced"; err == nil || !strings.Contains(out.String(), want) {
		t.Errorf("%v\n%s\nwant %s", err, &out, want)
	}
}

// The head of records after a pause is stored immediately, so that there is no time to cut them off.
func TestHeadAfterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, store: empty(t), path: filepath.Join(t.TempDir(), "audit.jsonl")}
		w := auditheads.NewWriter(auditheads.Options{Store: s.store, Place: auditheads.PlaceOf(s.path)})
		defer w.Close(time.Minute)
		for n := range 3 {
			h := s.append(t.Name(), 1)
			w.Note(h)
			synctest.Wait()
			if all := s.noted(h.File); len(all) == 0 || all[len(all)-1].Head != h {
				t.Fatalf("head %d was not noted: %v", n, all)
			}
			time.Sleep(2 * auditheads.DefaultEvery)
		}
	})
}

// Old heads are removed, also those of a host that no longer exists. A writer whose clock is ahead
// removes no heads of others.
func TestOldHeadsAreRemoved(t *testing.T) {
	s := &scene{t: t, store: empty(t), hour: 9}
	note := func(path string, at time.Time) chain.Digest {
		s.path = filepath.Join(t.TempDir(), path)
		head := s.append(path, 1)
		w := auditheads.NewWriter(auditheads.Options{Store: s.store, Place: auditheads.PlaceOf(s.path), Every: 24 * time.Hour, Now: func() time.Time { return at }})
		w.Note(head)
		w.Close(time.Minute)
		return head.File
	}
	const day = 24 * time.Hour
	now := time.Now()
	old, recent := note("old", now.Add(-401*day)), note("recent", now.Add(-399*day))
	note("ahead", now.Add(100*day))
	if n := len(s.noted(old)) + len(s.noted(recent)); n != 1 {
		t.Errorf("%d heads of the others are there, want the recent one", n)
	}
}

// If processes end at the same time, the head of their file's last record is stored.
func TestProcessesEndTogether(t *testing.T) {
	s := &scene{t: t, store: empty(t), path: filepath.Join(t.TempDir(), "audit.jsonl")}
	heads := []chain.Head{s.append("a", 1), s.append("b", 1), s.append("c", 1)}
	for s.hour = range 20 {
		var wait sync.WaitGroup
		for _, h := range heads {
			w := s.writer()
			wait.Go(func() {
				w.Note(h)
				w.Close(time.Minute)
			})
		}
		wait.Wait()
	}
	noted := s.noted(heads[0].File)
	if len(noted) != 20 {
		t.Errorf("%d heads are noted", len(noted))
	}
	for _, n := range noted {
		if n.Head != heads[2] {
			t.Errorf("at %v: record %d is noted", n.At, n.Seq)
		}
	}
}

// Files of two hosts that begin in the same millisecond are different files.
func TestFilesAreDistinguished(t *testing.T) {
	a := &scene{t: t, path: filepath.Join(t.TempDir(), "audit.jsonl")}
	b := &scene{t: t, path: filepath.Join(t.TempDir(), "audit.jsonl")}
	if one, other := a.append("x", 1), b.append("x", 1); one.File == other.File {
		t.Errorf("both are %v", one.File)
	}
}

// A record that a process writes and whose end it stores while the file is verified is not missing.
func TestVerifyBesideAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heads.db")
	s := &scene{t: t, store: open(t, path, nil), path: filepath.Join(t.TempDir(), "audit.jsonl"), hour: 9}
	s.write(3, 0)
	var once sync.Once
	beside := open(t, path, func(string) { once.Do(func() { s.write(2, 0) }) })
	var out strings.Builder
	err := auditlog.Verify(t.Context(), &out, &chain.Verifier{}, beside, s.path)
	if want := "all are there, the last is record 6"; err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("%v\n%s\nwant %s", err, &out, want)
	}
}

// empty returns an empty store.
func empty(t *testing.T) *auditheads.Store {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "heads.db"), nil)
}

// open returns the store in a file. trace is called before each of its statements.
func open(t *testing.T, path string, trace func(string)) *auditheads.Store {
	t.Helper()
	db, err := database.OpenFile(t.Context(), database.FileOptions{Path: path, Wait: time.Minute, Schema: auditheads.Schema(), Trace: trace})
	testkit.Check(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return auditheads.Open(db)
}
