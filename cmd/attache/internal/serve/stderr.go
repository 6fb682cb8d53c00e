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

// A namedWriter writes a name before each line of one process.
type namedWriter struct {
	to      io.Writer
	name    string // including the separator
	midLine bool   // the last byte written was not a line end
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
