package telemetry

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// A client may not read the stderr of attache, to which the console exporter writes. It must not keep
// attache from ending.
func TestCloseWithUnreadConsole(t *testing.T) {
	unread, stderr := io.Pipe()
	defer unread.Close()
	e := Start(cli.Process{Env: []string{"OTEL_METRICS_EXPORTER=console"}, Stderr: stderr}, "s", "v", slog.New(slog.DiscardHandler))
	e.Recorder.ServerRestarted() // so that there is something to write
	closed := make(chan struct{})
	go func() {
		e.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("Close waits for ever")
	}
}
