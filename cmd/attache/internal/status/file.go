package status

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/rogpeppe/go-internal/robustio"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate/filelock"
)

// Dir returns the directory for the reports of the user's processes, or "" if there is none.
func Dir(p cli.Process) string {
	if dir := p.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && isOwn(dir) {
		return filepath.Join(dir, "attache")
	}
	return p.StatePath("run")
}

// Dirs returns the directories that may have reports of the user's processes. Many clients start their
// servers without XDG_RUNTIME_DIR, which the user's shell has.
func Dirs(p cli.Process) []string {
	return slices.Compact([]string{Dir(p), p.StatePath("run")})
}

// Each process has two files: PID.json with its report, and PID.lock, which it locks. The system releases
// the lock however the process ends, so readers recognise the report of a process that has ended, even if
// its PID is used again.

// delay is the time between a change and writing it. It also delays the first report, because a client
// may start attache only to probe it.
const delay = time.Second

// A publisher writes the file, [delay] after the first change since the last write.
type publisher struct {
	snapshot func() Report
	path     string
	lock     *flock.Flock

	mu      sync.Mutex
	timer   *time.Timer // for the next write; nil if there is no change
	stopped bool
}

func newPublisher(dir string, pid int, snapshot func() Report) *publisher {
	path := filepath.Join(dir, strconv.Itoa(pid))
	return &publisher{snapshot: snapshot, path: path + ".json", lock: flock.New(path + ".lock")}
}

// changed schedules a write of the report. A nil publisher does nothing.
func (p *publisher) changed() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil && !p.stopped {
		p.timer = time.AfterFunc(delay, p.write)
	}
}

// write writes the report. It ignores errors; the process is then missing in "attache status".
func (p *publisher) write() {
	p.mu.Lock()
	p.timer = nil
	p.mu.Unlock()
	text, err := json.Marshal(p.snapshot())
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || p.stopped || !p.locked() {
		return
	}
	if os.WriteFile(p.path+".new", text, 0o600) == nil {
		_ = robustio.Rename(p.path+".new", p.path)
	}
}

// locked acquires the lock if necessary, and reports whether this process holds it.
func (p *publisher) locked() bool {
	if p.lock.Locked() {
		return true
	}
	if os.MkdirAll(filepath.Dir(p.path), 0o700) != nil {
		return false
	}
	for range 3 {
		if ok, err := p.lock.TryLock(); !ok || err != nil {
			return false
		}
		if p.onDisk() {
			_, _ = removeDead(filepath.Dir(p.path)) // the user may never run attache status
			return true
		}
		_ = p.lock.Unlock()
	}
	return false
}

// onDisk reports whether the locked file is still the one at its path. Before it was locked, another
// process may have removed it as the file of a process that has ended.
func (p *publisher) onDisk() bool {
	ours, err := p.lock.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Stat(p.lock.Path())
	return err == nil && os.SameFile(ours, theirs)
}

// stop removes the file. Nothing is written after it returns.
func (p *publisher) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.lock.Locked() {
		_ = os.Remove(p.path)
		filelock.Discard(p.lock)
		p.removeDirectories()
	}
}

// removeDirectories removes the directories for reports if they are empty. Another process that still
// needs them creates them again.
func (p *publisher) removeDirectories() {
	for dir := filepath.Dir(p.path); filepath.Base(dir) == "run" || filepath.Base(dir) == "attache"; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil || filepath.Base(dir) == "attache" {
			return
		}
	}
}

// Running returns the reports of the running processes in some directories, oldest first. It removes the
// files of processes that have ended. Servers of a process in another PID namespace, such as a container
// that shares the directory, cannot be restarted: its PID may be that of another process here.
func Running(dirs ...string) (all []Report, err error) {
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		running, err := removeDead(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, name := range running {
			var report Report
			if text, err := robustio.ReadFile(filepath.Join(dir, name+".json")); err == nil && json.Unmarshal(text, &report) == nil {
				report.Restart = report.Restart && (report.Namespace == "" || report.Namespace == pidNamespace())
				all = append(all, report)
			}
		}
	}
	slices.SortFunc(all, func(a, b Report) int { return a.Started.Compare(b.Started) })
	return all, nil
}

// Await calls [Running] until chosen accepts one of the reports, or until a process that just started
// would have written its first report. It returns the last result.
func Await(dirs []string, chosen func(Report) bool) ([]Report, error) {
	const pause = delay / 10
	for end := time.Now().Add(delay + 2*pause); ; time.Sleep(pause) {
		all, err := Running(dirs...)
		if err != nil || slices.ContainsFunc(all, chosen) || time.Now().After(end) {
			return all, err
		}
	}
}

// removeDead removes the files of processes that have ended, and returns the names of the others.
func removeDead(dir string) (running []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, e := range entries {
		name, kind, _ := strings.Cut(e.Name(), ".")
		if seen[name] || !e.Type().IsRegular() || !slices.Contains([]string{"json", "json.new", "lock"}, kind) {
			continue
		}
		seen[name] = true
		path := filepath.Join(dir, name)
		lock := flock.New(path + ".lock")
		if locked, err := lock.TryLock(); err != nil || !locked {
			running = append(running, name)
			continue
		}
		_ = os.Remove(path + ".json")
		_ = os.Remove(path + ".json.new")
		filelock.Discard(lock)
	}
	return running, nil
}
