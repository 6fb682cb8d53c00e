package briefing

import (
	"log/slog"
	"sync"
)

// warnings logs each text once.
type warnings struct {
	log  *slog.Logger
	mu   sync.Mutex
	told map[string]bool // texts of this package, so their number is bounded
}

func (w *warnings) once(text string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told[text] {
		return
	}
	if w.told == nil {
		w.told = map[string]bool{}
	}
	w.told[text] = true
	if err != nil {
		w.log.Warn(text, "err", err)
		return
	}
	w.log.Warn(text)
}
