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
	// settleTime is how long no event must occur before the files are checked, because editors
	// write in several steps.
	settleTime = 150 * time.Millisecond
	// noiseTime bounds that wait, because another file in the directory may be created or
	// renamed all the time.
	noiseTime = time.Second
	// sameTime is the time between the two checks that must find the same state.
	sameTime = 100 * time.Millisecond
	// maxWatched bounds the watched directories and the files that are checked.
	maxWatched = 1000
)

// A watcher detects changes of files. It watches their directories, because editors and Kubernetes
// replace a file with a new one.
type watcher struct {
	events  *fsnotify.Watcher
	files   func() []string // files, and directories of YAML files; may change
	changed func(state string)
	pending chan struct{} // has an element after an event that may be about the files
	done    chan struct{} // closed by close
	ended   chan struct{} // closed when run has returned
}

// watch calls changed, until close, whenever the [fingerprint] of files has changed and two checks
// have found the same. It passes the new fingerprint; the first is compared with last. It returns an
// error if the system cannot provide a watcher.
func watch(files func() []string, last string, changed func(state string)) (*watcher, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{events: events, files: files, changed: changed, pending: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
	go w.run(last)
	go w.listen()
	return w, nil
}

// close ends the watcher. No call of changed begins after it.
func (w *watcher) close() {
	close(w.done)
	<-w.ended // before Close, because on Windows an Add after Close never returns
	_ = w.events.Close()
}

// listen receives events until the watcher is closed. It has its own goroutine because on Windows
// Add blocks until all earlier events were received.
func (w *watcher) listen() {
	for {
		select {
		case _, ok := <-w.events.Errors: // events were lost, so check the files
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
		case w.pending <- struct{}{}:
		default:
		}
	}
}

func (w *watcher) run(last string) {
	defer close(w.ended)
	state := settler{last: last}
	settled := time.NewTimer(0) // the first check is immediate
	var first time.Time         // the first event since the last check
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
		case <-w.pending:
			if state.seen == "" { // else the second check is scheduled
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
				if fingerprint(w.files()) != now { // the list of files, or a file, has changed again
					settled.Reset(sameTime)
				}
			case again:
				settled.Reset(sameTime)
			}
		}
	}
}

// concerns reports whether an event may be about the files. A write to a file with another name, such
// as the audit in the directory of the configuration, is not.
func (w *watcher) concerns(e fsnotify.Event) bool {
	name := filepath.Base(e.Name)
	return e.Op != fsnotify.Write || isYAML(name) ||
		slices.ContainsFunc(w.files(), func(path string) bool { return filepath.Base(path) == name }) ||
		slices.Contains(w.events.WatchList(), e.Name) // the target of a link, whose name may be another
}

func isYAML(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// A settler decides when changed files are read. A file that is written in place may be valid when
// it is half written, so two consecutive checks must find the same state.
type settler struct {
	last string // the state that was read
	seen string // the state at the previous check, if it differs from last
}

// look compares now, the state of the files, with the previous states. changed reports that the
// files must be read, again that they must be checked once more, after [sameTime].
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

// follow watches the directories that exist now. Adding a directory twice costs nothing.
func (w *watcher) follow() {
	for _, path := range w.files() {
		_ = w.events.Add(filepath.Dir(path)) // fails if the directory does not exist
		// An editor may write the target and leave the link as it is. The directory of the target may have very
		// many files, as /nix/store does, and on macOS a watch of it would open each of them.
		if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
			_ = w.events.Add(target)
		}
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

// each calls visit with the file at path or, if path is a directory, with it and the YAML files and
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
