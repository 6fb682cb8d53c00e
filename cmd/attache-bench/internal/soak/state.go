package soak

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// A state has the number of each kind of resource that must not increase.
type state map[string]int

// restTime is how long the resources of clients may remain: a session ends when it is idle, and
// the sessions of a killed front end when its lease is over and another front looks.
const restTime = 4 * time.Minute

// observeEvery is the time between two observations. One takes a tenth of a second of CPU time.
const observeEvery = 5 * time.Second

// rest waits until no resource exceeds its number in before, and returns the state then. If before is
// empty, it waits until all sessions have ended.
func (r *run) rest(ctx context.Context, before state) (state, error) {
	nextLog := 10 * time.Second
	for began := time.Now(); ; {
		now, err := r.observe(ctx)
		if err != nil {
			return nil, err
		}
		limit := before
		if len(before) == 0 {
			limit = maps.Clone(now)
			for name := range limit {
				if strings.Contains(name, "open sessions") || strings.HasPrefix(name, "rows of front_sessions") {
					limit[name] = 0
				}
			}
		}
		more := now.beyond(limit)
		if len(more) == 0 || time.Since(began) > restTime {
			return now, nil
		}
		if waited := time.Since(began); waited > nextLog {
			nextLog = waited + 15*time.Second
			fmt.Fprintf(r.o.Log, "soak: there is still more of %s\n", strings.Join(more, ", "))
		}
		if !machine.Pause(ctx, observeEvery) {
			return nil, ctx.Err()
		}
	}
}

// beyond returns the names of the resources that exceed before.
func (s state) beyond(before state) (names []string) {
	for name, n := range s {
		if n > before[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// observe counts all resources.
func (r *run) observe(ctx context.Context) (state, error) {
	// The status command removes the reports of killed stdio attaches.
	look := exec.CommandContext(ctx, r.o.Attache, "status")
	look.Env = r.env
	_ = look.Run() // if it fails, the files remain and are reported
	s := state{"processes": len(r.processes())}
	for _, f := range []*program{r.steady, r.shaky} {
		if err := f.observe(ctx, s); err != nil {
			return nil, err
		}
	}
	r.files(s)
	return s, r.rows(ctx, s)
}

// observe counts the resources of the front.
func (f *program) observe(ctx context.Context, s state) error {
	fds, err := os.ReadDir("/proc/" + strconv.Itoa(f.pid()) + "/fd")
	if err != nil {
		return err
	}
	s[f.name+": descriptors"] = len(fds)
	profile, err := f.get(ctx, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return err
	}
	total := 0
	if _, err := fmt.Sscanf(profile, "goroutine profile: total %d\n", &total); err != nil {
		return fmt.Errorf("%s: %w: %.100q", f.name, err, profile)
	}
	s[f.name+": goroutines"] = total
	metrics, err := f.get(ctx, "/metrics")
	for line := range strings.Lines(metrics) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "attache_sessions" || name == "attache_upstreams" {
			s[f.name+": open sessions ("+name+")"], _ = strconv.Atoi(value)
		}
	}
	return err
}

// files counts the files that attache keeps, by directory.
func (r *run) files(s state) {
	for _, name := range []string{"state", "run", "tmp"} {
		_ = filepath.WalkDir(filepath.Join(r.dir, name), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				in, _ := filepath.Rel(r.dir, filepath.Dir(path))
				s["files in "+in]++
			}
			return nil // a file may be removed meanwhile
		})
	}
}

// countRows prints the number of rows of each table of the databases in its arguments. It is Python
// because package database, which alone uses SQLite, opens no file without its schema.
const countRows = `
import sqlite3, sys
for path in sys.argv[1:]:
    db = sqlite3.connect("file:" + path + "?mode=ro", uri=True, timeout=60)
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        print(table, db.execute('SELECT count(*) FROM "%s"' % table).fetchone()[0], path)
`

func (r *run) rows(ctx context.Context, s state) error {
	args := []string{"-c", countRows}
	for _, places := range []string{"*.db", "*/*.db"} {
		paths, _ := filepath.Glob(filepath.Join(r.dir, "state", "attache", places))
		args = append(args, paths...)
	}
	out, err := exec.CommandContext(ctx, "python3", args...).Output()
	if err != nil {
		return fmt.Errorf("count rows with python3: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		table, n, path := "", 0, ""
		if _, err := fmt.Sscan(line, &table, &n, &path); err != nil {
			return err
		}
		s["rows of "+table+" in "+filepath.Base(path)] = n
	}
	return nil
}

func (r *run) processes() (pids []int) {
	all, _ := os.ReadDir("/proc")
	for _, e := range all {
		if pid, err := strconv.Atoi(e.Name()); err == nil && r.marked(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// leftovers checks that no process is left after all were ended.
func (r *run) leftovers() {
	for began := time.Now(); len(r.processes()) > 0 && time.Since(began) < patience; {
		time.Sleep(100 * time.Millisecond)
	}
	for _, pid := range r.processes() {
		words, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		r.account.fault("process %d is left: %s", pid, bytes.ReplaceAll(words, []byte{0}, []byte(" ")))
	}
}
