package session

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"

	"github.com/attache-mcp/attache/proxy"
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
