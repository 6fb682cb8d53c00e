package session

import (
	"log/slog"
	"os"
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// A Reread reads the settings of a process again that serves many connections, when it
// is told to or a file changes, and puts them in force on all of them.
type Reread struct {
	r *reloader
	w *watcher // nil while nothing is watched
}

// NewReread returns a Reread for shared, whose settings load reads again.
func NewReread(shared *assembly.Shared, load func() (*config.Settings, error), log *slog.Logger) *Reread {
	return &Reread{r: &reloader{load: load, log: log, shared: shared}}
}

// Now reads the settings again.
func (r *Reread) Now() { r.r.reload() }

// Watch begins to read the settings again whenever one of their files changes.
func (r *Reread) Watch() {
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

// Close ends what Watch began.
func (r *Reread) Close() {
	if r.w != nil {
		r.w.close()
	}
}

// EndingSignals returns the signals that end a process of attache.
func EndingSignals() []os.Signal { return slices.Clone(ending) }

// RereadingSignals returns the signals that have the configuration read again.
func RereadingSignals() []os.Signal { return slices.Clone(rereading) }
