package serve

import (
	"io"
	"sync"
)

// A lineWriter writes the stderr of many processes, one write at a time.
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
