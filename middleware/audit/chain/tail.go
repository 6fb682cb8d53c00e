package chain

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrNotALog is returned for a file that is not a log. Name another file.
var ErrNotALog = errors.New("it holds something else than an audit log")

// maxLook is how far from the end to look for the last complete line: a few processes
// may have died, each while it wrote a line.
const maxLook = 4 * MaxLine

// An end describes the end of a file.
type end struct {
	tip     tip
	partial *Partial // nil if the file ends with a complete line
	open    bool     // its last byte is not a newline
}

// firstLook is how much of the end is read first. It nearly always has a complete line
// in it, and files are read at every start and after another process has written.
const firstLook = 8 << 10

// readEnd finds the last complete line in the first size bytes of a file, and what
// follows it.
func readEnd(r io.ReaderAt, size int64) (e end, err error) {
	for look := int64(firstLook); ; look *= 16 {
		look = min(look, maxLook, size)
		e, err = readLast(r, size, look)
		if !errors.Is(err, ErrNotALog) || look == size || look == maxLook {
			return e, err
		}
	}
}

// readLast is readEnd within the last n of these bytes. A last line that lacks only its
// newline is complete: after the newline is written nobody can tell the difference.
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
			e.setPartial(b[stop:])
			return e, nil
		}
		stop = start
	}
	// There is no complete line. It may be the beginning of a first one.
	if b = b[:n]; from > 0 || n > 0 && !bytes.HasPrefix(b, []byte(headSeq)) && !bytes.HasPrefix([]byte(headSeq), b) {
		return end{}, ErrNotALog
	}
	e.setPartial(b)
	return e, nil
}

// setPartial sets the incomplete line, which follows the last complete one.
func (e *end) setPartial(b []byte) {
	if len(b) == 0 {
		return
	}
	b = bytes.TrimSuffix(b, []byte{'\n'})
	e.partial = &Partial{Bytes: int64(len(b)), Digest: Digest(sha256.Sum256(b)).String()}
}

// endOf reads the end of the file at path.
func endOf(path string) (end, error) {
	f, info, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return end{}, err
	}
	defer f.Close()
	e, err := readEnd(f, info.Size())
	if err != nil {
		return end{}, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}
