//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package identity

import (
	"errors"
	"os"
	"syscall"
)

// lock waits until no other process or goroutine holds the lock that file stands
// for. The lock ends with its holder, however that ends; the file stays, since to
// remove it would race with a process that waits for it.
func lock(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
