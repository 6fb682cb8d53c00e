//go:build !windows

package clientfile

import "os"

// rename gives a file the name of another, which it replaces, also where that is
// open.
func rename(from, to string) error { return os.Rename(from, to) }
