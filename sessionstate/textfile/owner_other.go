//go:build !unix

package textfile

import "io/fs"

// isOurs returns true: on this system the directory has to keep others out.
func isOurs(fs.FileInfo) bool { return true }
