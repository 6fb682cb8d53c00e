//go:build !unix

package textfile

import "io/fs"

// isOurs is not known here: the directory has to keep others out.
func isOurs(fs.FileInfo) bool { return true }
