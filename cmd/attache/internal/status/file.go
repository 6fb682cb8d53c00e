package status

import (
	"cmp"
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
)

// Two files stand for a process: PID.json with its report, and PID.lock, which it
// locks. The system takes the lock away when the process ends in any way, so a reader
// knows a report of a process that is gone, also when its number was given again.

// Publish begins to write the report to dir, and to keep it current. The function it
// returns stops that and removes the file. dir is made if need be.
func (r *Recorder) Publish(dir string) (stop func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, strconv.Itoa(r.report.PID))
	lock := flock.New(path + ".lock")
	if locked, err := lock.TryLock(); err != nil || !locked {
		return nil, cmp.Or(err, errors.New("another process has locked "+lock.Path()))
	}
	p := &publisher{recorder: r, path: path + ".json"}
	r.mu.Lock()
	r.publish = p
	p.changed()
	r.mu.Unlock()
	return func() {
		p.stop()
		_ = os.Remove(p.path)
		_ = os.Remove(lock.Path())
		_ = lock.Unlock()
	}, nil
}

// A publisher writes the file, [delay] after the first change that is not in it.
type publisher struct {
	recorder *Recorder
	path     string

	mu      sync.Mutex
	timer   *time.Timer // runs while a change waits
	stopped bool
}

// changed has the report written soon. A nil publisher does nothing.
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

func (p *publisher) write() {
	p.mu.Lock()
	p.timer = nil
	p.mu.Unlock()
	text, err := json.Marshal(p.recorder.snapshot())
	if err != nil {
		return // no report has what cannot be marshalled
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	// A report that cannot be written is missing in "attache status" and nowhere else.
	if os.WriteFile(p.path+".new", text, 0o600) == nil {
		_ = os.Rename(p.path+".new", p.path)
	}
}

// stop ends the writing; nothing is written when it has returned.
func (p *publisher) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// Running returns the reports of the processes that run, the oldest first, and
// removes the files of those that are gone.
func Running(dir string) ([]Report, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Report
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, name)
		lock := flock.New(path + ".lock")
		if locked, err := lock.TryLock(); err == nil && locked {
			_ = os.Remove(path + ".json")
			_ = os.Remove(lock.Path())
			_ = lock.Unlock()
			continue
		}
		var report Report
		if text, err := os.ReadFile(path + ".json"); err == nil && json.Unmarshal(text, &report) == nil {
			all = append(all, report)
		}
	}
	slices.SortFunc(all, func(a, b Report) int { return a.Started.Compare(b.Started) })
	return all, nil
}
