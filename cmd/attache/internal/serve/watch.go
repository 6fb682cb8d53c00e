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

// A watch finds out that a client leaves whose request is being handled. The HTTP server does that
// by a read of one byte, in a goroutine that it starts when it has read the body and interrupts
// before it reads the next request. That takes a tenth of the CPU time of a short call, so the read
// comes back at once with nothing, and the watch reads in its place where the request takes longer.
type watch struct {
	c        *connection
	handling atomic.Bool // a request whose body the handler reads
	begin    deadline    // of the handler: when the watch reads
	left     func()      // ends the context of the connection's requests
	done     chan struct{}
	early    [1]byte
	has      bool // early has the first byte of the next request
}

// handle begins to handle a request. A body of known length is read into what has room for more than
// one byte, so until end a read of one byte is that of the HTTP server. Not so in a body in chunks,
// where the server's buffer may have room for one byte left, and over HTTP/2, which reads frames.
func (w *watch) handle(r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength > 0 {
		w.handling.Store(true)
	}
}

// postpone stands in for the read of the HTTP server. It reports false if there is none to stand
// in for.
func (w *watch) postpone() bool {
	if !w.handling.Load() {
		return false
	}
	_ = w.begin.move(time.Now().Add(watchAfter))
	if !w.handling.Load() {
		_ = w.begin.move(time.Time{}) // end may have come before the other move
	}
	return true
}

// end ends the watch: the HTTP server is about to read the next request.
func (w *watch) end() {
	if w.handling.Load() {
		w.handling.Store(false)
		_ = w.begin.move(time.Time{})
	}
}

// set begins to read, or ends that if t is zero. It is what the deadline begin sets.
func (w *watch) set(t time.Time) error {
	if !t.IsZero() {
		w.done = make(chan struct{})
		if w.has { // the client is there, and has sent a request behind the next one
			close(w.done)
			return nil
		}
		go w.read(w.done)
		return nil
	}
	_ = w.c.Conn.SetReadDeadline(time.Unix(1, 0)) // which interrupts the read
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

// take moves the byte that was read early to b. It returns how many that were.
func (w *watch) take(b []byte) (n int) {
	if w.has && len(b) > 0 {
		w.has = false
		return copy(b, w.early[:])
	}
	return 0
}
