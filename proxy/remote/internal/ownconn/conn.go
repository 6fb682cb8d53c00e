package ownconn

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

const (
	// maxPosted is the size of the largest body that is sent completely before the answer is read. With
	// a larger one, a server that answers before it reads all could block, and so would the sender.
	maxPosted = 16 << 10
	// postBuffer is the size of the buffers of a connection for POSTs, and getBuffer that of a connection
	// for a stream. Larger reads bypass them.
	postBuffer = 2 << 10
	getBuffer  = 1 << 10
	// maxHead is the maximum size of the head of a response.
	maxHead = 1 << 20
)

// get sends a request on a connection that no other request uses.
func (t *Transport) get(r *http.Request) (*http.Response, error) {
	c, err := t.dial(r, getBuffer)
	if err != nil {
		return nil, err
	}
	return c.roundTrip(r)
}

// takesPost reports whether a request is a short POST that needs neither a proxy nor TLS.
func (t *Transport) takesPost(r *http.Request) bool {
	return checksIdle && r.Method == http.MethodPost && r.ContentLength > 0 && r.ContentLength <= maxPosted && r.GetBody != nil &&
		isPlain(r.Header) && t.direct(r)
}

// isPlain reports whether headers are valid and none of them concerns the connection.
func isPlain(h http.Header) bool {
	for name, values := range h {
		switch name {
		case "", "Connection", "Expect", "Transfer-Encoding", "Upgrade", "Trailer":
			return false
		}
		for i := range len(name) {
			if c := name[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
		for _, value := range values {
			for i := range len(value) {
				if c := value[i]; c < ' ' || c == 0x7F {
					return false
				}
			}
		}
	}
	return true
}

// post sends a message and reads the head of its answer, both on the caller's goroutine. It tries again
// only if a used connection has failed before a byte of the request was written: a server that has got
// part of a request may execute it.
func (t *Transport) post(r *http.Request) (*http.Response, error) {
	for {
		c, err := t.connect(r)
		if err != nil {
			_ = r.Body.Close()
			return nil, err
		}
		resp, err := c.roundTrip(r)
		// A new connection that fails has another reason than its age. If the context is done, that is the reason.
		if err == nil || c.wrote > 0 || !c.used || r.Context().Err() != nil {
			return resp, err
		}
		// The server had closed an idle connection, and has received nothing of the request.
		again := *r
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
		r = &again
	}
}

// connect returns a connection to the host of a request.
func (t *Transport) connect(r *http.Request) (*conn, error) {
	if c := t.idle.take(r.URL.Host); c != nil {
		return c, nil
	}
	c, err := t.dial(r, postBuffer)
	if err != nil {
		return nil, err
	}
	if s, ok := c.Conn.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
		// Once for each connection: a method value allocates.
		c.look = c.lookAt
	}
	return c, nil
}

// dial connects to the host of a request. buffer is the size of the connection's buffer.
func (t *Transport) dial(r *http.Request, buffer int) (*conn, error) {
	own, err := t.DialContext(r.Context(), "tcp", net.JoinHostPort(r.URL.Hostname(), cmp.Or(r.URL.Port(), "80")))
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: own, t: t, host: r.URL.Host}
	c.head.R = own
	c.in = bufio.NewReaderSize(&c.head, buffer)
	return c, nil
}

// A conn is a connection that requests share, one at a time.
type conn struct {
	net.Conn
	t     *Transport
	host  string
	head  io.LimitedReader
	in    *bufio.Reader
	used  bool // it has been used for a request with an answer
	wrote int  // bytes written of the current request

	idleSince time.Time

	raw  syscall.RawConn // for lookAt; nil if the connection is not used again
	look func(fd uintptr) bool
	open bool // the result of look
}

// Write implements io.Writer.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wrote += n
	return n, err
}

// writers has buffers to write a request at once.
var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 2*postBuffer) }}

// roundTrip sends a request and reads the head of its answer. It closes the connection if that fails.
func (c *conn) roundTrip(r *http.Request) (*http.Response, error) {
	// wrote counts the bytes of this request only; see post.
	c.wrote = 0
	ctx := r.Context()
	// Closing the connection ends a read or write that waits. forget ends that with the body.
	b := &body{ctx: ctx, c: c, forget: context.AfterFunc(ctx, func() { _ = c.Close() })}
	out := writers.Get().(*bufio.Writer)
	out.Reset(c)
	err := r.Write(out)
	if err == nil {
		err = out.Flush()
	}
	out.Reset(nil)
	writers.Put(out)
	var resp *http.Response
	if err == nil {
		resp, err = c.readHead(r)
	}
	if err != nil {
		_ = b.Close()
		return nil, b.explain(err)
	}
	// Only a connection that has worked may be closed by the server for being idle: see post.
	c.used = true
	b.keep = !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols
	b.from, resp.Body = resp.Body, b
	return resp, nil
}

// readHead reads the head of an answer. It skips interim responses. The limit of head holds for the head alone.
func (c *conn) readHead(r *http.Request) (*http.Response, error) {
	// ReadResponse itself has no limit: a server could fill the memory with one header.
	c.head.N = maxHead
	for {
		resp, err := http.ReadResponse(c.in, r)
		if err != nil || resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			c.head.N = math.MaxInt64
			return resp, err
		}
	}
}

// A body is the body of an answer. At its end the connection can be used again.
type body struct {
	ctx    context.Context
	c      *conn
	forget func() bool // stops ctx from closing the connection
	from   io.Reader
	keep   bool // the server does not close the connection
	ended  bool
	closed bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.ended:
		return 0, io.EOF
	}
	n, err := b.from.Read(p)
	if err == io.EOF {
		b.end()
	}
	return n, b.explain(err)
}

// explain returns the error of ctx if it caused err, otherwise err.
func (b *body) explain(err error) error {
	if err != nil && err != io.EOF && b.ctx.Err() != nil {
		return b.ctx.Err()
	}
	return err
}

// end puts the connection in the pool if it can be used again, otherwise closes it. It cannot if the
// context is already closing it, or if the server has sent bytes that belong to no answer.
func (b *body) end() {
	b.ended = true
	if b.forget() && b.keep && b.c.in.Buffered() == 0 {
		b.c.t.idle.put(b.c)
		return
	}
	_ = b.c.Close()
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.closed = true
	if b.ended {
		return nil
	}
	b.ended = true
	b.forget()
	return b.c.Close()
}
