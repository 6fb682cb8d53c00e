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

// A signal that comes before the server is started keeps it from being started, and
// is what ended attache: nothing was wrong with the server's command.
func TestSignalBeforeTheServer(t *testing.T) {
	var said bytes.Buffer
	heeding := make(chan struct{})
	close(heeding)
	w := &relay{log: slog.New(slog.NewTextHandler(&said, nil)), heeding: heeding, cancel: func() {}}
	w.signal(syscall.SIGTERM)
	_, err := w.start(context.Background())
	if got, want := w.status(fmt.Errorf("%w: %w", proxy.ErrStart, err)), 128+int(syscall.SIGTERM); got != want || said.Len() > 0 {
		t.Errorf("status %d, want %d; it said %q", got, want, said.String())
	}
}
