package session

import (
	"log/slog"
	"os"
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// A Reloader reads the settings of a process that serves many connections again, on request or
// when a file changes, and applies them to all connections.
type Refresher struct {
	r *reloader
	w *watcher // nil while nothing is watched
}

// NewReloader returns a Reloader for shared, whose settings load reads again.
func NewRefresher(shared *assembly.Shared, load func() (*config.Settings, error), log *slog.Logger) *Refresher {
	return &Refresher{r: &reloader{load: load, log: log, shared: shared}}
}

// Now reads the settings again.
func (r *Refresher) Now() { r.r.reload() }

// Watch starts to read the settings again whenever one of their files changes.
func (r *Refresher) Watch() {
	if len(r.r.files()) == 0 {
		return
	}
	w, err := watch(r.r.files, r.r.reloadFrom)
	if err != nil {
		r.r.log.Info("changes of the configuration are not noticed by themselves here; send SIGHUP to have it read again", "why", err)
		return
	}
	r.w = w
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
