//go:build unix

package child

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// startGroup starts a shell with two child processes in a new process group. It returns a reader
// that reaches its end when all three have ended, because each holds the write end.
func startGroup(t *testing.T) (pgid int, held io.Reader) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "trap '' TERM HUP; sleep 1000 & sleep 1000 & echo ready; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	r := bufio.NewReader(out)
	expect(t, r, "ready")
	return cmd.Process.Pid, r
}

// A watcher kills the group when the write end of its pipe is closed.
func TestWatcher(t *testing.T) {
	pgid, held := startGroup(t)
	w, err := watchGroup(pgid)
	check(t, err)
	w.pipe.Close()
	if rest := readAll(t, held); rest != "" {
		t.Errorf("the group wrote %q", rest)
	}
	if _, err := syscall.Wait4(w.pid, nil, 0, nil); err != nil {
		t.Error(err)
	}
}

// A dismissed watcher kills nothing, and has ended when the guard is closed.
func TestWatcherDismissed(t *testing.T) {
	pgid, held := startGroup(t)
	w, err := watchGroup(pgid)
	check(t, err)
	g := guard{watcher: w}
	g.close()
	if _, err := syscall.Wait4(w.pid, nil, 0, nil); err != syscall.ECHILD {
		t.Errorf("the watcher was not reaped: %v", err)
	}
	if err := syscall.Kill(-pgid, 0); err != nil {
		t.Errorf("the group: %v", err)
	}
	_ = syscall.Kill(-pgid, syscall.SIGKILL)
	readAll(t, held)
	(*watcher)(nil).dismiss()
}

// On every Unix the group ends however this process ends, with the guard of the system and with a
// watcher.
func TestGroupEndsWithUs(t *testing.T) {
	for _, role := range []string{"wrapper", "watched"} {
		for _, end := range []string{"is killed", "exits", "panics"} {
			t.Run(role+"/"+end, func(t *testing.T) {
				t.Parallel()
				endsWithUs(t, role, end, "sleep 1000 & (sleep 1000 & wait) & echo ready; wait")
			})
		}
	}
}

// endsWithUs starts the test binary in a role, in which it runs a script and ends. No process of
// the script may still run.
func endsWithUs(t *testing.T, role, end, script string) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "held")
	check(t, syscall.Mkfifo(fifo, 0o600))
	cmd := exec.Command(os.Args[0], fmt.Sprintf("trap '' TERM HUP; exec 9>'%s'; echo $$ >&9; ", fifo)+script, end)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, "GORACE=atexit_sleep_ms=0")
	in, _ := cmd.StdinPipe()
	check(t, cmd.Start())
	held, err := os.Open(fifo) // blocks until the script has opened it
	check(t, err)
	defer held.Close()
	fmt.Fprintln(in, "now")
	_ = cmd.Wait()
	_ = held.SetReadDeadline(time.Now().Add(long))
	pgid, err := io.ReadAll(held) // ends when no process is left
	if err != nil {
		t.Errorf("processes of group %s still run: %v", bytes.TrimSpace(pgid), err)
		if id, err := strconv.Atoi(string(bytes.TrimSpace(pgid))); err == nil && id > 1 {
			_ = syscall.Kill(-id, syscall.SIGKILL)
		}
	}
}
