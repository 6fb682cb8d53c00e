package chain

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A file is a log as this process last saw it. Between two calls of append, other
// processes may have written any number of lines. It is for one goroutine.
type file struct {
	path    string
	maxSize int64 // 0 for none
	now     func() time.Time
	write   func(*os.File, []byte) (int, error)

	lock    lock
	f       *os.File    // nil while none is open
	info    os.FileInfo // which file f is
	size    int64       // how much of it is known
	tip     tip         // of its last line
	begun   Digest      // of its first line; zero if that was not needed yet
	retryAt int64       // the size at which to try again to rename it

	room []byte // the buffer for lines

	// What to write before anything else:
	first   []byte   // the body of a record; nil for none
	newline bool     // before that, the newline that the last line lacks
	partial *Partial // the incomplete line that first describes

	// lost is why records that were written are no longer there; "" after that was
	// logged.
	lost string
}

// errFile returns an error about the file itself.
func errFile(what string, err error) error { return fmt.Errorf("the audit file %s: %w", what, err) }

// append writes the records, each as one line, and returns how many of them are in
// the file.
func (w *file) append(work []item) (written int, err error) {
	if err := w.lock.take(); err != nil {
		return 0, errFile("is not ours to write", err)
	}
	defer w.lock.release()
	if err := w.refresh(); err != nil {
		return 0, err
	}
	for written < len(work) {
		text, end, to := w.lines(work, written)
		if len(text) == 0 {
			if err := w.rotate(); err != nil {
				return written, err
			}
			continue
		}
		if n, err := w.put(text, end); err != nil {
			return written + n, err
		}
		written = to
	}
	return written, nil
}

// maxWrite is about how many bytes are written at once. With so many records in the
// queue, none waits for more.
const maxWrite = 256 << 10

// lines returns the lines to write next: a record of the chain's own if there is one,
// and as many records of work from index from on as fit. to is the index behind them,
// and end the tip behind them. There are no lines if the file is full; an empty file
// always has room for one record.
func (w *file) lines(work []item, from int) (text []byte, end tip, to int) {
	text, end = w.room[:0], w.tip
	if w.newline {
		text = append(text, '\n')
	}
	if w.first != nil {
		text = end.next(text, w.first)
	}
	for to = from; to < len(work); to++ {
		body := work[to].body
		size := len(text) + lineLen(len(body))
		full := w.maxSize > 0 && w.size >= w.retryAt && w.size+int64(size) > w.maxSize
		if full && (to > from || w.size > 0) || to > from && size > maxWrite {
			break
		}
		text = end.next(text, body)
	}
	w.room = text
	return text, end, to
}

// refresh updates what is known of the file. The caller holds the lock.
func (w *file) refresh() error {
	info, err := os.Stat(w.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.create("")
	case err != nil:
		return errFile("could not be looked at", err)
	case w.f == nil || !os.SameFile(info, w.info):
		return w.open()
	case info.Size() > w.size:
		return w.read(info.Size())
	case info.Size() < w.size:
		return w.readEndOf(w.size, info.Size(), "the file was cut")
	}
	return nil
}

// open opens the file that is there. If it ends before what this process has seen or
// written, it is another file.
func (w *file) open() error {
	was := w.size
	w.close()
	f, info, err := openRegular(w.path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return errFile("could not be opened", err)
	}
	w.f, w.info = f, info
	return w.readEndOf(was, info.Size(), "the file was replaced by one that ends earlier")
}

func (w *file) close() {
	if w.f != nil {
		_ = w.f.Close()
	}
	w.f, w.info, w.size, w.retryAt, w.first, w.newline, w.partial, w.begun = nil, nil, 0, 0, nil, false, nil, Digest{}
}

// read learns where the chain in the open file ends.
func (w *file) read(size int64) error {
	e, err := readEnd(w.f, size)
	if err != nil {
		w.close()
		return errFile("cannot be gone on with", err)
	}
	w.size, w.first, w.newline, w.partial = size, nil, e.open, e.partial
	if e.tip.seq == 0 {
		w.begin("")
		return nil
	}
	w.tip = e.tip
	if e.partial != nil {
		w.first = w.note(note{Kind: kindRepaired, Partial: e.partial, Why: "a writer ended within a line"})
	}
	return nil
}

// readEndOf reads where the chain in the open file of size bytes ends. If that is before
// the known end, at was bytes, it writes a record that says why. The numbers continue,
// so that the missing records show.
func (w *file) readEndOf(was, size int64, why string) error {
	known := w.tip
	w.begun = Digest{}
	if err := w.read(size); err != nil {
		return err
	}
	if w.tip.seq >= known.seq {
		return nil // only an incomplete line is gone
	}
	if size > 0 {
		w.lost = why
		w.first = w.note(note{Kind: kindShortened, Was: was, Is: size, Partial: w.partial, Why: why})
	}
	w.tip.seq = max(w.tip.seq, known.seq)
	return nil
}

// create makes the file, as the one after another or as the first. after names the
// one before, "" if it has to be found.
func (w *file) create(after string) error {
	w.close()
	f, err := os.OpenFile(w.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return errFile("could not be made", err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return errFile("could not be made", err)
	}
	w.f, w.info = f, info
	w.begin(after)
	return nil
}

// begin makes the first line of an empty file the next one to be written. The chain
// continues from the last line that is known: this process's own, or that of the newest
// file before this one.
func (w *file) begin(after string) {
	w.begun = Digest{}
	if older, err := rotatedFiles(w.path); err == nil && len(older) > 0 {
		newest := older[len(older)-1]
		if e, err := endOf(newest); err == nil && e.tip.seq >= w.tip.seq {
			w.tip, after = e.tip, filepath.Base(newest)
		}
	}
	n := note{Kind: kindBegin, Version: Version, ID: rand.Text(), After: after, Partial: w.partial}
	if w.tip.seq > 0 && after == "" {
		n.Why = "the file that was written before is gone"
		w.lost = n.Why
	}
	w.first = w.note(n)
}

func (w *file) note(n note) []byte {
	n.Time = w.now().UTC().Format(timeFormat)
	return n.body()
}

// timeFormat is RFC 3339 with milliseconds, always of the same length.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// rotate renames the file and begins the next. If that fails (on Windows, while another
// process has the file open) the file grows for a while, and then rotate tries again.
func (w *file) rotate() error {
	name := rotatedName(w.path, w.tip.seq)
	_, err := os.Lstat(name)
	if err == nil {
		err = fs.ErrExist
	} else if errors.Is(err, fs.ErrNotExist) {
		_ = w.f.Close() // Windows renames no open file
		w.f = nil
		err = os.Rename(w.path, name)
	}
	if err == nil {
		return w.create(filepath.Base(name))
	}
	if w.f == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	w.retryAt = w.size + w.maxSize/4 + 1
	return nil
}

// put appends lines; end is the tip behind them. If it fails it returns how many of
// their records are in the file.
func (w *file) put(text []byte, end tip) (written int, err error) {
	if n, err := w.write(w.f, text); err != nil {
		if n > 0 && w.f.Truncate(w.size) != nil {
			w.info = nil // the next look reads it again
			written = w.complete(text, n)
		}
		return written, errFile("could not be written", err)
	}
	w.size += int64(len(text))
	w.tip, w.first, w.newline, w.partial = end, nil, false, nil
	return 0, nil
}

// complete returns how many records are in the file if only n bytes of text were
// written and cannot be removed. A line that lacks only its newline counts (see
// readLast).
func (w *file) complete(text []byte, n int) int {
	lines := bytes.Count(text[:min(n+1, len(text))], []byte{'\n'})
	if w.newline {
		lines--
	}
	if w.first != nil {
		lines--
	}
	return max(lines, 0)
}
