package logging

import (
	"io"
	"sync"
	"time"
)

// A Sink writes log lines and never blocks: a client that does not read attache's stderr must
// not delay a message or a signal. Lines that do not fit are dropped, and their number is logged as
// soon as lines can be written again.
type Sink struct {
	w       io.Writer
	dropped func(lines int) // logs to w that lines were dropped; set by New

	mu      sync.Mutex
	waiting sync.Cond // signals a line or the end
	lines   [][]byte
	size    int           // bytes that are not written yet
	lost    int           // lines that were dropped and not reported yet
	done    chan struct{} // nil until the first line; closed when all lines are written
	closed  bool
}

const (
	// sinkBytes is how many bytes may wait to be written. A front whose sessions all end at
	// once logs thousands of lines.
	sinkBytes = 1 << 20
	// sinkPatience is how long Close waits for the waiting lines, in steps of sinkStep. On a busy machine
	// a step takes longer.
	sinkPatience = 200 * time.Millisecond
	sinkStep     = 20 * time.Millisecond
)

// NewSink returns a Sink that writes to w.
func NewSink(w io.Writer) *Sink {
	s := &Sink{w: w}
	s.waiting.L = &s.mu
	return s
}

// Write implements io.Writer. It queues a copy of b and always succeeds.
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

// next waits for lines. It returns them and the number of lines dropped after them. more is false at
// the end.
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

// Close waits for sinkPatience until the remaining lines are written: the last line often says why attache
// ends. It waits in steps, because a busy machine can stop this process for a while. A single timer would
// then end the wait before the line is written.
func (s *Sink) Close() {
	s.mu.Lock()
	s.closed = true
	s.waiting.Signal()
	done := s.done
	s.mu.Unlock()
	if done == nil {
		return
	}
	for range sinkPatience / sinkStep {
		select {
		case <-done:
			return
		case <-time.After(sinkStep):
		}
	}
}
