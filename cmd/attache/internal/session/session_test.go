package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/child"
)

// After a signal that arrives before the server is started, the server is not started, and the exit
// status is that of the signal, not that of a failed start.
func TestSignalBeforeTheServer(t *testing.T) {
	var log bytes.Buffer
	notified := make(chan struct{})
	close(notified)
	w := &relay{log: slog.New(slog.NewTextHandler(&log, nil)), notified: notified, cancel: func() {}}
	w.signal(syscall.SIGTERM)
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
	}{
		{nil, 0, 0},
		{nil, 3, 3},
		{errors.New("no space left on device"), 0, cli.ExitFailure},
		{errors.New("no space left on device"), 3, 3},
		{closedPipe(t), 0, 0},
		{proxy.ErrClientGone, 0, 0},
	} {
		w := &relay{log: slog.New(slog.DiscardHandler), server: &server{status: func() int { return c.server }}}
		if got := w.status(c.err); got != c.want {
			t.Errorf("%v, and the server exits with %d: status %d, want %d", c.err, c.server, got, c.want)
		}
	}
}

// closedPipe returns the error of a write to a pipe that nobody reads.
func closedPipe(t *testing.T) error {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
