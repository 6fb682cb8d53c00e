package auditlog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// tailPoll is the interval for polling a file that is followed.
const tailPoll = 200 * time.Millisecond

// A Tailer reads a file that grows, and that may be renamed and started again.
type Tailer struct {
	Path string
	// Show is called for every line. The line is valid until Show returns.
	Show func(line []byte) error

	f    *os.File
	line []byte // the beginning of an incomplete line
}

// Last shows the last n lines of the file.
func (t *Tailer) Last(n uint) error {
	if err := t.open(t.Path); err != nil {
		return err
	}
	var lines [][]byte
	err := t.read(func(line []byte) error {
		if lines = append(lines, bytes.Clone(line)); uint(len(lines)) > n {
			lines = lines[1:]
		}
		return nil
	})
	for _, line := range lines {
		if err == nil {
			err = t.Show(line)
		}
	}
	return err
}

// Follow shows the lines that are added after [Tailer.Last], until ctx is done.
func (t *Tailer) Follow(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tailPoll):
		}
		if err := t.more(); err != nil {
			return err
		}
	}
}

// more shows the lines that were added since the last call.
func (t *Tailer) more() error {
	for {
		if err := t.rewind(); err != nil {
			return err
		}
		renamed := t.renamed() // check before reading: nothing is written to a file after it was renamed
		if err := t.read(t.Show); err != nil || !renamed {
			return err
		}
		old := t.f
		if err := t.open(t.next()); err != nil {
			return err
		}
		_ = old.Close()
		t.line = nil
	}
}

// next returns the name of the file that follows the open one, which was renamed. That may have been
// renamed too, if Show has waited for the reader of the output.
func (t *Tailer) next() string {
	open, err := t.f.Stat()
	if err != nil {
		return t.Path
	}
	s, err := chain.Open(t.Path)
	if err != nil {
		return t.Path
	}
	defer s.Close()
	for i, f := range s.Files[1:] {
		if before, err := os.Stat(s.Files[i].Name); err == nil && os.SameFile(before, open) {
			return f.Name
		}
	}
	return t.Path
}

// rewind goes back to the beginning of a file that was cut, as tools that rotate logs may do.
func (t *Tailer) rewind() error {
	at, err := t.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	info, err := t.f.Stat()
	if err != nil || info.Size() >= at {
		return err
	}
	t.line = nil
	_, err = t.f.Seek(0, io.SeekStart)
	return err
}

// renamed reports whether there is now another file at the path.
func (t *Tailer) renamed() bool {
	here, err := os.Stat(t.Path)
	if err != nil {
		return false // the new file does not exist yet
	}
	open, err := t.f.Stat()
	return err == nil && !os.SameFile(here, open)
}

func (t *Tailer) open(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() { // a pipe would wait for a writer
		return fmt.Errorf("%s is not a regular file: name the file of the log", path)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoFile(path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, cli.Unreadable(err))
	}
	t.f = f
	return nil
}

// read calls each for every complete line up to the end of the file.
func (t *Tailer) read(each func(line []byte) error) error {
	r := bufio.NewReader(t.f)
	for {
		part, err := r.ReadSlice('\n')
		t.line = append(t.line, part...)
		if len(t.line) > chain.MaxLine {
			t.line = t.line[:chain.MaxLine] // too long for a record, and printed as such
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", t.Path, cli.Unreadable(err))
		default:
			if err := each(t.line); err != nil {
				return err
			}
			t.line = t.line[:0]
		}
	}
}
