package serve

import (
	"io"
	"sync"
)

// A sharedStderr is the stderr that many processes share.
type sharedStderr struct {
	to io.Writer

	mu   sync.Mutex     // held during writes
	open *processStderr // the process whose line is not complete, nil for none
}

// A processStderr writes the stderr of one process, with a name before each line. If another process
// writes while a line is incomplete, the line ends there, and its rest begins a new line.
type processStderr struct {
	to   *sharedStderr
	name string // including the separator, "" for none
}

// Write implements io.Writer.
func (w *processStderr) Write(b []byte) (int, error) {
	w.to.mu.Lock()
	defer w.to.mu.Unlock()
	var named []byte
	for _, c := range b {
		if w.to.open != w {
			if w.to.open != nil {
				named = append(named, '\n')
			}
			named = append(named, w.name...)
			w.to.open = w
		}
		if named = append(named, c); c == '\n' {
			w.to.open = nil
		}
	}
	if _, err := w.to.to.Write(named); err != nil {
		return 0, err
	}
	return len(b), nil
}
