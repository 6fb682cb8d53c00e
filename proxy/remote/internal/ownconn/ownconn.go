// Package ownconn sends requests on plain connections without http.Transport, which needs two
// goroutines for each connection. This saves 17 KiB for a request whose response is open for
// hours, and a quarter of the CPU time of a call from stdio to HTTP.
package ownconn

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// readerSize is the size in bytes of the buffer of a connection. Larger reads bypass it.
const readerSize = 1 << 10

// maxHead is the maximum size of the head of a response.
const maxHead = 1 << 20

// A Transport is an http.Transport that sends some requests on connections of its own, if they
// need neither a proxy nor TLS: short POSTs, and a GET if the last one had a response of unknown
// length. Make one with New.
type Transport struct {
	*http.Transport
	streams atomic.Bool // the response to the last GET had no known length
	idle    idlePool
}

// New returns a Transport that sends all other requests with t. t must have a DialContext. Its
// MaxIdleConnsPerHost and IdleConnTimeout also limit the idle connections of the Transport; 0 means
// that none is kept.
func New(t *http.Transport) *Transport {
	return &Transport{Transport: t, idle: idlePool{limit: t.MaxIdleConnsPerHost, time: t.IdleConnTimeout}}
}

// CloseIdleConnections closes the connections that no request uses.
func (t *Transport) CloseIdleConnections() {
	t.idle.closeAll()
	t.Transport.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	switch {
	case t.takesPost(r):
		return t.post(r)
	case r.Method != http.MethodGet:
		return t.Transport.RoundTrip(r)
	}
	if t.streams.Load() && t.takes(r) {
		resp, err = t.roundTrip(r)
	} else {
		resp, err = t.Transport.RoundTrip(r)
	}
	if err == nil {
		t.streams.Store(resp.StatusCode == http.StatusOK && resp.ContentLength < 0)
	}
	return resp, err
}

// roundTrip sends a request on a connection of its own.
func (t *Transport) roundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	conn, err := t.dial(r)
	if err != nil {
		return nil, err
	}
	b := &body{ctx: ctx, conn: conn, forget: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	resp, err := exchange(conn, r)
	if err != nil {
		_ = b.Close()
		return nil, b.explain(err)
	}
	b.from, resp.Body = resp.Body, b
	return resp, nil
}

// dial connects to the host of a request.
func (t *Transport) dial(r *http.Request) (net.Conn, error) {
	port := cmp.Or(r.URL.Port(), "80")
	return t.DialContext(r.Context(), "tcp", net.JoinHostPort(r.URL.Hostname(), port))
}

// takes reports whether a request has no body and needs neither a proxy nor TLS.
func (t *Transport) takes(r *http.Request) bool { return r.Body == nil && t.direct(r) }

// direct reports whether a request needs neither a proxy nor TLS. A host name that is not ASCII is left
// to http.Transport, which encodes it.
func (t *Transport) direct(r *http.Request) bool {
	if r.URL.Scheme != "http" || strings.ContainsFunc(r.URL.Host, func(c rune) bool { return c > 0x7E }) {
		return false
	}
	if t.Proxy == nil {
		return true
	}
	proxy, err := t.Proxy(r)
	return proxy == nil && err == nil
}

// exchange sends a request and reads the head of its response.
func exchange(conn net.Conn, r *http.Request) (*http.Response, error) {
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	head := &io.LimitedReader{R: conn}
	return readHead(bufio.NewReaderSize(head, readerSize), head, r)
}

// readHead reads the head of a response from in, which reads from head. It skips interim responses. The
// limit of head holds for the head alone.
func readHead(in *bufio.Reader, head *io.LimitedReader, r *http.Request) (*http.Response, error) {
	head.N = maxHead
	for {
		resp, err := http.ReadResponse(in, r)
		if err != nil || resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			head.N = math.MaxInt64
			return resp, err
		}
	}
}

// A body is the body of a response. Closing it closes the connection.
type body struct {
	ctx    context.Context
	conn   net.Conn
	forget func() bool // stops ctx from closing the connection
	from   io.Reader
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	return n, b.explain(err)
}

// explain returns the error of ctx if it caused err, otherwise err.
func (b *body) explain(err error) error {
	if err != nil && err != io.EOF && b.ctx.Err() != nil {
		return b.ctx.Err()
	}
	return err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.forget()
	return b.conn.Close()
}
