package teams

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// CallKey is the member of params._meta with the handle of a call of a teams tool.
const CallKey = "io.github.attache-mcp/caller"

// ToolCalls holds the calls in flight for the server of the teams tools, which is in this
// process. Its handles are random, and live as long as their calls, so no client can use that of another
// call. The zero value is ready to use.
type ToolCalls struct {
	byID sync.Map // handle to *ToolCall
}

// A ToolCall is a call of a teams tool, with the session that made it. attache determines the
// session; it is never an argument.
type ToolCall struct {
	c    *Conn
	s    *session // nil if the session is unknown
	view *sessionstate.Context

	mu        sync.Mutex
	cancelled bool // by the client
	sent      func(error)
	notes     []middleware.Note
}

// addHandle writes the handle of a call into the message. It replaces a value from the client.
func (c *Conn) addHandle(call *middleware.Call, m *wire.Message, s *session, view *sessionstate.Context) {
	tool := &ToolCall{c: c, s: s, view: view}
	id := rand.Text()
	c.o.ToolCalls.byID.Store(id, tool)
	if err := m.Set(wire.Quote(id), "params", "_meta", CallKey); err != nil {
		c.o.ToolCalls.byID.Delete(id) // the tool answers that it has no context
		return
	}
	call.OnReplyIf(&answer{tool, call, id})
}

// An answer is the hook for the answer to a call of a teams tool. The tool works in another goroutine, where
// it must not use the Call, so it leaves its notes and its function for OnSent in the ToolCall.
type answer struct {
	tool *ToolCall
	call *middleware.Call
	id   string // the handle of tool
}

// Wanted implements middleware.LateHook. It removes the handle, because the call is over.
func (a *answer) Wanted() bool {
	a.tool.c.o.ToolCalls.byID.Delete(a.id)
	if a.call.Cancelled() {
		a.tool.cancel()
	}
	return true
}

// Reply implements middleware.LateHook.
func (a *answer) Reply(context.Context, *wire.Message) error {
	a.tool.mu.Lock()
	defer a.tool.mu.Unlock()
	for _, n := range a.tool.notes {
		a.call.Note(n)
	}
	if a.tool.sent != nil {
		a.call.OnSent(a.tool.sent)
	}
	return nil
}

// cancel records that the client has cancelled the call, so that its answer will not be written.
func (c *ToolCall) cancel() {
	c.mu.Lock()
	sent := c.sent
	c.sent, c.cancelled = nil, true
	c.mu.Unlock()
	if sent != nil {
		sent(context.Canceled)
	}
}

// Get returns the call with a handle, or nil. Session works with nil too.
func (k *ToolCalls) Get(id string) *ToolCall {
	found, _ := k.byID.Load(id)
	c, _ := found.(*ToolCall)
	return c
}

// Session returns the store and the session that made the call, when it is registered. It waits for that up to
// retryAfter. It returns store.ErrNoContext if the session or its workspace is unknown, and
// store.ErrUnavailable if the registry cannot be opened.
func (c *ToolCall) Session(ctx context.Context) (*store.Store, *store.Session, error) {
	if c == nil || c.s == nil {
		return nil, nil, store.ErrNoContext
	}
	shared := c.c.shared
	if c.s.me.Load() == nil {
		select {
		case <-shared.register(c.s, c.view, c.c.o.Results.ClientName()):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(retryAfter):
			return nil, nil, errors.New("the session could not be registered in time")
		}
	}
	db, err := shared.open()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	me := c.s.me.Load()
	if me == nil {
		c.s.mu.Lock()
		err := c.s.err
		c.s.mu.Unlock()
		if errors.Is(err, store.ErrUnproved) || err == nil {
			err = store.ErrNoContext
		}
		return nil, nil, err
	}
	now, err := db.Session(ctx, me.Ref)
	if isOver(now, err) { // others have ended it, as after a long sleep of the machine
		shared.attach(ctx, c.s)
		now, err = db.Session(ctx, c.s.me.Load().Ref)
	}
	if isOver(now, err) {
		return nil, nil, store.ErrNoContext
	}
	return db, now, err
}

// isOver reports whether a session was ended or forgotten.
func isOver(s *store.Session, err error) bool {
	return errors.Is(err, store.ErrNoSession) || err == nil && s.State == store.Ended
}

// View returns the context of the session that made the call.
func (c *ToolCall) View() *sessionstate.Context { return c.view }

// onSent registers a function that is called after the answer was written to the client, or with
// an error if it cannot be written.
func (c *ToolCall) onSent(f func(error)) {
	c.mu.Lock()
	cancelled := c.cancelled
	c.sent = f
	c.mu.Unlock()
	if cancelled {
		f(context.Canceled)
	}
}

// Note adds a note to the call about the work of a tool.
func (c *ToolCall) Note(act middleware.Act, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, middleware.Note{Layer: "teams", Rule: "teams", Act: act, Why: why})
}

// Take takes messages for the answer to the call. They are settled when the answer was written, also if the
// call was cancelled meanwhile: then they stay queued. With peek nothing is taken.
func (c *ToolCall) Take(ctx context.Context, db *store.Store, me *store.Session, peek bool) (*store.Taking, error) {
	if !peek && c.s.unsettled.Load() > 0 {
		return &store.Taking{Remaining: me.Queued}, nil
	}
	taking, err := db.Take(ctx, me.Ref, store.TakeOption{Limit: store.ReadLimit, Peek: peek})
	if err != nil || peek || len(taking.Messages) == 0 {
		return taking, err
	}
	c.Note(middleware.Allowed, "carried: "+ids(taking))
	c.onSent(func(err error) {
		o := store.Arrived
		if err != nil {
			o = store.NotSent
		}
		c.c.shared.settleLater(c.s, taking, o)
	})
	return taking, nil
}
