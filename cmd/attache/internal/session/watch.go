package session

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is how long files have to be left alone before they are looked
	// at: editors write in several steps.
	settleTime = 150 * time.Millisecond
	// noiseTime is how long they are waited for in all: another file in their directory,
	// such as the audit, may be written to all the time.
	noiseTime = time.Second
	// sameTime is how long after that they must still be the same.
	sameTime = 100 * time.Millisecond
	// maxWatched bounds the directories that are watched, and the files looked at.
	maxWatched = 1000
)

// A watcher notices that files have changed. It watches their directories, since
// editors, and Kubernetes, put a new file in the place of the old one.
type watcher struct {
	events  *fsnotify.Watcher
	files   func() []string // files and directories of YAML files; may change
	changed func(state string)
	done    chan struct{}
	over    chan struct{}
}

// watch begins to call changed whenever one of files is another than before, with the
// state that two looks saw ([fingerprint]), until close. An error says that the system has no room for a watcher.
func watch(files func() []string, changed func(state string)) (*watcher, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{events: events, files: files, changed: changed, done: make(chan struct{}), over: make(chan struct{})}
	w.follow()
	go w.run(fingerprint(files()))
	return w, nil
}

// close ends the watcher. No call of changed begins after it.
func (w *watcher) close() {
	close(w.done)
	<-w.over
	_ = w.events.Close()
}

func (w *watcher) run(last string) {
	defer close(w.over)
	state := settling{last: last}
	settled := time.NewTimer(0)
	<-settled.C
	var first time.Time // when what was not looked at yet began
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
		case <-w.events.Errors: // events were lost: look
			event()
		case <-w.events.Events:
			event()
		case <-settled.C:
			first = time.Time{}
			w.follow()
			now := fingerprint(w.files())
			switch changed, again := state.look(now); {
			case changed:
				w.changed(now)
				w.follow() // what is watched may be other files now
			case again:
				settled.Reset(sameTime)
			}
		}
	}
}

// settling decides when files that change are read: a file that is written in place
// may parse when it is half written, so only when two looks in a row see the same.
type settling struct {
	last string // the state that was read
	seen string // the state of the look before, if it was another
}

// look takes the state of the files now. changed says that they are to be read, and
// again that they are to be looked at once more, after [sameTime].
func (s *settling) look(now string) (changed, again bool) {
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

// follow watches the directories there are now. Those that are watched already
// cost nothing.
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

// fingerprint tells one state of the files from another.
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

// each calls visit with the file at path, or with the directory and the YAML files
// and directories below it. Links are followed for path itself alone, as package
// filesource does.
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
		ext := filepath.Ext(at)
		if err != nil || !d.IsDir() && ext != ".yaml" && ext != ".yml" {
			return nil
		}
		if info, err := os.Stat(at); err == nil {
			visit(at, info)
		}
		return nil
	})
}
