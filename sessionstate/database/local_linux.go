package database

import (
	"errors"

	"golang.org/x/sys/unix"
)

// checkLocal returns an error if the file is on a network file system.
func checkLocal(path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return err
	}
	switch uint32(fs.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC:
		return errors.New("it is on a network file system, where locks between processes do not hold: set XDG_STATE_HOME to a local directory")
	}
	return nil
}
