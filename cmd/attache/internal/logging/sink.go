package logging

import (
	"io"
	"sync"
	"time"
)

// A Sink writes log lines and never blocks: a client that does not read attache's stderr must
// not delay a message or a signal. Lines that do not fit are dropped and counted, and the log
// says how many as soon as it takes lines again.
type Sink struct {
	w       io.Writer
	dropped func(lines int) // logs to w that lines were dropped; set by New

	mu      sync.Mutex
	waiting sync.Cond // for lines, or the end
	lines   [][]byte
	size    int           // of lines that are not written
	lost    int           // lines that were dropped and not reported
	done    chan struct{} // nil until the first line; closed when all is written
	closed  bool
}

const (
	// sinkBytes is how much waits for a stderr that does not take it. A front whose sessions
	// end all at once writes thousands of lines.
	sinkBytes = 1 << 20
	// sinkPatience is how long the end of the program waits for them.
	sinkPatience = 200 * time.Millisecond
)

// NewSink returns a Sink that writes to w.
func NewSink(w io.Writer) *Sink {
	s := &Sink{w: w}
	s.waiting.L = &s.mu
	return s
}

// Write implements io.Writer. It keeps a copy of b and reports success.
func (s *Sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return len(b), nil
	case s.size+len(b) > sinkBytes:
		s.lost++
		return len(b), nil
	case s.done == nil:
		s.done = make(chan struct{})
		go s.drain()
	}
	s.lines, s.size = append(s.lines, append([]byte(nil), b...)), s.size+len(b)
	s.waiting.Signal()
	return len(b), nil
}

func (s *Sink) drain() {
	defer close(s.done)
	for {
		lines, lost, more := s.next()
		for _, line := range lines {
			s.w.Write(line)
			s.mu.Lock()
			s.size -= len(line)
			s.mu.Unlock()
		}
		if lost > 0 && s.dropped != nil {
			s.dropped(lost)
		}
		if !more {
			return
		}
	}
}

// next waits for lines, and returns them with the number of those that were dropped behind them.
// more is false at the end.
func (s *Sink) next() (lines [][]byte, lost int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.lines) == 0 && s.lost == 0 && !s.closed {
		s.waiting.Wait()
	}
	lines, lost = s.lines, s.lost
	s.lines, s.lost = nil, 0
	return lines, lost, !s.closed
}

// Close writes the waiting lines, as long as stderr takes them in time.
func (s *Sink) Close() {
	s.mu.Lock()
	s.closed = true
	s.waiting.Signal()
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
