//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package chain

import (
	"errors"
	"os"
	"syscall"
)

func lockFile(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
