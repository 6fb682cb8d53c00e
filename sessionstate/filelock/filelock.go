// Package filelock locks files for one process at a time. The kernel frees a lock when
// its holder dies, however that happens.
package filelock

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// ErrHeld is returned by [Lock] when another process keeps the lock.
var ErrHeld = errors.New("it is locked by another process")

// poll is the longest time between two tries. A call to the kernel that waits for a
// lock could not be ended.
const poll = 10 * time.Millisecond

// Lock locks the file, for which it waits until patience is over.
func Lock(f *os.File, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, poll) {
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

// Discard removes the file of a lock that is held, and then frees the lock: nobody can lock the file
// in between, and think that others see it. Windows removes no open file; there the lock is freed first,
// and the file stays if another process has opened it meanwhile.
func Discard(l *flock.Flock) {
	err := os.Remove(l.Path())
	_ = l.Unlock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(l.Path())
	}
}
