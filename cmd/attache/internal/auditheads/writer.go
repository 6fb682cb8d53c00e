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

// DefaultEvery is how often a process notes the end of a file that it writes. What is cut off
// before it is noted is not found.
const DefaultEvery = 5 * time.Minute

// Options are the options of [NewWriter].
type Options struct {
	Store *Store
	Place Place
	// Every is the pause between two heads; 0 stands for DefaultEvery.
	Every time.Duration
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
	// Log takes what is worth telling; nil discards it.
	Log *slog.Logger
}

// PlaceOf returns the place of a file of this machine.
func PlaceOf(path string) Place {
	host, _ := os.Hostname()
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return Place{host, path}
}

// A Writer notes the end of an audit file: of its first records, and of those after a quiet time, at
// once, else every few minutes, and when it is closed. While the database is away it notes nothing, and the file goes on.
type Writer struct {
	o     Options
	head  atomic.Pointer[chain.Head] // nil for none that is to be noted
	wake  chan struct{}              // there is a head
	end   chan struct{}              // closed by Close
	done  chan struct{}              // closed when the goroutine has ended
	begin sync.Once
	close sync.Once

	// The goroutine's:
	ctx     context.Context // ends when Close waits no longer
	cancel  context.CancelFunc
	missing chain.Head // that the file lacks, which was logged
}

// NewWriter returns a writer. It starts with the first head.
func NewWriter(o Options) *Writer {
	o.Every, o.Log = cmp.Or(o.Every, DefaultEvery), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Writer{o: o, wake: make(chan struct{}, 1), end: make(chan struct{}), done: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Note asks the writer to note a head. It does not block.
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

// Close notes the last head, and returns when that is done or the grace is over. No head may
// follow.
func (w *Writer) Close(grace time.Duration) {
	w.begin.Do(func() { close(w.done) })
	w.close.Do(func() { close(w.end) })
	select {
	case <-w.done:
	case <-time.After(grace): // it may be reading a large file
	}
	w.cancel()
}

func (w *Writer) run() {
	defer close(w.done)
	for {
		select {
		case <-w.wake:
		case <-w.end:
			w.note()
			return
		}
		w.note()
		select {
		case <-time.After(w.o.Every):
		case <-w.end:
			w.note()
			return
		}
	}
}

// note notes the head that is to be noted. If it cannot be, it is noted with the next one, or at
// the end.
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

// tries is how often a head is put while other processes put theirs. Those that end together
// note the end of one file, and only the last one of that has all.
const tries = 4

// store notes a head.
func (w *Writer) store(h chain.Head) (err error) {
	for range tries {
		if err = w.try(h); !errors.Is(err, errRace) {
			return err
		}
	}
	return err
}

// try notes a head in place of the one that was noted in this hour, by this process or another,
// only if the file has that: else the one that was noted shows what is missing.
func (w *Writer) try(h chain.Head) error {
	now := w.o.Now().UTC()
	before, err := w.o.Store.ofHour(w.ctx, h.File, hourOf(now))
	if err != nil {
		return err
	}
	if before != nil {
		there, err := w.has(before.Head)
		if err != nil {
			return err
		}
		if !there {
			w.tell(before)
			return nil
		}
		if before.Seq >= h.Seq {
			return nil
		}
	}
	return w.o.Store.put(w.ctx, Entry{h, w.o.Place, now}, before)
}

// tell logs, once, that the file lacks a record that was noted.
func (w *Writer) tell(n *Entry) {
	if w.missing == n.Head {
		return
	}
	w.missing = n.Head
	w.o.Log.Error("the audit file lacks a record that it had: run attache audit verify on it", "file", w.o.Place.Path, "record", n.Seq, "noted", n.At)
}

// has reports whether the file, or one that was renamed before it, has the line of a head.
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
