// Package filelock locks files for one process at a time. The kernel releases a lock when its
// holder ends in any way.
package filelock

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// ErrHeld is returned by [Lock] if another process holds the lock until the timeout.
var ErrHeld = errors.New("it is locked by another process")

// maxPause is the longest pause between two attempts. Lock polls because a system call that
// waits for a lock cannot be interrupted.
const maxPause = 10 * time.Millisecond

// Lock locks the file. It waits for another holder at most for timeout.
func Lock(f *os.File, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for pause := time.Millisecond; ; pause = min(2*pause, maxPause) {
		free, err := Try(f)
		switch {
		case err != nil:
			return err
		case free:
			return nil
		case time.Now().After(deadline):
			return ErrHeld
		}
		time.Sleep(pause)
	}
}

// Discard removes the file of a held lock and then releases the lock. In this order no process
// can lock a file that others no longer see. Windows cannot remove an open file, so there Discard
// releases the lock first, and the file stays if another process has opened it meanwhile.
func Discard(l *flock.Flock) {
	err := os.Remove(l.Path())
	_ = l.Unlock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(l.Path())
	}
}
