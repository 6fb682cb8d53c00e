package session

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is how long files must be unchanged before they are read: editors write in
	// several steps.
	settleTime = 150 * time.Millisecond
	// noiseTime bounds that wait: another file in the directory may be made or renamed all the
	// time.
	noiseTime = time.Second
	// sameTime is how long the files must then still be the same.
	sameTime = 100 * time.Millisecond
	// maxWatched bounds the watched directories and the files that are looked at.
	maxWatched = 1000
)

// A watcher notices that files have changed. It watches their directories, since
// editors, and Kubernetes, put a new file in the place of the old one.
type watcher struct {
	events  *fsnotify.Watcher
	files   func() []string // files and directories of YAML files; may change
	changed func(state string)
	stirred chan struct{} // has an element after an event that may be about the files
	done    chan struct{}
	over    chan struct{}
}

// watch calls changed, until close, whenever the [fingerprint] of files differs from the one before,
// and passes it the new one, in which two looks agreed. last is the first to compare with. An error
// means that the system has no room for a watcher.
func watch(files func() []string, last string, changed func(state string)) (*watcher, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{events: events, files: files, changed: changed, stirred: make(chan struct{}, 1), done: make(chan struct{}), over: make(chan struct{})}
	go w.run(last)
	go w.listen()
	return w, nil
}

// close ends the watcher. No call of changed begins after it.
func (w *watcher) close() {
	close(w.done)
	<-w.over // before Close: on Windows, an Add after it never returns
	_ = w.events.Close()
}

// listen takes events until the watcher is closed. It is a goroutine of its own because on Windows
// Add waits until the events before it were taken.
func (w *watcher) listen() {
	for {
		select {
		case _, ok := <-w.events.Errors: // events were lost: look
			if !ok {
				return
			}
		case e, ok := <-w.events.Events:
			if !ok {
				return
			}
			if !w.concerns(e) {
				continue
			}
		}
		select {
		case w.stirred <- struct{}{}:
		default:
		}
	}
}

func (w *watcher) run(last string) {
	defer close(w.over)
	state := settler{last: last}
	settled := time.NewTimer(0) // the first look is at once
	var first time.Time         // when what was not looked at yet began
	event := func() {
		if first.IsZero() {
			first = time.Now()
		}
		if time.Since(first) < noiseTime {
			settled.Reset(settleTime)
		}
	}
	for {
		select {
		case <-w.done:
			settled.Stop()
			return
		case <-w.stirred:
			if state.seen == "" { // else the second look comes anyway
				event()
			}
		case <-settled.C:
			first = time.Time{}
			w.follow()
			now := fingerprint(w.files())
			switch changed, again := state.look(now); {
			case changed:
				w.changed(now)
				w.follow()
				if fingerprint(w.files()) != now { // the list of files is another one, or one has changed again
					settled.Reset(sameTime)
				}
			case again:
				settled.Reset(sameTime)
			}
		}
	}
}

// concerns reports whether an event may be about the files. What is written to a file of another
// name, such as the audit beside the configuration, is not.
func (w *watcher) concerns(e fsnotify.Event) bool {
	name := filepath.Base(e.Name)
	return e.Op != fsnotify.Write || isYAML(name) ||
		slices.ContainsFunc(w.files(), func(path string) bool { return filepath.Base(path) == name })
}

func isYAML(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// settler decides when changed files are read: a file that is written in place may parse when it
// is half written, so two looks in a row must see the same.
type settler struct {
	last string // the state that was read
	seen string // the state of the look before, if it was another
}

// look compares now, the state of the files, with the states before. changed says that the files
// must be read, again that they must be looked at once more, after [sameTime].
func (s *settler) look(now string) (changed, again bool) {
	switch now {
	case s.last:
		s.seen = ""
		return false, false
	case s.seen:
		s.last, s.seen = now, ""
		return true, false
	}
	s.seen = now
	return false, true
}

// follow watches the directories that exist now. Directories that are already watched cost
// nothing.
func (w *watcher) follow() {
	for _, path := range w.files() {
		_ = w.events.Add(filepath.Dir(path)) // a directory that is not there has no files to change
		each(path, func(path string, info fs.FileInfo) {
			if info.IsDir() {
				_ = w.events.Add(path)
			}
		})
	}
}

// fingerprint returns a text that identifies the state of the files.
func fingerprint(files []string) string {
	var b strings.Builder
	for _, path := range files {
		fmt.Fprintf(&b, "%s\n", path)
		each(path, func(path string, info fs.FileInfo) {
			if !info.IsDir() {
				fmt.Fprintf(&b, "%s %d %d %v\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
			}
		})
	}
	return b.String()
}

// each calls visit with the file at path, or with the directory and the YAML files and
// directories below it. Only path itself may be a link, as in package filesource.
func each(path string, visit func(path string, info fs.FileInfo)) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	visit(path, info)
	if !info.IsDir() {
		return
	}
	n := 0
	_ = filepath.WalkDir(path+string(filepath.Separator), func(at string, d fs.DirEntry, err error) error {
		if n++; n > maxWatched {
			return filepath.SkipAll
		}
		if err != nil || !d.IsDir() && !isYAML(at) {
			return nil
		}
		if info, err := os.Stat(at); err == nil {
			visit(at, info)
		}
		return nil
	})
}
