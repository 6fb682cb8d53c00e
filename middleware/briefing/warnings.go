package briefing

import (
	"log/slog"
	"sync"
)

// warnings logs each text once.
type warnings struct {
	log    *slog.Logger
	logged sync.Map // of texts; bounded, because they are those of this package
}

func (w *warnings) once(text string, args ...any) {
	if _, logged := w.logged.LoadOrStore(text, true); !logged {
		w.log.Warn(text, args...)
	}
}
