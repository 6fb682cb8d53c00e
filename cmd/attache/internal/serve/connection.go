package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// acceptPause is the time between two warnings that no connection can be accepted.
const acceptPause = time.Minute

// A listener accepts connections on which setting a deadline is cheap. It warns that no connection can be
// accepted, usually because too many files are open: the HTTP server tries again and logs that only at
// debug level, and clients see nothing but a delay.
type listener struct {
	net.Listener
	log    *slog.Logger
	warned time.Time // used by one goroutine, in which the HTTP server accepts
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		if !errors.Is(err, net.ErrClosed) && time.Since(l.warned) >= acceptPause {
			l.warned = time.Now()
			l.log.Warn("no connection can be accepted now, so new clients wait: if too many files are open, raise the limit (ulimit -n)", "err", err)
		}
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok { // package net sets other values on connections of systemd's listeners
		_ = tcp.SetKeepAliveConfig(keepAlive)
	}
	now := time.Now()
	own := &connection{
		Conn: c, looked: now, patience: unacknowledgedTime,
		read: deadline{set: c.SetReadDeadline, began: now}, write: deadline{set: c.SetWriteDeadline, began: now},
	}
	own.watch = watch{c: own, begin: deadline{set: own.watch.set}}
	return own, nil
}

// A connection is a connection accepted by a listener.
type connection struct {
	net.Conn
	read, write deadline
	watch       watch
	handled     atomic.Bool   // a request was handled, or the connection was closed without one: see arrivals
	looked      time.Time     // when Write last looked whether the client is gone
	patience    time.Duration // unacknowledgedTime, or less in a test
}

const (
	// unacknowledgedTime is how long a client may acknowledge nothing while sent bytes wait. Without this
	// limit, a broken connection that gets comments stays open for a quarter of an hour, and so does its
	// session. The last acknowledgement may be 15 s older than the bytes, because comments come every 15 s. The
	// system repeats bytes after 26 s and 51 s. So a limit of a minute could end the connection of a client
	// that could not be reached for half a minute.
	unacknowledgedTime = 70 * time.Second
	// lookAfter is the shortest time between two looks.
	lookAfter = 10 * time.Second
)

var errGone = errors.New("the client acknowledges nothing that was sent to it")

// Write implements net.Conn. The HTTP server calls it from one goroutine at a time.
func (c *connection) Write(b []byte) (int, error) {
	if now := time.Now(); now.Sub(c.looked) >= lookAfter {
		if c.looked = now; unacknowledged(c.Conn) > c.patience {
			return 0, errGone
		}
	}
	return c.Conn.Write(b)
}

// Read implements net.Conn.
func (c *connection) Read(b []byte) (int, error) {
	// While a request is handled, this is the read by which net/http notices that the client leaves. It
	// returns without data, and the watch reads in its place.
	if len(b) == 1 && c.watch.postpone() {
		return 0, nil
	}
	// The watch may have read the first byte of the next request.
	if n := c.watch.take(b); n > 0 {
		return n, nil
	}
	return c.Conn.Read(b)
}

// SetDeadline implements net.Conn.
func (c *connection) SetDeadline(t time.Time) error {
	if err := c.read.move(t); err != nil {
		return err
	}
	return c.write.move(t)
}

// SetReadDeadline implements net.Conn.
func (c *connection) SetReadDeadline(t time.Time) error { return c.read.move(t) }

// SetWriteDeadline implements net.Conn.
func (c *connection) SetWriteDeadline(t time.Time) error { return c.write.move(t) }

// CloseWrite closes the write side. The HTTP server calls it before it closes a connection on which
// the client is still writing.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.read.stop()
	c.write.stop()
	c.watch.begin.stop()
	if c.watch.left != nil {
		c.watch.left()
	}
	return c.Conn.Close()
}

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

// postpone leaves a read of one byte to the watch, which does it later than the HTTP server wants. It
// reports false if no request is handled: then the read is an ordinary one.
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

// arrivals counts the connections on which no request has been handled yet. Server.Shutdown closes
// such a connection without an answer, even if a request has already arrived on it.
type arrivals struct{ n atomic.Int64 }

type connectionKey struct{}

// watch counts the connections of a server. The context that it makes is that of all requests of a
// connection, so that the watch of the connection can cancel it.
func (a *arrivals) watch(server *http.Server) {
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if own, ok := c.(*connection); ok {
			ctx, own.watch.left = context.WithCancel(ctx)
		}
		// The goroutine that accepts connections calls this, so when that has ended, all of them
		// are counted: see drain.
		a.n.Add(1)
		return context.WithValue(ctx, connectionKey{}, accepted(c))
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			a.handle(accepted(c))
		}
	}
}

// accepted returns the connection that the listener accepted, which is under that of TLS.
func accepted(c net.Conn) *connection {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*connection)
}

// request records that a connection has had a request. It returns the watch of the connection, or nil if
// the connection has none.
func (a *arrivals) request(r *http.Request) *watch {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return nil
	}
	a.handle(c)
	if r.TLS != nil { // the server reads from a tls.Conn
		return nil
	}
	return &c.watch
}

func (a *arrivals) handle(c *connection) {
	// Few requests are the first of their connection, and a load is all that the others cost.
	if !c.handled.Load() && c.handled.CompareAndSwap(false, true) {
		a.n.Add(-1)
	}
}

// await returns when a request has been handled on each connection, when ctx is done, or after limit,
// because some clients and load balancers open connections that they do not use.
func (a *arrivals) await(ctx context.Context, limit time.Duration) {
	for end := time.Now().Add(limit); a.n.Load() > 0 && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
}
