package chain

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// ErrNotALog is returned for a file that is not a log. Name another file.
var ErrNotALog = errors.New("it is not an audit log")

// maxTail bounds the bytes at the end of a file in which the last complete line is searched:
// a few processes may have died, each while it wrote a line.
const maxTail = 4 * MaxLine

// An end describes the end of a file.
type end struct {
	tip     tip
	partial *Partial // nil if the file ends with a complete line
	open    bool     // whether the last byte is not a newline
}

// firstTail is how many bytes are read first. They nearly always contain a complete line,
// and a file is read at every start and after another process has written.
const firstTail = 8 << 10

// readEnd finds the last complete line in the first size bytes of a file, and the
// incomplete line after it.
func readEnd(r io.ReaderAt, size int64) (e end, err error) {
	for length := int64(firstTail); ; length *= 16 {
		length = min(length, maxTail, size)
		e, err = readLast(r, size, length)
		if !errors.Is(err, ErrNotALog) || length == size || length == maxTail {
			return e, err
		}
	}
}

// readLast does the work of readEnd in the last n of these bytes. A last line that lacks only
// its newline is complete, because it is a valid line once the newline is added.
func readLast(r io.ReaderAt, size, n int64) (end, error) {
	from := size - n
	b := make([]byte, n, n+1) // with room for a newline
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

// setPartial sets the incomplete line after the last complete one.
func (e *end) setPartial(b []byte) {
	if len(b) == 0 {
		return
	}
	b = bytes.TrimSuffix(b, []byte{'\n'}) // the next writer adds it if it is missing, so it does not count
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

// openRegular opens a regular file. It checks that first, because opening a named pipe
// would wait for a writer.
func openRegular(name string, flag int) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: name the file of the log", name)
	}
	if err != nil {
		return nil, nil, err
	}
	return openFile(name, flag)
}

// openFile opens a file, or creates it for its owner alone if flag says so, and returns what identifies it.
func openFile(name string, flag int) (*os.File, os.FileInfo, error) {
	f, err := openShared(name, flag)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// openShared opens a file as os.OpenFile does. On Windows it uses os.Root, which sets FILE_SHARE_DELETE. So other
// processes can rename the open file, as they can on other systems. os.Root does not follow a link to another directory.
// os.OpenFile opens such a file.
func openShared(name string, flag int) (*os.File, error) {
	if runtime.GOOS == "windows" {
		if root, err := os.OpenRoot(filepath.Dir(name)); err == nil {
			defer root.Close()
			if f, err := root.OpenFile(filepath.Base(name), flag, 0o600); err == nil {
				return f, nil
			}
		}
	}
	return os.OpenFile(name, flag, 0o600)
}
