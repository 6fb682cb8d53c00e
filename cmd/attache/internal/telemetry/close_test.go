package telemetry

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
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

// The user learns that a collector does not answer, although the session ends before an attempt to send
// has failed.
func TestCloseWithSilentCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []error
		silent := func(ctx context.Context) error { // as the SDK's batch processor
			<-ctx.Done()
			return ctx.Err()
		}
		e := &Telemetry{
			ending: make(chan struct{}), abort: func() {}, stop: []func(context.Context) error{silent},
			failed: func(err error) { reported = append(reported, err) },
		}
		e.Close()
		if len(reported) != 1 {
			t.Errorf("reported: %v", reported)
		}
	})
}
