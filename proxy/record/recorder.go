package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// maxPending is how many bytes of lines may wait to be written.
const maxPending = 64 << 20

// headerRoom is how long the header is in the file, in bytes, spaces included and what
// the session was given aside: what it says is only known at the end.
const headerRoom = 512

// ErrSlow is why a recording stops whose lines cannot be written as fast as they
// come.
var ErrSlow = errors.New("lines come faster than they can be written")

// Options say how a session is recorded.
type Options struct {
	// IDPrefix is the prefix that the relay gives the ids of its own requests.
	IDPrefix string
	// Server is what the header calls the server.
	Server string
	// Start has the flags and variables with which the session was started, for the header.
	Start map[string]string
	// Secrets are what must not reach the file.
	Secrets Secrets
	// Failed is called once, on another goroutine, when the file cannot be written
	// any more: then nothing further is recorded. It may be nil.
	Failed func(error)
}

// A Recorder writes the lines of a session to a file. Watch never blocks on the
// file, and a session never fails because of it.
type Recorder struct {
	o     Options
	w     io.Writer
	scrub *Scrubber
	start time.Time
	limit int // how many bytes may wait
	done  chan struct{}

	mu      sync.Mutex
	wake    sync.Cond
	pending []Event
	bytes   int
	closed  bool
	stopped error

	room   int    // of the header in the file, spaces included
	header Header // of the writing goroutine, and of Close after it
}

// NewRecorder returns a Recorder that writes to w. If w is an io.WriterAt, the
// header is completed at the end: what was scrubbed, and which era it was.
func NewRecorder(w io.Writer, o Options) *Recorder { return newRecorder(w, o, maxPending) }

func newRecorder(w io.Writer, o Options, limit int) *Recorder {
	r := &Recorder{
		o: o, w: w, scrub: NewScrubber(o.Secrets), start: time.Now(), limit: limit, done: make(chan struct{}), room: headerRoom,
		header: Header{Version: Version, IDPrefix: o.IDPrefix, Scrubbed: []string{}},
	}
	r.wake.L = &r.mu
	r.header.Server = string(r.scrub.Line([]byte(o.Server)))
	r.room += 6 * len(o.Server) // as JSON may spell it
	for name, value := range o.Start {
		if r.header.Start == nil {
			r.header.Start = map[string]string{}
		}
		r.header.Start[name] = string(r.scrub.Line([]byte(value)))
		r.room += len(name) + 6*len(value)
	}
	go r.run()
	return r
}

// Watch takes a line that passes at one of the places. It copies line; nil stands
// for one too long to be held.
func (r *Recorder) Watch(at string, line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.stopped != nil {
		return
	}
	if r.bytes += len(line); r.bytes > r.limit {
		r.stopped = ErrSlow
	} else {
		r.pending = append(r.pending, Event{time.Since(r.start).Seconds(), at, bytes.Clone(line)})
	}
	r.wake.Signal()
}

// Close writes what waits, completes the header, and returns the error that the
// recording ended with, if it did. It does not close the file.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.closed = true
	r.wake.Signal()
	r.mu.Unlock()
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// run writes lines until the recording is closed or cannot go on.
func (r *Recorder) run() {
	defer close(r.done)
	begun := false
	for more := true; more; {
		var events []Event
		events, more = r.next()
		if len(events) == 0 {
			continue
		}
		lines := r.lines(events)
		if !begun {
			begun = true
			lines = append(r.head(allNames), lines...)
		}
		r.write(lines)
	}
	if begun {
		r.complete()
	}
	if err := r.failure(); err != nil && r.o.Failed != nil {
		r.o.Failed(err)
	}
}

// lines returns events as lines of the file.
func (r *Recorder) lines(events []Event) []byte {
	var out []byte
	for _, e := range events {
		r.look(e)
		if e.Line != nil {
			e.Line = r.scrub.Line(e.Line)
		}
		out = e.append(out)
	}
	return out
}

// next returns the lines that wait. more is false if none will follow.
func (r *Recorder) next() (events []Event, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.pending) == 0 && !r.closed && r.stopped == nil {
		r.wake.Wait()
	}
	events, r.pending, r.bytes = r.pending, nil, 0
	return events, !r.closed && r.stopped == nil
}

func (r *Recorder) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

func (r *Recorder) stop(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped == nil {
		r.stopped = err
	}
}

// write writes unless writing has failed before.
func (r *Recorder) write(b []byte) {
	if err := r.failure(); err == nil || errors.Is(err, ErrSlow) {
		_, err := r.w.Write(b)
		r.stop(err)
	}
}

// look learns the era from what the client says.
func (r *Recorder) look(e Event) {
	if e.At != ClientIn || r.header.Era == "legacy" {
		return
	}
	var m struct {
		Method string `json:"method"`
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(e.Line, &m) != nil {
		return
	}
	// A client of both eras asks server/discover first and may go on with initialize.
	switch _, versioned := m.Params.Meta["io.modelcontextprotocol/protocolVersion"]; {
	case m.Method == "initialize":
		r.header.Era = "legacy"
	case versioned, m.Method == "server/discover":
		r.header.Era = "modern"
	}
}

// head returns the header, filled up so that it can be replaced. Until the end it
// names all that may have been scrubbed.
func (r *Recorder) head(scrubbed []string) []byte {
	r.header.Scrubbed = scrubbed
	b, err := json.Marshal(r.header)
	if err != nil || len(b) >= r.room {
		return append(b, '\n')
	}
	return append(append(b, bytes.Repeat([]byte{' '}, r.room-1-len(b))...), '\n')
}

// complete puts the final header in the place of the first.
func (r *Recorder) complete() {
	at, ok := r.w.(io.WriterAt)
	if !ok {
		return
	}
	if head := r.head(r.scrub.Found()); len(head) == r.room {
		if _, err := at.WriteAt(head, 0); err != nil {
			r.stop(fmt.Errorf("the header could not be completed: %w", err))
		}
	}
}
