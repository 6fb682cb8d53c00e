package briefing

import (
	"log/slog"
	"sync"
)

// warnings logs each text once.
type warnings struct {
	log    *slog.Logger
	mu     sync.Mutex
	logged map[string]bool // texts of this package, so their number is bounded
}

func (w *warnings) once(text string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logged[text] {
		return
	}
	if w.logged == nil {
		w.logged = map[string]bool{}
	}
	w.logged[text] = true
	if err != nil {
		w.log.Warn(text, "err", err)
		return
	}
	w.log.Warn(text)
}
