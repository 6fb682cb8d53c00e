package logging

import (
	"bytes"
	"io"
	"sync"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// A Stderr is attache's stderr, which the log and the servers share. It writes lines of one of them,
// with a name before each line. If another one writes while a line is incomplete, the line ends there,
// and its rest begins a new line.
type Stderr struct {
	to   *sharedStderr
	name string // including the separator, "" for none
}

type sharedStderr struct {
	to io.Writer

	mu   sync.Mutex // held during writes
	open *Stderr    // whose line is not complete, nil for none
}

// NewStderr returns a Stderr that writes to w, or w itself if it is one.
func NewStderr(w io.Writer) *Stderr {
	if s, ok := w.(*Stderr); ok {
		return s
	}
	return &Stderr{to: &sharedStderr{to: w}}
}

// Share returns p with a [Stderr], and a Sink that writes there.
func Share(p cli.Process) (cli.Process, *Sink) {
	p.Stderr = NewStderr(p.Stderr)
	return p, NewSink(p.Stderr)
}

// Beside returns another Stderr for the same writer. It puts name in front of each line.
func (s *Stderr) Beside(name string) *Stderr { return &Stderr{s.to, name} }

// Write implements io.Writer.
func (s *Stderr) Write(b []byte) (int, error) {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	var named []byte
	for line := range bytes.Lines(b) {
		if s.to.open != s {
			if s.to.open != nil {
				named = append(named, '\n')
			}
			named = append(named, s.name...)
		}
		named = append(named, line...)
		s.to.open = s
		if line[len(line)-1] == '\n' {
			s.to.open = nil
		}
	}
	if _, err := s.to.to.Write(named); err != nil {
		return 0, err
	}
	return len(b), nil
}
