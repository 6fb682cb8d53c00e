package child

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// leftLimit bounds what is still read of an output once it was cut: the largest
// pipe an unprivileged process gets on Linux. Without it a process that left
// the group could go on writing for ever.
const leftLimit = 1 << 20

// An Output is our end of the process's stdout or stderr. It ends with io.EOF
// when all writers have closed it or when it is cut, [Options.Drain] after the
// process ended, whichever comes first. Cutting loses nothing that was already
// written: what is in the pipe is read before io.EOF, however late the reader
// comes, for the reader may be waiting for a slow client.
//
// It is for one reader. Reading to the end closes it.
type Output struct {
	file *os.File
	left int // how much may still be read after the cut
}

func newOutput(f *os.File) *Output { return &Output{file: f, left: leftLimit} }

// Read reads up to len(b) bytes. Its error is io.EOF at the end and
// os.ErrClosed after Close.
func (o *Output) Read(b []byte) (int, error) {
	n, err := o.file.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = o.readLeft(b)
	}
	if err != nil {
		o.file.Close()
	}
	return n, err
}

// Close ends the reading early: a process that writes on gets EPIPE. A Read
// that is blocked returns. It is needed only where Read did not reach the end.
func (o *Output) Close() error { return o.file.Close() }

// SyscallConn gives access to the descriptor, which stays non-blocking and
// polled.
func (o *Output) SyscallConn() (syscall.RawConn, error) { return o.file.SyscallConn() }

// cut makes t the end of waiting for more. An output without deadlines, as on
// Windows, is ended by the end of its writers alone.
func (o *Output) cut(t time.Time) { _ = o.file.SetReadDeadline(t) }

// readLeft reads what is in the pipe now, past the deadline, and takes an empty
// pipe as the end.
func (o *Output) readLeft(b []byte) (int, error) {
	b = b[:min(len(b), o.left)]
	conn, err := o.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	n := 0
	if err := conn.Control(func(fd uintptr) { n = readNow(fd, b) }); err != nil {
		return 0, err
	}
	if n <= 0 {
		return 0, io.EOF
	}
	o.left -= n
	return n, nil
}
