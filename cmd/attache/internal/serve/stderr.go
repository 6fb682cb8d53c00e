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

// A namedWriter puts a name in front of each line that one process writes.
type namedWriter struct {
	to      io.Writer
	name    string // with what separates it from the line
	midLine bool
}

// Write implements io.Writer.
func (w *namedWriter) Write(b []byte) (int, error) {
	var named []byte
	for _, c := range b {
		if !w.midLine {
			named = append(named, w.name...)
		}
		named = append(named, c)
		w.midLine = c != '\n'
	}
	if _, err := w.to.Write(named); err != nil {
		return 0, err
	}
	return len(b), nil
}
