package clientfile

import "golang.org/x/sys/unix"

// exchange swaps the names of two files in one step. Some file systems do not support it.
func exchange(a, b string) error {
	return unix.RenamexNp(a, b, unix.RENAME_SWAP)
}
