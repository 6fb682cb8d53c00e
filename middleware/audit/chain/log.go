package chain

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Options say where a log is kept and how.
type Options struct {
	// File is where. It is made with the first record, mode 0600; its directory
	// must be there.
	File string
	// MaxSize is how large the file may become, in bytes, before it is renamed and
	// the next one begun; 0 stands for any size.
	MaxSize int64
	// Linger is how long a record may wait for others to be written with it; 0
	// stands for DefaultLinger. What is awaited (see [Log.Commit]) does not linger.
	Linger time.Duration
	// Queue is how many bytes of records may wait; 0 stands for 16 MiB.
	Queue int
	// Retry is how long a file that cannot be written is left alone; 0 stands for a
	// second.
	Retry time.Duration
	// Now is the clock of the chain's own records; nil stands for time.Now.
	Now func() time.Time
	// Log takes a warning when the file cannot be written, once until it can again;
	// nil discards it.
	Log *slog.Logger
}

const (
	// DefaultLinger is also how much of a log is lost, in time, with a process that
	// is killed.
	DefaultLinger = 50 * time.Millisecond
	defaultQueue  = 16 << 20
	defaultRetry  = time.Second
)

// ErrLost is the error of a record that is not in the file and will not be.
var ErrLost = errors.New("the record could not be written")

// A Log writes records to a file, on a goroutine of its own that is started with
// the first of them. Its methods may be used by several goroutines.
type Log struct {
	o    Options
	file file

	mu      sync.Mutex
	queue   queue
	spare   queue // empty: the room of one that was written
	bytes   int   // of what waits, that which the goroutine has taken included
	waiting int   // how many records that is
	lost    int   // records there was no room for, and the file does not say so yet
	told    int   // and those of which it does, or will
	started bool
	closed  bool
	key     []byte

	wake   chan struct{} // something waits
	urgent chan struct{} // and somebody waits for it, or for the end
	done   chan struct{} // closed when the goroutine is over

	// Of the goroutine:
	stuck  queue // what could not be written so far
	ready  batch // empty: room to write records out in
	failed bool  // and was told
}

// A Text is a record that is written out when it is about to go to the file, so that
// whoever has it recorded does not wait for that.
type Text interface {
	// AppendTo appends the record: a JSON object with at least one member, none of
	// them seq or prev. It is called at most once, on the log's goroutine.
	AppendTo(dst []byte) []byte
}

// A queue holds records, one behind the other.
type queue struct {
	buf   []byte // the bodies of those that are written out
	items []item
	size  int // what they count as together
}

// An item is one record of a queue.
type item struct {
	end     int      // of its body in buf
	text    Text     // if it is not written out, and its body empty
	size    int      // what it counts as, in bytes
	receipt *Receipt // nil where nobody waits
}

func (q *queue) add(body []byte, it item) {
	q.buf = append(q.buf, body...)
	it.end = len(q.buf)
	q.items = append(q.items, it)
	q.size += it.size
}

// body returns the body of record i.
func (q *queue) body(i int) []byte {
	from := 0
	if i > 0 {
		from = q.items[i-1].end
	}
	return q.buf[from:q.items[i].end]
}

// empty takes all records out and keeps the room for others.
func (q *queue) empty() {
	clear(q.items)
	q.buf, q.items, q.size = q.buf[:0], q.items[:0], 0
}

// emptied returns the room of a queue that is over, unless it has grown large.
func (q *queue) emptied() queue {
	if cap(q.buf) > keepRoom || cap(q.items) > keepItems {
		return queue{}
	}
	q.empty()
	return *q
}

const (
	// keepRoom is how large a buffer is kept for the next records.
	keepRoom = 1 << 20
	// keepItems is how many of them there is then room for.
	keepItems = 4 << 10
)

// A Receipt says what became of one record.
type Receipt struct {
	done chan struct{}
	err  error
}

// Done is closed when the record is in the file, or never will be.
func (r *Receipt) Done() <-chan struct{} { return r.done }

// Err returns nil if the record is in the file, and ErrLost, wrapped, with the
// reason, if not. It is called when Done is closed.
func (r *Receipt) Err() error { return r.err }

func (r *Receipt) settle(err error) {
	if r != nil {
		r.err = err
		close(r.done)
	}
}

// New returns a log. It touches nothing before the first record.
func New(o Options) *Log {
	if o.Linger <= 0 {
		o.Linger = DefaultLinger
	}
	if o.Queue <= 0 {
		o.Queue = defaultQueue
	}
	if o.Retry <= 0 {
		o.Retry = defaultRetry
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &Log{
		o:      o,
		wake:   make(chan struct{}, 1),
		urgent: make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
	l.file = file{path: o.File, maxSize: o.MaxSize, now: o.Now, lock: lock{path: keyFile(o.File)}, write: (*os.File).Write}
	return l
}

// Append has a record written soon. body is a JSON object with at least one
// member, none of them seq or prev; it is copied. Append never blocks: a record
// for which there is no room is counted, and the log will tell how many are
// missing.
func (l *Log) Append(body []byte) { l.add(body, item{size: len(body)}) }

// AppendText is Append for a record that is written out later. size is about how
// many bytes it takes until then; the record is the log's from here on.
func (l *Log) AppendText(t Text, size int) { l.add(nil, item{text: t, size: size}) }

// Commit has a record written as soon as can be. If it cannot be written it is not
// tried again: the record is of something that then does not happen.
func (l *Log) Commit(body []byte) *Receipt {
	r := &Receipt{done: make(chan struct{})}
	l.add(body, item{size: len(body), receipt: r})
	return r
}

func (l *Log) add(body []byte, it item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.bytes+it.size > l.o.Queue || lineLen(len(body)) > MaxLine {
		l.lost++
		if it.receipt != nil {
			it.receipt.settle(fmt.Errorf("%w: there is no room for it", ErrLost))
		}
		return
	}
	if !l.started {
		l.started = true
		go l.run()
	}
	l.queue.add(body, it)
	l.bytes += it.size
	l.waiting++
	if it.receipt != nil || l.queue.size > enough {
		signal(l.urgent)
	} else if len(l.queue.items) == 1 {
		signal(l.wake)
	}
}

// enough is how many bytes of records are worth a write without waiting for more.
const enough = 256 << 10

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Key returns the secret of this log, under which digests of values can be made
// that nobody can guess the value from who has not the key. It is kept beside the
// file. Where it cannot be, it holds for this process alone; the log will not be
// writable either, and says so.
func (l *Log) Key() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.key == nil {
		key, err := makeKey(l.o.File)
		if err != nil {
			l.o.Log.Warn("the key of the audit log could not be kept; its digests can be compared within this process alone", "err", err)
			key = make([]byte, keyLen)
			_, _ = rand.Read(key) // never fails: crypto/rand, Go 1.24
		}
		l.key = key
	}
	return l.key
}

// Close writes what waits, and returns when that is done or the grace is over. The
// error says how many records are not in the file.
func (l *Log) Close(grace time.Duration) error {
	l.mu.Lock()
	l.closed = true
	started := l.started
	l.mu.Unlock()
	if started {
		signal(l.urgent)
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-l.done:
		case <-t.C:
		}
	}
	return l.missing()
}

// missing returns an error if there are records that are not in the file.
func (l *Log) missing() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.lost + l.told + l.waiting; n > 0 {
		return fmt.Errorf("%d audit records are not in %s: %w", n, l.o.File, ErrLost)
	}
	return nil
}

// run writes until the log is closed.
func (l *Log) run() {
	defer close(l.done)
	var retry <-chan time.Time
	for {
		wake := l.wake
		if l.failed {
			wake = nil // what comes meanwhile waits for the next try
		}
		select {
		case <-wake:
			l.linger()
		case <-l.urgent:
		case <-retry:
		}
		retry = nil
		if closed := l.flush(); closed {
			l.end()
			return
		}
		if l.failed {
			retry = time.After(l.o.Retry)
		}
	}
}

// linger lets more records come.
func (l *Log) linger() {
	t := time.NewTimer(l.o.Linger)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.urgent:
	}
}

// flush tries to write all that waits. It reports whether the log is closed, and
// nothing will follow.
func (l *Log) flush() (closed bool) {
	work, closed := l.take()
	if len(work.items) == 0 {
		return closed
	}
	err := l.write(work)
	if l.file.lost != "" {
		l.o.Log.Warn("audit records that were written are missing: run attache audit verify on the file to see which", "file", l.o.File, "why", l.file.lost)
		l.file.lost = ""
	}
	switch {
	case err != nil && !l.failed:
		l.failed = true
		l.o.Log.Error("calls cannot be audited: "+remedy(err), "file", l.o.File, "err", err)
	case err == nil && l.failed:
		l.failed = false
		l.o.Log.Info("the audit file is written again", "file", l.o.File)
	}
	return closed
}

// remedy says what to do about an error of writing.
func remedy(err error) string {
	switch {
	case errors.Is(err, errHeld):
		return "another process keeps the audit file locked: end it, or name another file"
	case errors.Is(err, fs.ErrNotExist):
		return "make the directory of the audit file, or name another file"
	case errors.Is(err, fs.ErrPermission):
		return "have its owner let you write the audit file, or name another"
	}
	return "make room for the audit file, or name another"
}

// write writes records out and to the file, some at a time, so that what they are
// made in stays small. Behind one that cannot be written none is tried.
func (l *Log) write(work queue) (err error) {
	for next := 0; next < len(work.items); {
		var b batch
		b, next = l.writeOut(&work, next)
		n := 0
		if err == nil {
			n, err = l.file.append(&b)
		}
		l.settle(&b, n, err)
		l.ready = b.emptied()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = work.emptied()
	return err
}

// writeOut returns the records from the one at first on, as many as are enough for a
// write, all written out, and the index of the next one. A record that is too long for a line
// is lost.
func (l *Log) writeOut(work *queue, first int) (b batch, next int) {
	b = l.ready
	b.first = l.file.tip.seq + 1
	for next = first; next < len(work.items) && len(b.buf) < enough; next++ {
		it, buf := work.items[next], b.open()
		if it.text == nil {
			buf = append(buf, work.body(next)...)
		} else {
			buf = it.text.AppendTo(buf)
		}
		if !b.add(buf, it) {
			l.tooLong(it)
		}
	}
	return b, next
}

// tooLong counts a record as lost that waited to be written.
func (l *Log) tooLong(it item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost++
	l.waiting--
	l.bytes -= it.size
}

// take returns what is to be written: what could not be before, word of what was
// lost since, and what came. Whoever adds to the log does not wait for the disk.
func (l *Log) take() (work queue, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	work, l.stuck = l.stuck, queue{}
	if l.lost > 0 {
		gap := l.file.note(note{Kind: kindGap, Records: l.lost, Why: "they could not be written"})
		work.add(gap, item{size: len(gap)})
		l.bytes += len(gap)
		l.waiting++
		l.told += l.lost
		l.lost = 0
	}
	if len(work.items) == 0 {
		work, l.queue, l.spare = l.queue, l.spare, queue{}
		return work, l.closed
	}
	for i, it := range l.queue.items {
		work.add(l.queue.body(i), it)
	}
	l.queue.empty()
	return work, l.closed
}

// settle notes that the first n records of b are in the file, and err is why the
// others are not. What somebody waits for is then let go, the rest kept.
func (l *Log) settle(b *batch, n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range b.records {
		switch {
		case i < n:
			r.receipt.settle(nil)
		case r.receipt == nil:
			l.stuck.add(b.body(i), item{size: r.size})
			continue
		default:
			r.receipt.settle(fmt.Errorf("%w: %w", ErrLost, err))
		}
		l.bytes -= r.size
		l.waiting--
	}
}

// end closes the file.
func (l *Log) end() {
	l.file.close()
	l.file.lock.close()
}
