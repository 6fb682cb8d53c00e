//go:build !unix

package clientfile

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: a new file takes the access rules of its directory.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

// links returns one name: more cannot be seen without opening the file.
func links(fs.FileInfo) uint64 { return 1 }

// syncDirectory does nothing: a directory cannot be synced here.
func syncDirectory(string) {}
