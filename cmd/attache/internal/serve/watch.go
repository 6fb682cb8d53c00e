package serve

import (
	"errors"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// watchAfter is how long a request is handled before attache watches whether its client leaves.
const watchAfter = 250 * time.Millisecond

// A watch detects that a client leaves while its request is handled. The HTTP server does that with
// a read of one byte, in a goroutine that it starts after it has read the body and interrupts before
// it reads the next request. That takes a tenth of the CPU time of a short call. So connection.Read
// returns from that read immediately without data, and the watch reads in its place if the request
// takes longer.
type watch struct {
	c        *connection
	handling atomic.Bool // a request is handled for which the watch reads
	begin    deadline    // when the watch starts to read
	left     func()      // cancels the context of the connection's requests
	done     chan struct{}
	early    [1]byte
	has      bool // early holds the first byte of the next request
}

// handle starts the handling of a request. A body of known length is read into a buffer of more than
// one byte, so until end is called a read of one byte is that of the HTTP server. That is not true
// for a chunked body, for which the server's buffer may have room for only one byte, nor for HTTP/2,
// which reads frames.
func (w *watch) handle(r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength > 0 {
		w.handling.Store(true)
	}
}

// postpone replaces a read of one byte by the HTTP server with a later read by the watch. It reports
// false if no request is handled, so that the read is an ordinary one.
func (w *watch) postpone() bool {
	if !w.handling.Load() {
		return false
	}
	_ = w.begin.move(time.Now().Add(watchAfter))
	if !w.handling.Load() {
		_ = w.begin.move(time.Time{}) // end may have run before the first move
	}
	return true
}

// end ends the watch: the HTTP server is about to read the next request. When it returns, read no longer
// runs, so never do both read from the connection, and early and has need no lock.
func (w *watch) end() {
	if w.handling.Load() {
		w.handling.Store(false)
		_ = w.begin.move(time.Time{})
	}
}

// set starts the read, or interrupts it and waits for its end if t is zero. The deadline begin calls it, with
// its lock held, and with zero only after a start.
func (w *watch) set(t time.Time) error {
	if !t.IsZero() {
		w.done = make(chan struct{})
		if w.has { // the client is there, and has already sent another request
			close(w.done)
			return nil
		}
		go w.read(w.done)
		return nil
	}
	_ = w.c.Conn.SetReadDeadline(time.Unix(1, 0)) // interrupts the read
	<-w.done
	return w.c.Conn.SetReadDeadline(time.Time{})
}

// read waits for the client to send the next request or to leave.
func (w *watch) read(done chan struct{}) {
	defer close(done)
	n, err := w.c.Conn.Read(w.early[:])
	if w.has = n > 0; err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		w.left()
	}
}

// take moves the byte that was read early to b. It returns the number of bytes moved.
func (w *watch) take(b []byte) (n int) {
	if w.has && len(b) > 0 {
		w.has = false
		return copy(b, w.early[:])
	}
	return 0
}
