package briefing

import (
	"log/slog"
	"sync"
)

// warnings logs each text once.
type warnings struct {
	log    *slog.Logger
	mu     sync.Mutex
	logged map[string]bool // bounded, because the texts are those of this package
}

func (w *warnings) once(text string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logged[text] {
		return
	}
	if w.logged == nil {
		w.logged = map[string]bool{}
	}
	w.logged[text] = true
	w.log.Warn(text, args...)
}
