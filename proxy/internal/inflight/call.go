// Package inflight has the table of the calls in flight: the requests of the client, from their arrival
// until their one reply has left.
//
// Both directions of a relay use a [Table]. Its mutex guards the unexported fields of its calls and
// batches; a comment at an exported field says who may touch it. A call that has left the table is used
// again for another request, so keep a call only while it is in the table, or together with its number
// ([Table.Defer]).
package inflight

import (
	"bytes"
	"cmp"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Call is a request of the client in flight.
type Call struct {
	// MW is the call as layers see it.
	MW relayed.Call

	seq       uint64 // of its arrival; tells this request from another for which the call is used again
	key       callid.Key
	long      string      // the id, when it does not fit key; else ""
	raw       []byte      // the id as it came, when key or long is another spelling
	next      *Call       // a later call in flight with the same id
	replied   bool        // its reply has come and is being handled
	cancelled atomic.Bool // layers read it without the lock
	contested bool        // another with its id was in flight, and one of the two has a reply that must be held
	odd       bool        // a server may spell its id otherwise
	reserved  int         // the part of Table.lines that this call has
	stop      func()      // not nil if the call was deferred: ends what will answer it

	// Sent says that the call is on its way to the upstream: hooks are complete, a reply may come.
	Sent atomic.Bool
	// Listens says that it is a subscription.
	Listens atomic.Bool
	// Batch is the batch it arrived in; nil if it came alone.
	Batch *Batch
	// Suspended is what a hook asked for; touched by the goroutine that runs the hooks.
	Suspended *Suspension

	// The rest is touched in the client's direction.

	// Holding says that a layer holds the call back.
	Holding bool
	// Again says that it was sent to the next upstream, too.
	Again bool
	// Returned says that an upstream has not taken it.
	Returned bool
	// Frame is its line, if it may be sent to the next upstream.
	Frame []byte
}

// ID returns the raw id.
func (c *Call) ID() []byte {
	switch {
	case c.raw != nil:
		return bytes.Clone(c.raw)
	case c.long != "":
		return []byte(c.long)
	}
	return c.key.Clone()
}

// reset makes c the call of a new request. It runs in the client's direction, where the handler
// of the request that c stood for before has returned. Fields that do not change are not
// written: see middleware.Call.Ask.
func (c *Call) reset(k callid.Key, long string) {
	c.key, c.long, c.raw, c.next = k, long, nil, nil
	c.replied, c.contested, c.Holding, c.Suspended, c.Batch, c.stop = false, false, false, nil, nil, nil
	c.Frame, c.Again, c.Returned, c.reserved = nil, false, false, 0
	c.Sent.Store(false)
	c.cancelled.Store(false)
	c.Listens.Store(false)
	c.MW.Reset(c.MW.Relay(), true)
}

// Cancelled implements relayed.Relay.
func (c *Call) Cancelled() bool { return c.cancelled.Load() }

// Stop ends the work that would answer a call that was deferred, and reports whether it was. The call
// has been cancelled, so nobody else uses its work.
func (c *Call) Stop() (deferred bool) {
	if c.stop != nil {
		c.stop()
	}
	return c.stop != nil
}

// AwaitsReply reports whether the upstream has the call and has not replied. The caller holds
// Table.mu.
func (c *Call) AwaitsReply() bool { return !c.replied && c.Sent.Load() }

// AtWork reports whether the upstream has the call, or a function that answers it in place of
// the upstream. A call that is still on its way to the upstream is answered where sending it
// fails. The caller holds Table.mu.
func (c *Call) AtWork() bool { return c.Sent.Load() || c.stop != nil }

// contest notes, if it matters, that the replies to c and to the younger calls with its id
// cannot be told apart. The caller holds Table.mu.
func (c *Call) contest() {
	// The mark stays when one of them has left the table: its reply may have been that to another.
	n, holds := 0, false
	for o := c; o != nil; o = o.next {
		if o.AwaitsReply() {
			n, holds = n+1, holds || o.MW.HoldsReply()
		}
	}
	for o := c; o != nil && n > 1 && holds; o = o.next {
		o.contested = true
	}
}

// any reports whether something holds for c or a younger call with its id. The caller
// holds Table.mu.
func (c *Call) any(holds func(*Call) bool) bool {
	for ; c != nil; c = c.next {
		if holds(c) {
			return true
		}
	}
	return false
}

// InWrittenBatch reports whether the call was sent in a batch whose line was written. The caller holds
// Table.mu.
func (c *Call) InWrittenBatch() bool { return c.Sent.Load() && c.Batch != nil && c.Batch.written }

// ByArrival compares two calls by the order of their arrival.
func ByArrival(a, b *Call) int { return cmp.Compare(a.seq, b.seq) }

// A Suspension is a message that a layer holds back until it has what it waits for.
type Suspension struct {
	// Message is the message, a copy unless it cannot be copied.
	Message *wire.Message
	// Ready is closed when the layer is ready, and Limit is how long the message waits at most.
	Ready <-chan struct{}
	Limit time.Duration
	// Resume handles the message after that.
	Resume relayed.Handler
}

// Wait returns when the layer is ready, when the time is over, or when the session ends.
func (sp *Suspension) Wait(ending <-chan struct{}) { tasks.Await(sp.Ready, sp.Limit, ending) }
