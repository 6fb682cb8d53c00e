package textfile_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A file server such as Samba or that of NFS gives up its lease when someone else opens the file.
func TestReadFileWithLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	testkit.Check(t, err)
	defer f.Close()
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGIO)
	defer signal.Stop(broken)
	fd := f.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("this file system has no leases: ", err)
	}
	var holder sync.WaitGroup
	defer holder.Wait()
	holder.Go(func() {
		<-broken
		_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
	})
	if _, _, err := textfile.Read(path, textfile.Rules{Max: 1}); err != nil {
		t.Error(err)
	}
}
