package limit

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// warnAgain is the shortest time between two warnings about refused requests of one kind.
	warnAgain = time.Minute
	// maxRefusals is how many refused requests of one kind are logged in warnAgain.
	maxRefusals = 20
)

// Refusals count the refused requests of one kind, so that a client that goes on and on does not fill
// the log. The zero value is ready to use.
type Refusals struct {
	mu     sync.Mutex
	since  time.Time
	number int
}

// Add counts a refused request and returns the level at which to log it: first for the first one in
// warnAgain, debug after maxRefusals, and info for those between. last reports whether the next one will be
// logged at debug level.
func (r *Refusals) Add(first slog.Level) (level slog.Level, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	level = slog.LevelInfo
	if time.Since(r.since) >= warnAgain {
		r.since, r.number, level = time.Now(), 0, first
	}
	if r.number++; r.number > maxRefusals {
		level = slog.LevelDebug
	}
	return level, r.number == maxRefusals
}
