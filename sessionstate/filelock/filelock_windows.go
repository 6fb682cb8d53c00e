package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffset returns the position of the locked byte. It is beyond all content, because other
// processes cannot read locked bytes.
func lockOffset() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

// Try locks the file and returns true, or returns false if another process holds the lock.
func Try(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, lockOffset())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases the lock.
func Unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, lockOffset())
}
