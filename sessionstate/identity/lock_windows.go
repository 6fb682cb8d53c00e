package identity

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock waits until no other process or goroutine holds the lock that file stands
// for. The lock ends with its holder, however that ends; the file stays, since to
// remove it would race with a process that waits for it.
func lock(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped))
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
