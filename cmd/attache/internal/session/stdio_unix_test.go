//go:build unix

package session

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// open keeps files with the same descriptor open until the tests end. Otherwise the garbage collector would close the
// descriptor twice, the second time perhaps as that of another file.
var open []*os.File

// A pipe is non-blocking only during the session: other programs may use it afterwards. A regular file is left alone.
func TestPollable(t *testing.T) {
	r, w, err := os.Pipe()
	check(t, err)
	regular, err := os.CreateTemp(t.TempDir(), "")
	check(t, err)
	defer regular.Close()
	for f, want := range map[*os.File]bool{r: true, w: true, regular: false} {
		f.Fd() // makes it blocking, as inherited files are
		file, restore := pollable(f)
		if want {
			open = append(open, f, file)
		}
		during := nonblocking(t, f)
		restore()
		if after := nonblocking(t, f); during != want || after || (file == f) == want {
			t.Errorf("%s: non-blocking %t, afterwards %t, want %t and false", f.Name(), during, after, want)
		}
	}
}

func nonblocking(t *testing.T, f *os.File) bool {
	t.Helper()
	c, err := f.SyscallConn()
	check(t, err)
	flags := 0
	if errControl := c.Control(func(fd uintptr) { flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0) }); err != nil || errControl != nil {
		t.Fatal(err, errControl)
	}
	return flags&unix.O_NONBLOCK != 0
}
