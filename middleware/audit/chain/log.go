package chain

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/sessionstate/filelock"
)

// Options configure a log.
type Options struct {
	// File is created with the first record, mode 0600. Its directory must exist.
	File string
	// MaxSize is the size at which the file is renamed and the next one created, in
	// bytes; 0 means never.
	MaxSize int64
	// Linger is how long a record waits for others to be written with it; 0 means
	// DefaultLinger. A record passed to [Log.Commit] does not wait.
	Linger time.Duration
	// Queue bounds the waiting records, in bytes; 0 means 16 MiB.
	Queue int
	// Retry is the pause after the file could not be written; 0 means one second.
	Retry time.Duration
	// Head, if not nil, is called with the last line of the file after records were written.
	// The goroutine that writes calls it, so it must not block.
	Head func(Head)
	// Now is the clock for the records of this package; nil means time.Now.
	Now func() time.Time
	// Log receives one error when the file cannot be written, and a message when it can be
	// written again; nil discards them.
	Log *slog.Logger
}

const (
	// DefaultLinger also bounds the time whose records are lost if the process is killed.
	DefaultLinger = 50 * time.Millisecond
	defaultQueue  = 16 << 20
	defaultRetry  = time.Second
)

var (
	errNoRoom = fmt.Errorf("%w: there is no room for it", ErrLost)
	errClosed = fmt.Errorf("%w: the log is closed", ErrLost)
	errBody   = fmt.Errorf("%w: it is not a JSON object on one line with at least one member", ErrLost)
)

// A Log writes records to a file, in a goroutine that starts with the first record. Its
// methods are safe for concurrent use.
type Log struct {
	o    Options
	file file // used by the goroutine only

	// mu guards the fields up to key.
	mu      sync.Mutex
	queue   []item
	queued  int // bytes of the records in the queue
	bytes   int // bytes of all waiting records, including those being written
	waiting int // the number of these records
	lost    int // dropped records without a gap record
	gaps    int // dropped records with a gap record, which is in the file or being written
	started bool
	closed  bool
	key     []byte

	wake   chan struct{} // a record waits
	urgent chan struct{} // a record waits, and must be written without delay
	done   chan struct{} // closed when the goroutine has ended

	// Used by the goroutine only:
	unwritten []item // records of the last, failed write
	failed    bool   // whether the last write failed
}

// New returns a log. It opens no file before the first record.
func New(o Options) *Log {
	o.Linger, o.Queue, o.Retry = cmp.Or(o.Linger, DefaultLinger), cmp.Or(o.Queue, defaultQueue), cmp.Or(o.Retry, defaultRetry)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Log{
		o:      o,
		file:   file{path: o.File, maxSize: o.MaxSize, now: o.Now, lock: lock{path: keyFile(o.File)}, write: (*os.File).Write},
		wake:   make(chan struct{}, 1),
		urgent: make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
}

// Append queues a copy of a record: a JSON object on one line, with at least one member, but
// without seq and prev. It never blocks: if the queue is full, the record is dropped, and a gap
// record will contain the number of dropped records. A record that is not such an object is
// dropped too.
func (l *Log) Append(body []byte) { l.add(body, nil) }

// Commit writes a record without delay. If that fails, it is not tried again, because the
// caller then refuses the recorded call.
func (l *Log) Commit(body []byte) *Receipt {
	receipt := &Receipt{done: make(chan struct{})}
	l.add(body, receipt)
	return receipt
}

func (l *Log) add(body []byte, receipt *Receipt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusalLocked(body); err != nil {
		l.lost++
		receipt.settle(err)
		return
	}
	if !l.started {
		l.started = true
		go l.run()
	}
	l.queue = append(l.queue, item{body: bytes.Clone(body), receipt: receipt})
	l.queued += len(body)
	l.bytes += len(body)
	l.waiting++
	if receipt != nil || l.queued > maxWrite {
		signal(l.urgent)
	} else if len(l.queue) == 1 {
		signal(l.wake)
	}
}

// refusalLocked returns the reason why a record cannot be queued, nil if it can.
func (l *Log) refusalLocked(body []byte) error {
	switch {
	case l.closed:
		return errClosed
	case !isRecord(body):
		return errBody
	case l.bytes+len(body) > l.o.Queue || lineLen(len(body)) > MaxLine:
		return errNoRoom
	}
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Key returns the secret key of this log for digests of values: without it nobody can guess
// a value. It is kept beside the file. If that fails, the key is for this process only; the
// log cannot be written then either.
func (l *Log) Key() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.key == nil {
		key, err := makeKey(l.o.File)
		if err != nil {
			l.o.Log.Warn("the key of the audit log could not be stored; its digests can only be compared within this process", "err", err)
			key = newKey()
		}
		l.key = key
	}
	return l.key
}

// Close writes the waiting records, and waits for that for at most grace. The error contains
// the number of records that are not in the file.
func (l *Log) Close(grace time.Duration) error {
	l.mu.Lock()
	l.closed = true
	started := l.started
	l.mu.Unlock()
	if started {
		signal(l.urgent)
		select {
		case <-l.done:
		case <-time.After(grace):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// A gap record only says how many records are missing, so gaps count too.
	if n := l.lost + l.gaps + l.waiting; n > 0 {
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
			wake = nil // new records wait for the retry
		}
		select {
		case <-wake: // more records may follow
			select {
			case <-time.After(l.o.Linger):
			case <-l.urgent:
			}
		// A call waits for this record, so it is tried at once, also after a failed write.
		case <-l.urgent:
		case <-retry:
		}
		retry = nil
		if closed := l.flush(); closed {
			l.file.close()
			l.file.lock.close()
			return
		}
		if l.failed {
			retry = time.After(l.o.Retry)
		}
	}
}

// flush tries to write all waiting records. It reports whether the log is closed, so that
// no more records can follow.
func (l *Log) flush() (closed bool) {
	work, closed := l.take()
	if len(work) == 0 {
		return closed
	}
	written, err := l.file.append(work)
	l.settle(work, written, err)
	if written > 0 && l.o.Head != nil {
		l.o.Head(l.file.head())
	}
	for _, w := range l.file.warnings {
		l.o.Log.Warn(w.text, "file", l.o.File, w.key, w.value)
	}
	l.file.warnings = nil
	switch {
	case err != nil && !l.failed:
		l.failed = true
		l.o.Log.Error("calls cannot be audited: "+remedy(err), "file", l.o.File, "err", err)
	case err == nil && l.failed:
		l.failed = false
		l.o.Log.Info("the audit file can be written again", "file", l.o.File)
	}
	return closed
}

// remedy returns what the user can do about a write error.
func remedy(err error) string {
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return "another process keeps the audit file locked: end it, or name another file"
	case errors.Is(err, fs.ErrNotExist):
		return "make the directory of the audit file, or name another file"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "get permission to write the audit file, or name another"
	}
	return "make room for the audit file, or name another"
}

// take returns the records to write: those of the last, failed write, the queue and, if records
// were lost, a gap record. That is last: nearly all records are lost because the queue is full, so they
// come after those in the queue.
func (l *Log) take() (work []item, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	work = append(l.unwritten, l.queue...)
	l.unwritten, l.queue, l.queued = nil, nil, 0
	if l.lost > 0 {
		gap := l.file.note(note{Kind: kindGap, Records: l.lost, Why: "they could not be written"})
		work = append(work, item{body: gap, lost: l.lost})
		l.gaps += l.lost
		l.lost = 0
	}
	return work, l.closed
}

// settle settles the receipts of work, of which the first written records are in the file; err
// is the reason why the others are not. It keeps those without a receipt for the next write. A gap
// record is made again, with the records that are lost until then, so that there is at most one.
func (l *Log) settle(work []item, written int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, it := range work {
		switch {
		case it.lost > 0:
			if i >= written {
				l.lost, l.gaps = l.lost+it.lost, l.gaps-it.lost
			}
			continue
		case i < written:
			it.receipt.settle(nil)
		case it.receipt == nil:
			l.unwritten = append(l.unwritten, it)
			continue // it is still counted as waiting
		default:
			it.receipt.settle(fmt.Errorf("%w: %w", ErrLost, err))
		}
		l.bytes -= len(it.body)
		l.waiting--
	}
}
