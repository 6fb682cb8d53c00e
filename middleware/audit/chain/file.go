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
	maxSize int64 // 0 means no limit
	now     func() time.Time
	write   func(*os.File, []byte) (int, error)

	lock      lock
	f         *os.File    // nil while no file is open
	info      os.FileInfo // identifies the file of f
	size      int64       // how many bytes of f this process has read or written
	tip       tip         // the end of the chain in these bytes
	firstLine Digest      // zero until it is needed
	retryAt   int64       // the size at which to try to rename the file again

	buffer []byte // for lines

	// To be written before other records:
	newline bool     // the last line lacks its newline
	first   []byte   // the body of a record, or nil
	partial *Partial // the incomplete line that first describes

	told bool // since the last rename it was logged that the file grows beyond its maximum size

	// warnings are logged only when append has released the lock and the receipts are settled: a handler
	// may block, and other processes wait for the lock and calls for their receipts.
	warnings []warning
}

// A warning is a line for the log, with one attribute.
type warning struct {
	text, key string
	value     any
}

// errFile returns an error about the file.
func errFile(what string, err error) error { return fmt.Errorf("the audit file %s: %w", what, err) }

// append writes the records, each as one line, and returns how many of them are in
// the file.
func (w *file) append(work []item) (written int, err error) {
	if err := w.lock.take(); err != nil {
		return 0, errFile("could not be locked", err)
	}
	defer w.lock.release()
	if err := w.refresh(); err != nil {
		return 0, err
	}
	for written < len(work) {
		text, end, to := w.lines(work, written)
		// The file is full. Either the next one is created, or the rename fails and the file may
		// grow, so the next turn has lines.
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

// maxWrite is the approximate number of bytes per write. When the queue has as many, it
// is written without delay.
const maxWrite = 256 << 10

// lines returns the lines to write next: w.first if it is set, and as many records of
// work[from:] as fit. The next record is work[to], and end is the tip after the lines.
// There are no lines if the file is full; an empty file always has room for one record.
func (w *file) lines(work []item, from int) (text []byte, end tip, to int) {
	text, end = w.buffer[:0], w.tip
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
	w.buffer = text
	return text, end, to
}

// refresh opens the file or reads its new lines, if necessary. The caller holds the lock.
func (w *file) refresh() error {
	info, err := os.Stat(w.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.create("")
	case err != nil:
		return errFile("could not be examined", err)
	// Another process may have renamed the file and created the next one.
	case w.f == nil || !os.SameFile(info, w.info):
		return w.open()
	case info.Size() > w.size:
		return w.read(info.Size())
	case info.Size() < w.size:
		return w.readEndOf(w.size, info.Size(), "the file was cut")
	}
	return nil
}

// open opens the existing file. If its end is before the known end, the file was replaced.
func (w *file) open() error {
	was := w.size
	w.close()
	var err error
	if w.f, w.info, err = openRegular(w.path, os.O_RDWR|os.O_APPEND); err != nil {
		return errFile("could not be opened", err)
	}
	return w.readEndOf(was, w.info.Size(), "the file was replaced by one that ends earlier")
}

func (w *file) close() {
	if w.f != nil {
		_ = w.f.Close()
	}
	w.f, w.info, w.size, w.retryAt, w.first, w.newline, w.partial, w.firstLine = nil, nil, 0, 0, nil, false, nil, Digest{}
}

// read finds the end of the chain in the open file of size bytes.
func (w *file) read(size int64) error {
	e, err := readEnd(w.f, size)
	if err != nil {
		w.close()
		return errFile("cannot be continued", err)
	}
	w.size, w.first, w.newline, w.partial = size, nil, e.open, e.partial
	// Without a complete line, the record that begins the file also describes the incomplete one.
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

// readEndOf finds the end of the chain in the open file of size bytes. If it is before the
// known end, at was bytes, a record with the reason will be written. The numbers continue,
// so that the verifier finds the missing records.
func (w *file) readEndOf(was, size int64, why string) error {
	known := w.tip
	w.firstLine = Digest{}
	if err := w.read(size); err != nil {
		return err
	}
	if w.tip.seq >= known.seq {
		return nil // the file is the next one, or has no line (see begin), or only an incomplete line was lost
	}
	w.warnLost(why)
	w.first = w.note(note{Kind: kindShortened, Was: was, Is: size, Partial: w.partial, Why: why})
	w.tip.seq = known.seq
	return nil
}

// create creates the file. after is the name of the file before it, or "" if that has to be
// found.
func (w *file) create(after string) error {
	w.close()
	var err error
	if w.f, w.info, err = openFile(w.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL); err != nil {
		return errFile("could not be created", err)
	}
	w.begin(after)
	return nil
}

// begin makes the first line of an empty file the next line to be written. The chain
// continues from the last known line, either of this process or of the newest renamed file.
func (w *file) begin(after string) {
	w.firstLine = Digest{}
	// Another process may have written and renamed the file since this one last wrote.
	if older, err := rotatedFiles(w.path); err == nil && len(older) > 0 {
		newest := older[len(older)-1]
		// The numbers are equal if this process was the last one that wrote.
		if e, err := endOf(newest); err == nil && e.tip.seq >= w.tip.seq {
			w.tip, after = e.tip, filepath.Base(newest)
		}
	}
	n := note{Kind: kindBegin, Version: Version, ID: rand.Text(), After: after, Partial: w.partial}
	if w.tip.seq > 0 && after == "" {
		n.Why = "the file that was written before is gone"
		w.warnLost(n.Why)
	}
	w.first = w.note(n)
}

// warnLost warns that records which were written are no longer in the file.
func (w *file) warnLost(why string) {
	w.warnings = append(w.warnings, warning{"audit records that were written are missing: run attache audit verify on the file to see which", "why", why})
}

// note returns the body of a record of this package.
func (w *file) note(n note) []byte {
	n.Time = w.now().UTC().Format(timeFormat)
	return n.body()
}

// timeFormat is RFC 3339 with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// rotate renames the file and creates the next one. If that fails (on Windows, while another
// program has the file open), the file may grow by a quarter before the next attempt.
func (w *file) rotate() error {
	name := rotatedName(w.path, w.tip.seq)
	// A rename would replace an existing file, and its records would be gone.
	_, err := os.Lstat(name)
	if err == nil {
		err = fmt.Errorf("%s: %w", name, fs.ErrExist)
	} else if errors.Is(err, fs.ErrNotExist) {
		_ = w.f.Close() // Windows does not rename an open file
		w.f = nil
		err = os.Rename(w.path, name)
	}
	if err == nil {
		w.told = false
		return w.create(filepath.Base(name))
	}
	if w.f == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	w.retryAt = w.size + w.maxSize/4 + 1
	if w.size >= 2*w.maxSize && !w.told {
		w.told = true
		w.warnings = append(w.warnings, warning{"the audit file grows beyond its maximum size, because it cannot be renamed: let attache rename files in its directory", "err", err})
	}
	return nil
}

// put appends lines; end is the tip after them. If it fails, it returns the number of their
// records that are in the file.
func (w *file) put(text []byte, end tip) (written int, err error) {
	if n, err := w.write(w.f, text); err != nil {
		// A part of a line must not stay, because the next record would be appended to it. If it
		// cannot be removed, the next refresh repairs the file as if another process had died here.
		if n > 0 && w.f.Truncate(w.size) != nil {
			w.info = nil // refresh will read the file again
			written = w.complete(text, n)
		}
		return written, errFile("could not be written", err)
	}
	w.size += int64(len(text))
	w.tip, w.first, w.newline, w.partial = end, nil, false, nil
	return 0, nil
}

// complete returns how many records are in the file if n bytes of text were written and
// cannot be removed. A line that lacks only its newline is complete (see readLast).
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
