//go:build unix

package chain

import "golang.org/x/sys/unix"

// writable returns an error if this process cannot create files in dir, because of permissions or a
// read-only file system.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
