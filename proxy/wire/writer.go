package wire

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// A Writer is the only thing that writes to a peer. It keeps lines whole: one caller writes a line, and
// lines of attache's own wait until that line has ended. If a line lacks its newline, as the last line of
// a stream may, the Writer writes the newline before the next line.
//
// The Writer gathers small lines until Flush. The pump calls Flush as soon as its reader holds no further
// line, so that dense traffic needs fewer writes and no line is delayed.
type Writer struct {
	mu    sync.Mutex // held while writing to dst, which may block for as long as the peer likes
	dst   io.Writer
	taker MessageTaker       // dst, if it is one; else nil
	try   TryWriter          // dst, if it is one; else nil
	buf   []byte             // lines not written yet; empty while open
	lent  *[smallBuffer]byte // the memory of buf, nil while no line waits
	open  bool               // Chunk has begun a line and not ended it
	noEnd bool               // the last line ended without a newline
	err   error

	qmu      sync.Mutex // guards the fields below; never held while writing
	queue    []queuedLine
	waiting  atomic.Bool // queue is not empty; read without the lock
	closed   atomic.Bool // nothing more is written
	draining bool        // a goroutine is on its way to take the queue
}

type queuedLine struct {
	line []byte
	sent func(error)
}

// gather is how many bytes of small lines are kept until Flush. A longer line is written
// without a copy.
const gather = 32 << 10

// A MessageTaker takes messages with the results of their scan. A Writer offers it each message before
// which nothing waits. It writes other messages, chunks, and lines of attache's own.
type MessageTaker interface {
	// Take takes a message, whose bytes are the caller's again on return. It reports false,
	// and has done nothing, if the line is to be written instead.
	Take(m *Message) bool
}

// A TryWriter can write without waiting for its reader.
type TryWriter interface {
	// TryWrite writes all of b, or nothing if that would have to wait. Its error is
	// that of Write.
	TryWrite(b []byte) (written bool, err error)
}

// NewWriter returns a Writer on dst, which may be a [MessageTaker].
func NewWriter(dst io.Writer) *Writer {
	taker, _ := dst.(MessageTaker)
	try, _ := dst.(TryWriter)
	return &Writer{dst: dst, taker: taker, try: try}
}

// Write takes a message's line. It may be kept until Flush; its bytes are the caller's again on
// return. The error is that of the first write that failed, which ends the Writer.
//
// Lines that were queued before go before it.
func (w *Writer) Write(m *Message) error {
	w.mu.Lock()
	var sent []queuedLine
	if w.waiting.Load() {
		sent = w.takeQueue()
	}
	queued := w.err // of the lines in sent, not of m
	err := w.message(m)
	w.mu.Unlock()
	settle(sent, queued)
	return err
}

func (w *Writer) message(m *Message) error {
	if w.taker != nil && len(m.line) > 0 {
		// The taker must get its messages in order, so nothing may be kept before this one.
		if w.endLine(); len(w.buf) == 0 && w.err == nil && !w.closed.Load() && w.taker.Take(m) {
			return nil
		}
	}
	return w.line(m.line)
}

func (w *Writer) line(b []byte) error {
	if len(b) == 0 {
		return w.err
	}
	w.endLine()
	w.noEnd = b[len(b)-1] != '\n'
	if len(w.buf)+len(b) > gather {
		w.flush() // so buf never grows out of the memory that is lent
	}
	if len(b) > gather {
		w.write(b)
		return w.err
	}
	if w.lent == nil {
		w.lent = smallBuffers.Get().(*[smallBuffer]byte)
		w.buf = w.lent[:0]
	}
	w.buf = append(w.buf, b...)
	return w.err
}

// endLine writes the newline that the last line came without.
func (w *Writer) endLine() {
	if w.noEnd {
		w.noEnd = false
		w.line([]byte{'\n'})
	}
}

// Chunk writes a part of a line at once; more says that the line goes on. The
// last part may be empty.
func (w *Writer) Chunk(b []byte, more bool) error {
	w.mu.Lock()
	if !w.open {
		w.endLine()
	}
	w.flush()
	w.write(b)
	if len(b) > 0 { // the last part may be empty; then the one before it tells
		w.noEnd = b[len(b)-1] != '\n'
	}
	w.open = more
	sent := w.takeQueue()
	err := w.err
	w.mu.Unlock()
	settle(sent, err)
	return err
}

// Flush writes what was kept, and what was queued meanwhile.
func (w *Writer) Flush() error {
	w.mu.Lock()
	sent := w.takeQueue()
	w.flush()
	err := w.err
	w.mu.Unlock()
	settle(sent, err)
	return err
}

// TryFlush is Flush for a caller that must not wait for the peer. It reports false if
// something is left to be flushed.
func (w *Writer) TryFlush() bool {
	if !w.mu.TryLock() {
		return false
	}
	defer w.mu.Unlock()
	switch {
	// What is queued leaves with a Flush, which may block.
	case w.open || w.waiting.Load() || w.try == nil || w.closed.Load():
		return false
	case len(w.buf) == 0:
		return true
	case w.err == nil:
		var written bool
		if written, w.err = w.try.TryWrite(w.buf); !written && w.err == nil {
			return false
		}
	}
	w.release()
	return true
}

// Busy reports whether something is being written, or waits for that. The rest of a long line, which its
// sender has not brought yet, does not count.
func (w *Writer) Busy() bool {
	if !w.mu.TryLock() {
		return true
	}
	defer w.mu.Unlock()
	return w.waiting.Load() || len(w.buf) > 0
}

// Ready reports whether nobody is writing and nothing waits to be written, so that a line
// may be written at once by TryFlush.
func (w *Writer) Ready() bool {
	if w.try == nil || !w.mu.TryLock() {
		return false
	}
	defer w.mu.Unlock()
	return !w.open && !w.waiting.Load() && len(w.buf) == 0
}

// Close ends the Writer: lines that are kept or queued, and those of callers that wait for a write, are not
// written. Close does not wait for a write, and does not close the peer.
func (w *Writer) Close() { w.closed.Store(true) }

// Queue queues a line of attache's own and never blocks: the line is written with the next Flush, or by
// a goroutine of the Writer. Queue keeps line. When the line was written, or cannot be, sent is called
// with the error, on any goroutine; it may be nil. The caller bounds how much is queued.
func (w *Writer) Queue(line []byte, sent func(error)) {
	w.qmu.Lock()
	defer w.qmu.Unlock()
	w.queue = append(w.queue, queuedLine{line, sent})
	w.waiting.Store(true)
	if !w.draining {
		w.draining = true
		go w.drain()
	}
}

// drain writes the queue once no other goroutine writes. Queue starts another drain as soon as this one
// has the lock: what is queued from then on may come too late for it.
func (w *Writer) drain() {
	w.mu.Lock()
	w.qmu.Lock()
	w.draining = false
	w.qmu.Unlock()
	sent := w.takeQueue()
	err := w.err
	w.mu.Unlock()
	settle(sent, err)
}

// takeQueue writes the queued lines behind those kept, unless a line is open:
// then the Chunk that ends it does. It returns them for settle.
func (w *Writer) takeQueue() []queuedLine {
	if w.open {
		return nil
	}
	w.qmu.Lock()
	queue := w.queue
	w.queue = nil
	w.waiting.Store(false)
	w.qmu.Unlock()
	for _, q := range queue {
		w.line(q.line)
	}
	if len(queue) > 0 {
		w.flush()
	}
	return queue
}

// settle tells those who queued the lines that they were written, or why they were not. The caller holds
// no lock.
func settle(sent []queuedLine, err error) {
	for _, q := range sent {
		if q.sent != nil {
			q.sent(err)
		}
	}
}

func (w *Writer) flush() {
	if len(w.buf) == 0 {
		return
	}
	w.write(w.buf)
	w.release()
}

// release gives the buffer back.
func (w *Writer) release() {
	smallBuffers.Put(w.lent)
	w.lent, w.buf = nil, nil
}

func (w *Writer) write(b []byte) {
	if w.err == nil && w.closed.Load() {
		w.err = os.ErrClosed
	}
	if w.err != nil || len(b) == 0 {
		return
	}
	_, w.err = w.dst.Write(b)
}
