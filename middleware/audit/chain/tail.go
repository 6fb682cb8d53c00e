package chain

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrNotALog is returned for a file that holds something else. Name another file.
var ErrNotALog = errors.New("it holds something else than an audit log")

// maxTorn is how far from the end the last whole line is looked for: a few
// processes may have died, each within a line.
const maxTorn = 4 * MaxLine

// An end is what the end of a file says.
type end struct {
	tip  tip
	torn *Torn // nil if the file ends with a whole line
	open bool  // what it ends with, whole or torn, wants a newline
}

// firstLook is how much of the end of a file is read at first: it nearly always
// holds a whole line, and files are read at every start, and by each writer after
// another has written.
const firstLook = 8 << 10

// readEnd finds the last whole line of the first size bytes of a file, and what
// stands behind it.
func readEnd(r io.ReaderAt, size int64) (e end, err error) {
	for look := int64(firstLook); ; look *= 16 {
		look = min(look, maxTorn, size)
		e, err = readLast(r, size, look)
		if !errors.Is(err, ErrNotALog) || look == size || look == maxTorn {
			return e, err
		}
	}
}

// readLast is readEnd for what stands in the last n of these bytes. What wants nothing
// but its newline to be a line is one: with the newline nobody could tell it from one.
func readLast(r io.ReaderAt, size, n int64) (end, error) {
	from := size - n
	b := make([]byte, n, n+1)
	if _, err := r.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
		return end{}, err
	}
	e := end{open: n > 0 && b[n-1] != '\n'}
	if e.open {
		b = append(b, '\n')
	}
	for stop := len(b); stop > 0; {
		stop = bytes.LastIndexByte(b[:stop], '\n') + 1
		start := bytes.LastIndexByte(b[:max(stop-1, 0)], '\n') + 1
		if l, ok := parseLine(b[start:stop]); ok {
			e.tip = tip{l.seq, l.digest}
			e.tear(b[stop:])
			return e, nil
		}
		stop = start
	}
	// There is no whole line. What begins like the first one is a first one torn.
	if b = b[:n]; from > 0 || n > 0 && !bytes.HasPrefix(b, []byte(headSeq)) && !bytes.HasPrefix([]byte(headSeq), b) {
		return end{}, ErrNotALog
	}
	e.tear(b)
	return e, nil
}

// tear takes what stands behind the last whole line, if anything does.
func (e *end) tear(b []byte) {
	if len(b) == 0 {
		return
	}
	b = bytes.TrimSuffix(b, []byte{'\n'})
	e.torn = &Torn{Bytes: int64(len(b)), Digest: Digest(sha256.Sum256(b)).String()}
}

// endOf reads the end of the file at path.
func endOf(path string) (end, error) {
	f, err := os.Open(path)
	if err != nil {
		return end{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return end{}, err
	}
	e, err := readEnd(f, info.Size())
	if err != nil {
		return end{}, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}
