package ownconn

import (
	"bufio"
	"context"
	"io"
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
	// postBuffer is the size of the buffers of a connection.
	postBuffer = 2 << 10
)

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
		resp, err := c.post(r)
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
	own, err := t.dial(r)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: own, t: t, host: r.URL.Host}
	if s, ok := own.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
		c.look = c.lookAt
	}
	c.head.R = own
	c.in = bufio.NewReaderSize(&c.head, postBuffer)
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

	raw  syscall.RawConn // for lookAt; nil if it does not work with this connection
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

// post sends a request and reads the head of its answer. It closes the connection if that fails.
func (c *conn) post(r *http.Request) (*http.Response, error) {
	c.wrote = 0
	ctx := r.Context()
	b := &postBody{body: body{ctx: ctx, conn: c.Conn, forget: context.AfterFunc(ctx, func() { _ = c.Close() })}, c: c}
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
		resp, err = readHead(c.in, &c.head, r)
	}
	if err != nil {
		_ = b.Close()
		return nil, b.explain(err)
	}
	c.used = true
	b.keep = !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols
	if resp.Body == http.NoBody {
		b.end()
		return resp, nil
	}
	b.from, resp.Body = resp.Body, b
	return resp, nil
}

// A postBody is the body of an answer. At its end the connection can be used again.
type postBody struct {
	body
	c      *conn
	keep   bool // the server does not close the connection
	ended  bool
	closed bool
}

// Read implements io.Reader.
func (b *postBody) Read(p []byte) (int, error) {
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

// end puts the connection in the pool if it can be used again, otherwise closes it. It cannot if the
// context is already closing it, or if the server has sent bytes that belong to no answer.
func (b *postBody) end() {
	b.ended = true
	if b.forget() && b.keep && b.c.in.Buffered() == 0 {
		b.c.t.idle.put(b.c)
		return
	}
	_ = b.conn.Close()
}

// Close implements io.Closer.
func (b *postBody) Close() error {
	b.closed = true
	if b.ended {
		return nil
	}
	b.ended = true
	return b.body.Close()
}
