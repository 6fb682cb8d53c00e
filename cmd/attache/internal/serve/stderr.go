package serve

import (
	"io"
	"sync"
)

// A lineWriter serialises writes to the stderr that many processes share.
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
