//go:build !unix

package clientfile

import (
	"io/fs"
	"os"
)

// keepOwner keeps no owner: a new file inherits the access rules of its directory.
func keepOwner(_ *os.File, info fs.FileInfo) (fs.FileMode, error) { return info.Mode().Perm(), nil }

// links returns 1: the number of links is not known without opening the file.
func links(fs.FileInfo) uint64 { return 1 }
