package outbox

import (
	"slices"
	"sync"
	"time"
)

const (
	// resumeTime is how long a stream can be taken up again after its client has left it, or has read all of it:
	// a client that has lost its connection may notice that late.
	resumeTime = 2 * time.Minute
	// maxRecorded is how many streams a Recorder has. With one more, it forgets the oldest that is finished, or
	// else the oldest.
	maxRecorded = 8
)

// A Recorder has the streams of one session that its client can take up again. The zero value is ready to use.
type Recorder struct {
	// mu guards all, and reader and left of each. The mutex of a Stream may be locked while it is held, not the other
	// way round.
	mu  sync.Mutex
	all []*recordedStream // the newest last
}

// A recordedStream is a stream of the Recorder.
type recordedStream struct {
	t      *Stream
	record *Record
	reader *Reader     // nil while nobody reads the stream
	left   *time.Timer // forgets the stream; nil until a reader has left it
}

// finished reports whether nobody reads the stream and nothing more will be written to it. Usually its client has
// received everything.
func (r *recordedStream) finished() bool {
	over, abandoned := r.t.Progress()
	return r.reader == nil && (over || abandoned)
}

// A Reader is the right to read a recorded stream. A stream has one Reader at a time.
type Reader struct {
	*Record
	Stream *Stream

	of        *Recorder
	r         *recordedStream
	interrupt func()
	replaced  chan struct{} // closed when another one wants to read
	done      chan struct{} // closed by Leave
}

// Record begins to record what a reader of t writes for the request with a raw id. interrupt makes a write of the
// reader fail: it is called when another one wants to read, but not after Leave. Record returns nil if the stream
// cannot be recorded.
func (o *Recorder) Record(t *Stream, request []byte, interrupt func()) *Reader {
	record := newRecord(request)
	if record == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) >= maxRecorded {
		finished := slices.IndexFunc(o.all, (*recordedStream).finished)
		o.forgetLocked(o.all[max(finished, 0)])
	}
	r := &recordedStream{t: t, record: record}
	o.all = append(o.all, r)
	return o.readLocked(r, interrupt)
}

// TakeUp returns a Reader for the stream that has an event with this id, nil if there is none. It is like Record
// otherwise. If the stream has a reader, the client has lost the connection and the reader does not know it yet:
// TakeUp waits until it has left.
func (o *Recorder) TakeUp(id string, interrupt func()) *Reader {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		// In each turn, because the stream may have been forgotten, or taken up by another reader, while this one waited.
		i := slices.IndexFunc(o.all, func(r *recordedStream) bool { return r.record.has(id) })
		if i < 0 {
			return nil
		}
		r := o.all[i]
		old := r.reader
		if old == nil {
			r.left.Stop()
			r.t.unpark()
			return o.readLocked(r, interrupt)
		}
		select {
		case <-old.replaced:
		default:
			// replaced is closed first: a writer that sets its deadline after the interrupt looks at replaced before it writes.
			close(old.replaced)
			old.interrupt()
		}
		o.mu.Unlock()
		<-old.done
		o.mu.Lock()
	}
}

// readLocked gives r a new reader. The caller holds mu.
func (o *Recorder) readLocked(r *recordedStream, interrupt func()) *Reader {
	r.reader = &Reader{
		Record: r.record, Stream: r.t, of: o, r: r,
		interrupt: interrupt, replaced: make(chan struct{}), done: make(chan struct{}),
	}
	return r.reader
}

// Replaced returns a channel that is closed when another one wants to read.
func (q *Reader) Replaced() <-chan struct{} {
	if q == nil {
		return nil
	}
	return q.replaced
}

// IsReplaced reports whether another one wants to read.
func (q *Reader) IsReplaced() bool {
	select {
	case <-q.Replaced():
		return true
	default:
		return false
	}
}

// NeedsID reports whether the client has not been sent an id yet. Without an id it cannot take up the stream again.
// It returns false for a nil Reader, whose stream is not recorded.
func (q *Reader) NeedsID() bool { return q != nil && q.n == 0 && !q.begun }

// Leave ends the reading. whole says that the client can take up the stream again: the last message was written, or
// recorded, as a whole.
func (q *Reader) Leave(whole bool) {
	o, r := q.of, q.r
	o.mu.Lock()
	defer o.mu.Unlock()
	r.reader = nil
	close(q.done) // TakeUp, which may wait for it, goes on when mu is free
	if !whole || !slices.Contains(o.all, r) {
		o.forgetLocked(r)
		return
	}
	r.t.park()
	r.left = time.AfterFunc(resumeTime, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if r.reader == nil { // TakeUp may have come first, and then Stop was too late
			o.forgetLocked(r)
		}
	})
}

// Forget removes all streams that were recorded so far. Clients cannot take them up again.
func (o *Recorder) Forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.all) > 0 {
		o.forgetLocked(o.all[0])
	}
}

// forgetLocked removes r. Its stream is abandoned when nobody reads it any more. The caller holds mu.
func (o *Recorder) forgetLocked(r *recordedStream) {
	// r is not in all if its stream was forgotten while it was read, and Leave comes now.
	o.all = slices.DeleteFunc(o.all, func(other *recordedStream) bool { return other == r })
	if r.left != nil {
		r.left.Stop()
	}
	if r.reader == nil {
		r.t.Abandon()
	}
}
