package logging

import (
	"io"
	"strconv"
	"sync"
	"time"
)

// A Sink writes log lines and never blocks: a client that does not read attache's stderr must
// not delay a message or a signal. Lines that do not fit are dropped and counted.
type Sink struct {
	w io.Writer

	mu      sync.Mutex
	lines   chan []byte // nil until the first line
	done    chan struct{}
	closed  bool
	dropped int
}

const (
	// sinkLines is how many lines wait for a stderr that does not take them.
	sinkLines = 256
	// sinkPatience is how long the end of the program waits for them.
	sinkPatience = 200 * time.Millisecond
)

// NewSink returns a Sink that writes to w.
func NewSink(w io.Writer) *Sink { return &Sink{w: w} }

// Write implements io.Writer. It keeps a copy of b and reports success.
func (s *Sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return len(b), nil
	}
	if s.lines == nil {
		s.lines, s.done = make(chan []byte, sinkLines), make(chan struct{})
		go s.drain(s.lines)
	}
	select {
	case s.lines <- append([]byte(nil), b...):
	default:
		s.dropped++
	}
	return len(b), nil
}

func (s *Sink) drain(lines <-chan []byte) {
	defer close(s.done)
	for line := range lines {
		s.w.Write(line)
	}
}

// Close writes the waiting lines, as long as stderr takes them in time.
func (s *Sink) Close() {
	s.mu.Lock()
	if s.lines != nil && !s.closed {
		if s.dropped > 0 {
			select {
			case s.lines <- []byte("attache: " + strconv.Itoa(s.dropped) + " log lines were dropped, as nobody read stderr\n"):
			default:
			}
		}
		close(s.lines)
	}
	s.closed = true
	done := s.done
	s.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-time.After(sinkPatience):
	}
}
