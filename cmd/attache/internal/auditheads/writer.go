package auditheads

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// DefaultEvery is how often a process stores the end of the file that it writes. If records are cut
// off before that, the loss is not detected.
const DefaultEvery = 5 * time.Minute

// Options are the options of [NewWriter].
type Options struct {
	Store *Store
	Place Place
	// Every is the pause between two heads; 0 means DefaultEvery.
	Every time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log receives problems; nil discards them.
	Log *slog.Logger
}

// PlaceOf returns the place of a file on this machine.
func PlaceOf(path string) Place {
	host, _ := os.Hostname()
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return Place{host, path}
}

// A Writer stores the end of an audit file: immediately after its first records and after a pause,
// otherwise every few minutes, and when it is closed. If the database is not available, it stores
// nothing; the file is written nevertheless.
type Writer struct {
	o     Options
	head  atomic.Pointer[chain.Head] // the head to store, or nil
	wake  chan struct{}              // there is a head
	end   chan struct{}              // closed by Close
	done  chan struct{}              // closed when the goroutine has ended
	begin sync.Once
	close sync.Once

	// Used only by the goroutine:
	ctx     context.Context // cancelled when Close returns
	cancel  context.CancelFunc
	missing chain.Head // the missing head that was logged
}

// NewWriter returns a writer. Its goroutine starts with the first head.
func NewWriter(o Options) *Writer {
	o.Every, o.Log = cmp.Or(o.Every, DefaultEvery), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Writer{o: o, wake: make(chan struct{}, 1), end: make(chan struct{}), done: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Note tells the writer to store a head. It does not block.
func (w *Writer) Note(h chain.Head) {
	if h.File == (chain.Digest{}) {
		return
	}
	w.head.Store(&h)
	w.begin.Do(func() { go w.run() })
	w.signal()
}

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Close stores the last head, and returns after at most the grace. Note must not be called after it.
func (w *Writer) Close(grace time.Duration) {
	w.begin.Do(func() { close(w.done) })
	w.close.Do(func() { close(w.end) })
	select {
	case <-w.done:
	case <-time.After(grace): // the goroutine may be reading a large file
	}
	w.cancel()
}

func (w *Writer) run() {
	defer close(w.done)
	defer w.note()
	for {
		select {
		case <-w.wake:
		case <-w.end:
			return
		}
		w.note()
		select {
		case <-time.After(w.o.Every):
		case <-w.end:
			return
		}
	}
}

// note stores w.head. If that fails, w.head is stored later, or replaced by a newer one.
func (w *Writer) note() {
	h := w.head.Load()
	if h == nil {
		return
	}
	if err := w.store(*h); err != nil {
		w.o.Log.Debug("the end of the audit file was not noted in the shared database; it is tried again", "file", w.o.Place.Path, "err", err)
		w.signal()
		return
	}
	w.head.CompareAndSwap(h, nil)
}

// attempts is how often a writer tries to store a head while other processes store theirs. Processes
// that end at the same time all store a head of their common file.
const attempts = 4

func (w *Writer) store(h chain.Head) (err error) {
	for range attempts {
		if err = w.tryStore(h); !errors.Is(err, errRace) {
			return err
		}
	}
	return err
}

// tryStore stores a head. It replaces the head that this process or another one stored in this hour
// only if the file still contains it. Otherwise the old head is the evidence of the missing records.
func (w *Writer) tryStore(h chain.Head) error {
	now := w.o.Now().UTC()
	before, err := w.o.Store.ofHour(w.ctx, h.File, hourOf(now))
	if err != nil {
		return err
	}
	if before != nil {
		found, err := w.has(before.Head)
		if err != nil {
			return err
		}
		if !found {
			w.logMissing(before)
			return nil
		}
		if before.Seq >= h.Seq {
			return nil
		}
	}
	return w.o.Store.put(w.ctx, Entry{h, w.o.Place, now}, before)
}

// logMissing logs, once, that the file lacks a record whose head was stored.
func (w *Writer) logMissing(n *Entry) {
	if w.missing == n.Head {
		return
	}
	w.missing = n.Head
	w.o.Log.Error("the audit file lacks a record that it had: run attache audit verify on it", "file", w.o.Place.Path, "record", n.Seq, "noted", n.At)
}

// has reports whether the file, or an older one that was renamed, contains the line of a head.
func (w *Writer) has(h chain.Head) (bool, error) {
	s, err := chain.Open(w.o.Place.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.Close()
	return s.Has(h)
}
