package clientfile

import "golang.org/x/sys/unix"

// exchange gives two files each other's name, in one step. Not every file system
// can.
func exchange(a, b string) error {
	return unix.RenamexNp(a, b, unix.RENAME_SWAP)
}
