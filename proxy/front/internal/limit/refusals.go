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

// Refusals limits how many refused requests of one kind are logged, because a client may repeat a refused
// request without end. Each kind has its own, so that a scanner with wrong names does not hide a wrong key. The zero
// value is ready to use.
type Refusals struct {
	mu     sync.Mutex
	since  time.Time
	number int
}

// Add counts a refused request and returns the level at which to log it: the level first for the first
// request within warnAgain, info for the next ones, and debug after maxRefusals. If last is true, the next
// ones are logged at debug level.
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
