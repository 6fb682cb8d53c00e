package revive

import (
	"context"
	"errors"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// readyTime is how long a server may take to answer what it is told first.
const readyTime = 60 * time.Second

// errOther is returned of a server that is another one than the client knows.
var errOther = errors.New("another server")

// errNotReady is returned of a server that ended, or did not answer, before it was ready.
var errNotReady = errors.New("it ended, or did not answer, before it was ready")

// replay tells a server what it has to know before frames of the client's reach it (R5).
// In the modern era that is nothing.
func (v *Supervisor) replay(ctx context.Context, l *Link) error {
	params, legacy := v.record.Initialize()
	if !legacy {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	reply, err := v.askFirst(ctx, l, "initialize", params)
	if err != nil {
		return err
	}
	if err := v.record.Same(reply); err != nil {
		return err
	}
	lines := wire.NewNotification(wire.Client, "notifications/initialized", nil).Line()
	requests := v.record.Requests()
	answered := make(chan struct{}, len(requests))
	for _, q := range requests {
		id := v.o.Asks.Add(wire.Server, readyTime, func(*wire.Message) { answered <- struct{}{} }, v.forget)
		lines = append(lines, wire.NewRequest(wire.Client, []byte(id), q.Method, q.Params).Line()...)
	}
	if err := writeFirst(ctx, l, lines); err != nil {
		return err
	}
	return awaitSettled(ctx, l, answered, len(requests))
}

// settleTime bounds the wait for the answers to what a server is told after the handshake.
const settleTime = 5 * time.Second

// awaitSettled waits for n answers, so that nothing overtakes what was asked: over HTTP each
// message goes its own way.
func awaitSettled(ctx context.Context, l *Link, answered <-chan struct{}, n int) error {
	late := time.NewTimer(settleTime)
	defer late.Stop()
	for range n {
		select {
		case <-answered:
		case <-late.C:
			return nil
		case <-l.Ended():
			return errNotReady
		case <-ctx.Done():
			return errNotReady
		}
	}
	return nil
}

// forget ends a request that has no reply.
func (v *Supervisor) forget(id string) {
	if a := v.o.Asks.Take(id); a != nil {
		a.Done(nil)
	}
}

// askFirst sends a server a request before frames of the client's reach it, and returns
// its reply.
func (v *Supervisor) askFirst(ctx context.Context, l *Link, method string, params []byte) (*wire.Message, error) {
	reply := make(chan *wire.Message, 1)
	id := v.o.Asks.Add(wire.Server, readyTime, func(m *wire.Message) { reply <- m }, v.forget)
	if id == "" {
		return nil, errNotReady // the session is over
	}
	defer v.forget(id)
	if err := writeFirst(ctx, l, wire.NewRequest(wire.Client, []byte(id), method, params).Line()); err != nil {
		return nil, err
	}
	select {
	case m := <-reply:
		if m != nil {
			return m, nil
		}
	case <-l.Ended():
	case <-ctx.Done():
	}
	return nil, errNotReady
}

// writeFirst writes lines to a server before frames of the client's reach it.
func writeFirst(ctx context.Context, l *Link, lines []byte) error {
	l.show(lines)
	written := make(chan struct{})
	go func() {
		l.stdin().Write(lines) // an error shows in the end of its output
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

// maxPages is how many pages of a list are compared.
const maxPages = 100

// compareLists asks a server that was started again for the lists that the client got of
// the one before, and tells of those that have changed (R11).
func (v *Supervisor) compareLists(ctx context.Context) {
	var now Pages
	for _, method := range v.record.Lists() {
		var cursor []byte
		for range maxPages {
			reply := v.ask(ctx, method, v.record.ListParams(cursor))
			if reply == nil {
				break
			}
			if cursor = now.Page(method, cursor, reply); cursor == nil {
				break
			}
		}
	}
	for _, c := range v.record.Compare(now) {
		v.o.Log.Warn("the server that was started again lists something else than the one before", "list", c.method)
		if v.policy.Changed != nil {
			v.policy.Changed(c.method, c.before, c.after)
		}
	}
}

// ask sends the server a request of attache's own and waits for the reply, nil if there
// is none.
func (v *Supervisor) ask(ctx context.Context, method string, params []byte) *wire.Message {
	reply := make(chan *wire.Message, 1)
	id := v.o.Asks.Add(wire.Server, readyTime, func(m *wire.Message) { reply <- m }, v.forget)
	if id == "" {
		return nil
	}
	v.relay.Send(wire.Server, wire.NewRequest(wire.Client, []byte(id), method, params))
	select {
	case m := <-reply:
		return m
	case <-ctx.Done():
		v.forget(id)
		return <-reply
	}
}
