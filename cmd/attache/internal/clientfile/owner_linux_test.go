package clientfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// "sudo chown ada FILE" leaves a group to which ada may not give a new file.
func TestUpdateOfFileOfOtherGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of another group")
	}
	const user, other = 12345, 54321
	for _, c := range []struct {
		mode, want os.FileMode // want is 0 if the file must not change
		owner      int
	}{
		{mode: 0o600, want: 0o600, owner: user},
		{mode: 0o664, want: 0o644, owner: user}, // its new group must not be able to write
		{mode: 0o640, want: 0o600, owner: user},
		{mode: 0o666, owner: other},
	} {
		path := write(t, "a")
		dir := filepath.Dir(path)
		err := errors.Join(os.Chown(path, c.owner, other), os.Chmod(path, c.mode), os.Chown(dir, user, user), os.Chmod(filepath.Dir(dir), 0o755))
		check(t, err)
		backups := filepath.Join(dir, "backups")
		asUser(user, func() {
			_, err = Update(path, backups, noon, func(old []byte) ([]byte, error) { return bytes.ToUpper(old), nil })
		})
		info, statErr := os.Stat(path)
		if statErr != nil {
			t.Fatal(statErr)
		}
		left, _ := os.ReadDir(backups)
		switch {
		case c.want == 0 && (!errors.Is(err, errOwner) || len(left) > 0):
			t.Errorf("%v of another user: got %v and %d backups, want %v and none", c.mode, err, len(left), errOwner)
		case c.want != 0 && (err != nil || info.Mode() != c.want):
			t.Errorf("%v: got %v and mode %v, want mode %v", c.mode, err, info.Mode(), c.want)
		}
	}
}

// asUser calls f, whose thread has the rights of user on files, and not those of root.
func asUser(user int, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _ = unix.SetfsuidRetUid(user)
	defer unix.SetfsuidRetUid(0)
	f()
}
