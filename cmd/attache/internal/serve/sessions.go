package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/attache-mcp/attache/proxy/front"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A sessionFile keeps the sessions of an endpoint, so that they continue after a restart. It has
// a line for each session that was opened or has ended; the last line of a key counts.
type sessionFile struct {
	path string
	lock *flock.Flock

	mu    sync.Mutex
	file  *os.File
	saved map[string]savedLine
	lines int   // of the file
	err   error // why it is not written any more
}

// A savedLine is a line of the file. Without Initialize the session has ended.
type savedLine struct {
	Key string `json:"key"`
	front.SavedSession
	// Until is when the session ends that an earlier process has left, unless it goes on
	// before; zero for one of this process.
	Until time.Time `json:"until,omitzero"`
}

// maxDead is how many lines of ended sessions the file may have.
const maxDead = 1000

// errInUse says that another process keeps the sessions of the same address.
var errInUse = errors.New("another process has it")

// keepSessions returns the store of an endpoint. It returns nil if sessions are not kept: there
// is no state directory, the port changes with each start, initialize may contain a credential,
// or the file cannot be used.
func (e *endpoint) keepSessions() *sessionFile {
	listen := e.s.settings.Listen
	if _, port, _ := net.SplitHostPort(listen); e.s.Process.StateDir == "" || port == "0" || e.Settings.Identity.MetaAPIKey {
		return nil
	}
	sum := sha256.Sum256([]byte(listen + e.Path))
	path := filepath.Join(e.s.Process.StateDir, "attache", "serve", hex.EncodeToString(sum[:8]))
	f, err := openSessionFile(path, time.Now(), e.s.settings.Idle)
	if err != nil {
		e.s.Log.Info("sessions will not go on after a restart: their file cannot be used", "file", path, "err", err)
		return nil
	}
	return f
}

// openSessionFile opens the file. The sessions of an earlier process in it are valid for idle
// from now.
func openSessionFile(path string, now time.Time, idle time.Duration) (*sessionFile, error) {
	f := &sessionFile{path: path, lock: flock.New(path + ".lock"), saved: map[string]savedLine{}}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if held, err := f.lock.TryLock(); err != nil {
		return nil, err
	} else if !held {
		return nil, errInUse
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.close()
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var l savedLine
		switch {
		case json.Unmarshal(line, &l) != nil: // the process was killed while it wrote
		case l.Initialize == "" || !l.Until.IsZero() && now.After(l.Until):
			delete(f.saved, l.Key)
		default:
			if l.Until.IsZero() {
				l.Until = now.Add(idle)
			}
			f.saved[l.Key] = l
		}
	}
	if err := f.rewriteLocked(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// rewriteLocked writes the file again with the sessions that are valid.
func (f *sessionFile) rewriteLocked() error {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	for _, l := range f.saved {
		if err := out.Encode(l); err != nil {
			return err
		}
	}
	if err := textfile.Replace(f.path, b.Bytes()); err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file, f.lines = file, len(f.saved)
	return nil
}

// writeLocked adds a line. If it cannot be written the file is given up, because its content
// would be wrong after a restart.
func (f *sessionFile) writeLocked(l savedLine) {
	if f.err != nil {
		return
	}
	line, err := json.Marshal(l)
	if err == nil {
		_, err = f.file.Write(append(line, '\n'))
	}
	if f.lines++; err == nil && f.lines > 2*len(f.saved)+maxDead {
		err = f.rewriteLocked()
	}
	if f.err = err; err != nil {
		_ = os.Remove(f.path)
	}
}

// Save implements front.Store.
func (f *sessionFile) Save(key string, s front.SavedSession) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := savedLine{Key: key, SavedSession: s}
	f.saved[key] = l
	f.writeLocked(l)
}

// Load implements front.Store.
func (f *sessionFile) Load(key string) (front.SavedSession, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.saved[key]
	if !l.Until.IsZero() && time.Now().After(l.Until) {
		return front.SavedSession{}, false
	}
	return l.SavedSession, ok
}

// Delete implements front.Store.
func (f *sessionFile) Delete(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.saved[key]; !ok {
		return
	}
	delete(f.saved, key)
	f.writeLocked(savedLine{Key: key})
}

// close closes the file. On nil it does nothing.
func (f *sessionFile) close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		_ = f.file.Close()
	}
	f.err = os.ErrClosed
	_ = f.lock.Unlock()
}
