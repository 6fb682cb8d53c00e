package revive

import (
	"context"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// readyTime is how long a server may take to answer the first messages.
const readyTime = 60 * time.Second

// replay sends a server the messages that it has to know before it gets frames of the
// client (R5). There are none in the modern era.
func (v *Supervisor) replay(ctx context.Context, l *Link) error {
	params, legacy := v.record.Initialize()
	if !legacy {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	// The gate is still shut, so these messages go past it, and before all that it keeps.
	first := func(m *wire.Message) error { return writeFirst(ctx, l, m.Line()) }
	reply := v.ask(ctx, "initialize", params, first, l.Ended())
	if reply == nil {
		return errNotReady
	}
	if err := v.record.Same(reply); err != nil {
		return err
	}
	lines := wire.NewNotification(wire.Client, "notifications/initialized", nil).Line()
	requests := v.record.Requests()
	answered := make(chan struct{}, len(requests)) // has room for all, because nobody may be waiting
	for _, q := range requests {
		id := v.o.Asks.Add(wire.Server, readyTime, false, func(*wire.Message) { answered <- struct{}{} }, v.forget)
		lines = append(lines, wire.NewRequest(wire.Client, []byte(id), q.Method, q.Params).Line()...)
	}
	if err := writeFirst(ctx, l, lines); err != nil {
		return err
	}
	return awaitSettled(ctx, l, answered, len(requests))
}

// settleTime bounds the wait for the answers to the requests after the handshake.
const settleTime = 5 * time.Second

// awaitSettled waits for n answers, so that no later message overtakes the requests: over
// HTTP each message is a request of its own.
func awaitSettled(ctx context.Context, l *Link, answered <-chan struct{}, n int) error {
	late := time.After(settleTime)
	for range n {
		select {
		case <-answered:
		case <-late: // a server that answers none of them may still answer calls
			return nil
		case <-l.Ended():
			return errNotReady
		case <-ctx.Done():
			return errNotReady
		}
	}
	return nil
}

// forget ends a request without a reply.
func (v *Supervisor) forget(id string) {
	if a := v.o.Asks.Take(id); a != nil {
		a.Done(nil)
	}
}

// ask sends the server a request of attache's own and waits for the reply. It returns nil if
// ctx or the server ends before the reply.
func (v *Supervisor) ask(ctx context.Context, method string, params []byte, send func(*wire.Message) error, ended <-chan struct{}) *wire.Message {
	reply := make(chan *wire.Message, 1)
	// During initialize the client's calls wait, so no long reply of theirs would be dropped for it.
	hold := method == "initialize"
	id := v.o.Asks.Add(wire.Server, readyTime, hold, func(m *wire.Message) { reply <- m }, v.forget)
	if id == "" {
		return nil // the session is over
	}
	defer v.forget(id) // does nothing after a reply
	if send(wire.NewRequest(wire.Client, []byte(id), method, params)) != nil {
		return nil
	}
	select {
	case m := <-reply:
		return m
	case <-ended:
	case <-ctx.Done():
	}
	return nil
}

// askReady sends a request to a server that already gets frames of the client.
func (v *Supervisor) askReady(ctx context.Context, method string, params []byte) *wire.Message {
	send := func(m *wire.Message) error {
		v.relay.Send(wire.Server, m)
		return nil
	}
	return v.ask(ctx, method, params, send, nil)
}

// writeFirst writes lines to a server that does not get frames of the client yet.
func writeFirst(ctx context.Context, l *Link, lines []byte) error {
	l.show(lines)
	written := make(chan struct{})
	go func() { // ends at the latest when the link is stopped
		l.stdin().Write(lines) // after an error, the server's output ends
		close(written)
	}()
	select {
	case <-written:
		return nil
	case <-l.Ended():
	case <-ctx.Done():
	}
	return errNotReady
}

// maxPages is how many pages of a list are compared: a faulty server may return cursors without end.
const maxPages = 100

// compareLists requests the lists that the client has read from the server that was started
// again, and reports those that have changed (R11).
func (v *Supervisor) compareLists(ctx context.Context) {
	var now Pages
	for _, method := range v.record.Lists() {
		var cursor []byte
		for range maxPages {
			reply := v.askReady(ctx, method, v.record.ListParams(cursor))
			if reply == nil {
				break
			}
			if cursor = now.Page(method, cursor, reply); cursor == nil {
				break
			}
		}
	}
	for _, c := range v.record.Compare(now) {
		v.o.Log.Warn("a list of the server that was started again differs from that of the one before", "list", c.method)
		if v.policy.Changed != nil {
			v.policy.Changed(c.method, c.before, c.after)
		}
	}
}
