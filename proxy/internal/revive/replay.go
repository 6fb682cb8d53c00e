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
	late := time.After(settleTime)
	for range n {
		select {
		case <-answered:
		case <-late:
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

// ask sends the server a request of attache's own and waits for the reply. It returns nil if there
// is none by the end of ctx or of the server.
func (v *Supervisor) ask(ctx context.Context, method string, params []byte, send func(*wire.Message) error, ended <-chan struct{}) *wire.Message {
	reply := make(chan *wire.Message, 1)
	id := v.o.Asks.Add(wire.Server, readyTime, func(m *wire.Message) { reply <- m }, v.forget)
	if id == "" {
		return nil // the session is over
	}
	defer v.forget(id)
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

// askReady asks a server that frames of the client's reach, too.
func (v *Supervisor) askReady(ctx context.Context, method string, params []byte) *wire.Message {
	send := func(m *wire.Message) error {
		v.relay.Send(wire.Server, m)
		return nil
	}
	return v.ask(ctx, method, params, send, nil)
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
		v.o.Log.Warn("the server that was started again lists something else than the one before", "list", c.method)
		if v.policy.Changed != nil {
			v.policy.Changed(c.method, c.before, c.after)
		}
	}
}
