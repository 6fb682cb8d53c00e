//go:build unix

package chain

import "golang.org/x/sys/unix"

// writable returns an error if this process may not make files in dir, or the file system is
// read-only.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
