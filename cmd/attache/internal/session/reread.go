package session

import (
	"log/slog"
	"os"
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// A Refresher reads the settings of a process that serves many connections again, on request or
// when a file changes, and applies them to all connections.
type Refresher struct {
	r *reloader
	w *watcher // nil while nothing is watched
}

// NewRefresher returns a Refresher for shared, whose settings load reads again.
func NewRefresher(shared *assembly.Shared, load func() (*config.Settings, error), log *slog.Logger) *Refresher {
	return &Refresher{r: &reloader{load: load, log: log, shared: shared}}
}

// Now reads the settings again.
func (r *Refresher) Now() { r.r.reload() }

// Watch starts to read the settings again whenever one of their files changes.
func (r *Refresher) Watch() {
	r.w = r.r.watch()
}

// Close stops the watch.
func (r *Refresher) Close() {
	if r.w != nil {
		r.w.close()
	}
}

// EndingSignals returns the signals that end a process of attache.
func EndingSignals() []os.Signal { return slices.Clone(endingSignals) }

// ReloadSignals returns the signals that make attache read the configuration again.
func ReloadSignals() []os.Signal { return slices.Clone(reloadSignals) }

// RestartSignals returns the signals that restart the server; none where there is no such signal.
func RestartSignals() []os.Signal { return slices.Clone(restartSignals) }
