package serve

import (
	"bufio"
	"cmp"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// A response records the status and the size of an HTTP response.
type response struct {
	http.ResponseWriter
	status   int
	bytes    int64
	hijacked *hijackedConn // nil unless the handler has hijacked the connection
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *response) Write(b []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap returns the writer beneath, for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack implements http.Hijacker. The request then lasts until the connection is closed. Its status
// is 200, because a front hijacks a connection only for a stream.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, b, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.hijacked = &hijackedConn{Conn: c}
	return w.hijacked, b, nil
}

// A hijackedConn is a connection that a handler has hijacked. Close and whenClosed may come in either
// order, from two goroutines: the later one makes the call.
type hijackedConn struct {
	net.Conn
	bytes atomic.Int64

	mu       sync.Mutex
	closed   bool
	callback func(size int64)
}

// Write implements io.Writer.
func (c *hijackedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// Close implements io.Closer.
func (c *hijackedConn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	first, f := !c.closed, c.callback
	c.closed = true
	c.mu.Unlock()
	if first && f != nil {
		f(c.bytes.Load())
	}
	return err
}

// whenClosed calls f once, with the number of bytes written, when the connection is closed.
func (c *hijackedConn) whenClosed(f func(size int64)) {
	c.mu.Lock()
	c.callback = f
	closed := c.closed
	c.mu.Unlock()
	if closed {
		f(c.bytes.Load())
	}
}
