package serve

import (
	"io"
	"sync"
)

// A lineWriter takes what the processes of many sessions write to stderr, a write at a
// time.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}
