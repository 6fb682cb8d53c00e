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
