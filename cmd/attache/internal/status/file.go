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

// Dir returns the directory for the reports of a user's processes, "" if the user has
// none.
func Dir(p cli.Process) string {
	if dir := p.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "attache")
	}
	return p.StatePath("run")
}

// Two files stand for a process: PID.json with its report, and PID.lock, which it
// locks. The system takes the lock away when the process ends in any way, so a reader
// knows a report of a process that is gone, also when its number was given again.

// Publish starts to keep the report current in dir, and makes dir with the first report. The
// returned function stops this and removes the file.
func (r *Recorder) Publish(dir string) (stop func()) {
	path := filepath.Join(dir, strconv.Itoa(r.report.PID))
	p := &publisher{recorder: r, path: path + ".json", lock: flock.New(path + ".lock")}
	r.mu.Lock()
	r.publish = p
	p.changed()
	r.mu.Unlock()
	return p.stop
}

// A publisher writes the file, [delay] after the first change that is not in it.
type publisher struct {
	recorder *Recorder
	path     string
	lock     *flock.Flock

	mu      sync.Mutex
	timer   *time.Timer // runs while a change waits
	stopped bool
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

// write writes the report. If it fails, the process is missing in "attache status", and nothing
// else happens.
func (p *publisher) write() {
	p.mu.Lock()
	p.timer = nil
	p.mu.Unlock()
	text, err := json.Marshal(p.recorder.snapshot())
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || p.stopped || !p.locked() {
		return
	}
	if os.WriteFile(p.path+".new", text, 0o600) == nil {
		_ = robustio.Rename(p.path+".new", p.path)
	}
}

// locked reports whether this process holds the lock, which it takes if need be.
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
			_, _ = removeDead(filepath.Dir(p.path)) // nobody may ever ask for the status
			return true
		}
		_ = p.lock.Unlock()
	}
	return false
}

// onDisk reports whether the file that is locked is the one that others see. Another process
// may have taken it for that of a dead process, and removed it, before it was locked.
func (p *publisher) onDisk() bool {
	ours, err := p.lock.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Stat(p.lock.Path())
	return err == nil && os.SameFile(ours, theirs)
}

// stop ends the writing and removes the file; nothing is written when it has returned.
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

// removeDirectories removes the directories that only held reports, if nothing is in
// them. Another process that loses its directory by that makes it again.
func (p *publisher) removeDirectories() {
	for dir := filepath.Dir(p.path); filepath.Base(dir) == "run" || filepath.Base(dir) == "attache"; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil || filepath.Base(dir) == "attache" {
			return
		}
	}
}

// Running returns the reports of the processes that run, the oldest first, and
// removes the files of those that are gone.
func Running(dir string) ([]Report, error) {
	if dir == "" {
		return nil, nil
	}
	running, err := removeDead(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Report
	for _, name := range running {
		var report Report
		if text, err := robustio.ReadFile(filepath.Join(dir, name+".json")); err == nil && json.Unmarshal(text, &report) == nil {
			all = append(all, report)
		}
	}
	slices.SortFunc(all, func(a, b Report) int { return a.Started.Compare(b.Started) })
	return all, nil
}

// Await returns what [Running] does as soon as one of the reports is chosen, or the process of
// one could have written its first report.
func Await(dir string, chosen func(Report) bool) ([]Report, error) {
	const pause = delay / 10
	for end := time.Now().Add(delay + 2*pause); ; time.Sleep(pause) {
		all, err := Running(dir)
		if dir == "" || err != nil || slices.ContainsFunc(all, chosen) || time.Now().After(end) {
			return all, err
		}
	}
}

// removeDead removes the files of processes that are gone, and returns the names of the others.
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
