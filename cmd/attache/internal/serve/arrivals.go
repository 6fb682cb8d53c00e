package serve

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// arrivals counts the connections on which no request has been handled yet. Server.Shutdown closes
// such a connection without an answer, even if a request has already arrived on it.
type arrivals struct {
	n    atomic.Int64
	open sync.Map // net.Conn to *arrival
}

// An arrival is the state of a connection.
type arrival struct {
	handled atomic.Bool // a request was handled, or the connection was closed without one
	watch   *watch      // nil over TLS, where the server reads from a tls.Conn
}

type arrivalKey struct{}

// watch counts the connections of a server. The context that it makes is that of all requests of a
// connection, so that the watch of the connection can cancel it.
func (a *arrivals) watch(server *http.Server) {
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		one := new(arrival)
		if own, ok := c.(*connection); ok {
			one.watch = &own.watch
			ctx, own.watch.left = context.WithCancel(ctx)
		}
		// The goroutine that accepts connections calls this, so when that has ended, all of them
		// are counted: see drain.
		a.n.Add(1)
		a.open.Store(c, one)
		return context.WithValue(ctx, arrivalKey{}, one)
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			if one, ok := a.open.LoadAndDelete(c); ok {
				a.handle(one.(*arrival))
			}
		}
	}
}

// request records that a connection has had a request. It returns the watch of the connection, or nil if
// the connection has none.
func (a *arrivals) request(r *http.Request) *watch {
	one, ok := r.Context().Value(arrivalKey{}).(*arrival)
	if !ok {
		return nil
	}
	a.handle(one)
	return one.watch
}

func (a *arrivals) handle(one *arrival) {
	// Few requests are the first of their connection, and a load is all that the others cost.
	if !one.handled.Load() && one.handled.CompareAndSwap(false, true) {
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
