package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
)

// maxPending is how many bytes of lines may be queued.
const maxPending = 64 << 20

// headerRoom is how many bytes the file reserves for the header, except Options.Server
// and Options.Start: its content is known only at the end.
const headerRoom = 512

// ErrSlow is the error of a recording that stopped because its lines could not be
// written fast enough.
var ErrSlow = errors.New("lines come faster than they can be written")

// Options define how a session is recorded.
type Options struct {
	// IDPrefix is the prefix of the ids of the relay's own requests.
	IDPrefix string
	// Server is the name of the server in the header.
	Server string
	// Start has the flags and variables with which the session was started, for the header.
	Start map[string]string
	// Secrets must not reach the file.
	Secrets Secrets
	// Failed, if not nil, is called once, on another goroutine, when the file cannot be
	// written any more. Nothing more is recorded then.
	Failed func(error)
}

// A Recorder writes the lines of a session to a file. Watch never blocks on the
// file, and errors of the file do not affect the session.
type Recorder struct {
	o     Options
	w     io.Writer
	scrub *Scrubber
	start time.Time
	limit int // how many bytes may be queued
	done  chan struct{}

	// mu guards the fields up to stopped. It is never held while the file is written.
	mu      sync.Mutex
	wake    sync.Cond
	pending []Event
	bytes   int // of pending
	closed  bool
	stopped error

	room   int    // size of the header in the file, with spaces
	header Header // used by the goroutine of run only
}

// NewRecorder returns a Recorder that writes to w. If w is an io.WriterAt, the
// header is completed at the end: it names what was scrubbed, and the era.
func NewRecorder(w io.Writer, o Options) *Recorder { return newRecorder(w, o, maxPending) }

func newRecorder(w io.Writer, o Options, limit int) *Recorder {
	r := &Recorder{
		o: o, w: w, scrub: NewScrubber(o.Secrets), start: time.Now(), limit: limit, done: make(chan struct{}), room: headerRoom,
		header: Header{Version: Version, IDPrefix: o.IDPrefix, Start: map[string]string{}, Scrubbed: []string{}},
	}
	r.wake.L = &r.mu
	r.header.Server = string(r.scrub.Line([]byte(o.Server)))
	r.room += 6 * len(o.Server) // JSON may escape each byte
	for name, value := range o.Start {
		r.header.Start[name] = string(r.scrub.Line([]byte(value)))
		r.room += len(name) + 6*len(value)
	}
	go r.run()
	return r
}

// Watch records a line that passed at one of the places. It copies line. A nil line
// means one that was too long to be held.
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

// Close writes the queued lines, completes the header, and returns the error that
// stopped the recording, if any. It does not close the file.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.closed = true
	r.wake.Signal()
	r.mu.Unlock()
	<-r.done
	return r.failure()
}

// run writes lines until the recording is closed or cannot go on.
func (r *Recorder) run() {
	defer close(r.done)
	started := false
	for more := true; more; {
		var events []Event
		events, more = r.next()
		if len(events) == 0 {
			continue
		}
		lines := r.lines(events)
		// A session without lines leaves an empty file.
		if !started {
			started = true
			lines = append(r.headerLine(allNames), lines...)
		}
		r.write(lines)
	}
	if started {
		r.completeHeader()
	}
	if err := r.failure(); err != nil && r.o.Failed != nil {
		r.o.Failed(err)
	}
}

// lines returns the events as scrubbed lines of the file.
func (r *Recorder) lines(events []Event) []byte {
	var out []byte
	for _, e := range events {
		r.detectEra(e)
		if e.Line != nil {
			e.Line = r.scrub.Line(e.Line)
		}
		out = e.append(out)
	}
	return out
}

// next waits for events and returns them. more is false if none will follow.
func (r *Recorder) next() (events []Event, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.pending) == 0 && !r.closed && r.stopped == nil {
		r.wake.Wait()
	}
	// The caller keeps the slice, and Watch appends to a new one meanwhile.
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
	r.stopped = cmp.Or(r.stopped, err)
}

// write writes b unless a write has failed before.
func (r *Recorder) write(b []byte) {
	// After ErrSlow, the lines that were queued before are still written.
	if err := r.failure(); err == nil || errors.Is(err, ErrSlow) {
		_, err := r.w.Write(b)
		r.stop(err)
	}
}

// detectEra sets the era of the header if a line of the client shows it.
func (r *Recorder) detectEra(e Event) {
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
	// A client of both eras sends server/discover first, and may then send initialize.
	switch _, versioned := m.Params.Meta["io.modelcontextprotocol/protocolVersion"]; {
	case m.Method == "initialize":
		r.header.Era = "legacy"
	case versioned, m.Method == "server/discover":
		r.header.Era = "modern"
	}
}

// headerLine returns the header, padded so that it can be replaced later. The first
// one names everything that may be scrubbed.
func (r *Recorder) headerLine(scrubbed []string) []byte {
	r.header.Scrubbed = scrubbed
	b, err := json.Marshal(r.header)
	if err != nil || len(b) >= r.room {
		return append(b, '\n')
	}
	return append(append(b, bytes.Repeat([]byte{' '}, r.room-1-len(b))...), '\n')
}

// completeHeader replaces the first header by the final one.
func (r *Recorder) completeHeader() {
	at, ok := r.w.(io.WriterAt)
	if !ok {
		return
	}
	if line := r.headerLine(r.scrub.Found()); len(line) == r.room { // a longer one would overwrite lines
		if _, err := at.WriteAt(line, 0); err != nil && !errors.Is(err, syscall.ESPIPE) { // a pipe keeps the first header
			r.stop(fmt.Errorf("the header could not be completed: %w", err))
		}
	}
}
