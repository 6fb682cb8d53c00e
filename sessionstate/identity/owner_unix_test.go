//go:build unix

package identity_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/identity"
)

// Root makes and revokes keys for a service with a user of its own, which must still be able to read
// the file and to change it.
func TestRootKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can write the file of another user")
	}
	const service = 12345
	file := filepath.Join(t.TempDir(), "keys.yaml")
	_, first := create(t, file, ada)
	check(t, os.Remove(file+".lock"))
	check(t, os.Chown(file, service, service))
	expect := func(after string) {
		t.Helper()
		for _, name := range []string{file, file + ".lock"} {
			info, err := os.Stat(name)
			check(t, err)
			if s := info.Sys().(*syscall.Stat_t); s.Uid != service || s.Gid != service || info.Mode().Perm() != 0o600 {
				t.Errorf("after %s %s belongs to %d:%d with mode %v", after, filepath.Base(name), s.Uid, s.Gid, info.Mode())
			}
		}
	}
	create(t, file, ada)
	expect("create")
	check(t, identity.Revoke(file, first.ID, start.Add(time.Hour)))
	expect("revoke")
}

// A link in place of the lock file must not give the file that it names to the owner of the keys.
func TestRootGivesAwayNoOtherFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := t.TempDir()
	file, other := filepath.Join(dir, "keys.yaml"), filepath.Join(dir, "other")
	create(t, file, ada)
	check(t, os.Remove(file+".lock"))
	check(t, os.WriteFile(other, nil, 0o600))
	check(t, os.Symlink(other, file+".lock"))
	check(t, os.Chown(file, 12345, 12345))
	create(t, file, ada)
	info, err := os.Stat(other)
	check(t, err)
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 0 {
		t.Errorf("the file behind the link belongs to %d", uid)
	}
}

// A key set that another user can change would let that user be anyone.
func TestKeySetOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	g := newTokensTest(t, allKeys(), nil)
	check(t, os.Chown(g.file, 12345, 12345))
	g.want(keyring()["ed"].token(claims(nil), nil), identity.ErrKeySet)
}
