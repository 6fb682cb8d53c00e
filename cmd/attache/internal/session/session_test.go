package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/remote"
)

// After a signal that arrives before the server is started, the server is not started, and the exit
// status is that of the signal, not that of a failed start.
func TestSignalBeforeTheServer(t *testing.T) {
	var log bytes.Buffer
	notified := make(chan struct{})
	close(notified)
	cancelled := false
	w := &relay{log: slog.New(slog.NewTextHandler(&log, nil)), notified: notified, cancel: func() { cancelled = true }}
	if w.signal(syscall.SIGTERM); !cancelled {
		t.Error("the session goes on")
	}
	_, err := w.start(context.Background())
	if got, want := w.status(fmt.Errorf("%w: %w", proxy.ErrStart, err)), 128+int(syscall.SIGTERM); got != want || log.Len() > 0 {
		t.Errorf("status %d, want %d; log %q", got, want, log.String())
	}
}

// A read or write that fails is a failure of attache, unless the client has closed its end or the
// server has failed, too.
func TestStatusOfAFailedSession(t *testing.T) {
	for _, c := range []struct {
		err          error
		server, want int
		log          string
	}{
		{nil, 0, 0, ""},
		{nil, 3, 3, ""},
		{errors.New("no space left on device"), 0, cli.ExitFailure, "level=ERROR"},
		{errors.New("no space left on device"), 3, 3, "no space left on device"},
		{closedPipe(t), 0, 0, "level=ERROR"},
		{proxy.ErrClientGone, 0, 0, "level=WARN"},
		{os.ErrClosed, 0, 0, "level=ERROR"},
		{context.Canceled, 3, 3, ""},
	} {
		var log bytes.Buffer
		w := &relay{log: slog.New(slog.NewTextHandler(&log, nil)), server: &server{status: func() int { return c.server }}}
		if got := w.status(c.err); got != c.want {
			t.Errorf("%v, and the server exits with %d: status %d, want %d", c.err, c.server, got, c.want)
		}
		if got := log.String(); (got == "") != (c.log == "") || !strings.Contains(got, c.log) {
			t.Errorf("%v: log %q, want %q", c.err, got, c.log)
		}
	}
}

// A terminal that hangs up is how a person leaves; a disk may fail with the same error.
func TestStatusAfterAHangUp(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no EIO")
	}
	device, err := os.Open(os.DevNull)
	check(t, err)
	defer device.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	check(t, err)
	defer file.Close()
	for _, c := range []struct {
		in   *os.File
		want int
	}{{device, 0}, {file, cli.ExitFailure}} {
		w := &relay{log: slog.New(slog.DiscardHandler), server: &server{status: func() int { return 0 }}}
		w.p.Stdin, w.p.Stdout = c.in, file
		if got := w.status(&os.PathError{Op: "read", Path: c.in.Name(), Err: syscall.EIO}); got != c.want {
			t.Errorf("%s: status %d, want %d", c.in.Name(), got, c.want)
		}
	}
}

// A signal ends a session with a remote server as it ends most programs.
func TestSignalEndsRemoteSession(t *testing.T) {
	r, err := remote.Start(remote.Options{URL: "http://127.0.0.1:1/mcp"})
	check(t, err)
	cancelled := make(chan struct{})
	w := &relay{log: slog.New(slog.DiscardHandler), server: remoteServer(r), cancel: func() { close(cancelled) }}
	w.signal(syscall.SIGTERM)
	<-cancelled
	if got, want := w.status(context.Canceled), 128+int(syscall.SIGTERM); got != want {
		t.Errorf("status %d, want %d", got, want)
	}
}

// closedPipe returns the error of a write to a pipe that nobody reads.
func closedPipe(t *testing.T) error {
	t.Helper()
	r, w, err := os.Pipe()
	check(t, err)
	defer w.Close()
	r.Close()
	_, err = w.WriteString("x")
	return err
}

// If a part of the server's stderr was dropped, that is logged once.
func TestDroppedStderr(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	p, err := child.Start(t.Context(), child.Options{Argv: []string{"sh", "-c", "echo text >&2; exit 3"}, Env: os.Environ(), Stderr: closedWriter{}})
	check(t, err)
	p.CloseStdin()
	var log bytes.Buffer
	w := &relay{log: slog.New(slog.NewTextHandler(&log, nil))}
	s := w.processServer(p)
	if first, again := s.status(), s.status(); first != 3 || again != 3 || bytes.Count(log.Bytes(), []byte("bytes=5")) != 1 {
		t.Errorf("status %d, then %d, want 3; log\n%s", first, again, log.String())
	}
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }

var check = testkit.Check
