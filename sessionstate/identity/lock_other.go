//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lock takes the lock that file stands for by making the file. Here nothing frees
// it when its holder dies, so it does not wait but says what to do.
func lock(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("another attache key is at work: try again, or remove %s if none is", file)
	}
	if err != nil {
		return nil, err
	}
	return func() {
		_ = f.Close()
		_ = os.Remove(file)
	}, nil
}
