// Package ownconn sends requests on plain connections of its own, where http.Transport has two
// goroutines for each: a request whose response is open for hours then takes 17 KiB less, and a
// call from stdio to HTTP a quarter less CPU time.
package ownconn

import (
	"bufio"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// readerSize is the size of the buffer of a connection: larger reads go past it.
const readerSize = 1 << 10

// maxHead is how long the head of a response may be.
const maxHead = 1 << 20

// A Transport is an http.Transport that sends these without a proxy and TLS on connections of its
// own: short messages, and a GET if the last one was answered with a response of no known length.
// Make one with New.
type Transport struct {
	*http.Transport
	streams atomic.Bool // the last GET was answered so
	idle    idlePool
}

// New returns a Transport that sends all else as t does. t has a DialContext, and says how many
// connections to a host are kept and how long: 0 stands for none.
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
	port := r.URL.Port()
	if port == "" {
		port = "80"
	}
	return t.DialContext(r.Context(), "tcp", net.JoinHostPort(r.URL.Hostname(), port))
}

// takes reports whether a request without a body leaves on a plain connection to its host.
func (t *Transport) takes(r *http.Request) bool { return r.Body == nil && t.direct(r) }

// direct reports whether a request leaves on a plain connection to its host.
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
	limited := &io.LimitedReader{R: conn, N: maxHead}
	in := bufio.NewReaderSize(limited, readerSize)
	for {
		resp, err := http.ReadResponse(in, r)
		if err != nil || resp.StatusCode >= 200 {
			limited.N = math.MaxInt64
			return resp, err
		}
	}
}

// A body is the body of a response. Its end is that of the connection.
type body struct {
	ctx    context.Context
	conn   net.Conn
	forget func() bool // has the connection stay open when ctx is done
	from   io.Reader
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	return n, b.explain(err)
}

// explain returns why ctx is done in place of what followed from that.
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
