package serve

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

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

// await returns when a request has been handled on each connection, or after limit, because some
// clients and load balancers open connections that they do not use.
func (a *arrivals) await(limit time.Duration) {
	for end := time.Now().Add(limit); a.n.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}
