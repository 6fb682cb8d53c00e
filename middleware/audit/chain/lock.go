package chain

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/attache-mcp/attache/sessionstate/filelock"
)

// keyFile returns the path of the file that is the lock of a log and holds its key.
func keyFile(path string) string { return path + ".key" }

const keyLen = 32

// A lock allows one process at a time to write a log. The kernel releases it when its
// holder dies.
type lock struct {
	path string
	f    *os.File
	info os.FileInfo // identifies the file of f
}

// lockPatience is how long to wait for the lock. A process that writes a log holds it
// for milliseconds; one that holds it longer is stuck, or is not attache. It is shorter than
// the time that a call, or the end of a session, waits for records.
const lockPatience = 800 * time.Millisecond

// take takes the lock, and waits for lockPatience at most. The caller must call release.
func (l *lock) take() error {
	for range 10 {
		if l.f == nil {
			var err error
			if l.f, l.info, err = openFile(l.path, os.O_CREATE|os.O_RDWR); err != nil {
				return err
			}
		}
		if err := filelock.Lock(l.f, lockPatience); err != nil {
			return fmt.Errorf("%s: %w", l.path, err)
		}
		// A lock belongs to the open file. If the path names another file by now, other processes
		// lock that one, and this lock protects nothing.
		if here, err := os.Stat(l.path); err == nil && os.SameFile(here, l.info) {
			return nil
		}
		l.close() // the locked file was removed or replaced
	}
	return fmt.Errorf("%s: its lock is replaced again and again", l.path)
}

func (l *lock) release() { _ = filelock.Unlock(l.f) }

func (l *lock) close() {
	if l.f != nil {
		_ = l.f.Close()
		l.f = nil
	}
}

// readKey returns the key in the file, or nil.
func readKey(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil || len(data) > 2*keyLen+2 {
		return nil
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(key) != keyLen {
		return nil
	}
	return key
}

func newKey() []byte {
	key := make([]byte, keyLen)
	rand.Read(key) // never returns an error
	return key
}

// makeKey returns the key of the log at path. It creates the key if there is none.
func makeKey(path string) ([]byte, error) {
	l := &lock{path: keyFile(path)}
	if key := readKey(l.path); key != nil {
		return key, nil
	}
	if err := l.take(); err != nil {
		return nil, err
	}
	defer l.close() // which unlocks it
	// Another process may have made the key while this one waited.
	if key := readKey(l.path); key != nil {
		return key, nil
	}
	if info, err := l.f.Stat(); err != nil || info.Size() > 0 {
		return nil, fmt.Errorf("%s holds no key: remove it, and a new one is made", l.path)
	}
	key := newKey()
	if _, err := l.f.Write(append(hex.AppendEncode(nil, key), '\n')); err != nil {
		_ = l.f.Truncate(0) // the part of a key would be taken for a damaged file
		return nil, err
	}
	return key, nil
}
