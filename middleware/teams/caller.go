package teams

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// CallerKey is the member of params._meta that tells the server of the teams tools who calls.
const CallerKey = "io.github.attache-mcp/caller"

// Callers hands the caller of a tool to a server in this process. The zero value is
// ready.
type Callers struct {
	mu   sync.Mutex
	byID map[string]*Caller
}

// A Caller is the session that called a tool. It is known to attache and never an argument.
type Caller struct {
	c    *Conn
	s    *session // nil if the session is not known
	view *sessionstate.Context

	mu    sync.Mutex
	over  error // why the answer will not be written, once that is known
	sent  func(error)
	notes []middleware.Note
}

// introduce writes the handle of the caller into the call, in place of what a client wrote there.
func (c *Conn) introduce(call *middleware.Call, m *wire.Message, s *session, view *sessionstate.Context) {
	caller := &Caller{c: c, s: s, view: view}
	id := c.o.Callers.add(caller)
	if err := m.Set(wire.Quote(id), "params", "_meta", CallerKey); err != nil {
		c.o.Callers.remove(id) // the tool answers that it has no context
		return
	}
	call.OnReplyIf(&answer{caller, call, id})
}

// An answer is what the server of the teams tools will answer to a call.
type answer struct {
	caller *Caller
	call   *middleware.Call
	id     string // the handle of the caller
}

// Wanted implements middleware.LateHook. The call is over, so its caller is removed.
func (a *answer) Wanted() bool {
	a.caller.c.o.Callers.remove(a.id)
	if a.call.Cancelled() {
		a.caller.cancel()
	}
	return true
}

// Reply implements middleware.LateHook.
func (a *answer) Reply(context.Context, *wire.Message) error {
	a.caller.mu.Lock()
	defer a.caller.mu.Unlock()
	for _, n := range a.caller.notes {
		a.call.Note(n)
	}
	if a.caller.sent != nil {
		a.call.OnSent(a.caller.sent)
	}
	return nil
}

// cancel notes that the client has cancelled the call: its answer will not be written.
func (c *Caller) cancel() {
	c.mu.Lock()
	sent := c.sent
	c.sent, c.over = nil, context.Canceled
	c.mu.Unlock()
	if sent != nil {
		sent(context.Canceled)
	}
}

func (k *Callers) add(c *Caller) string {
	id := rand.Text()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byID == nil {
		k.byID = map[string]*Caller{}
	}
	k.byID[id] = c
	return id
}

func (k *Callers) remove(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byID, id)
}

// Get returns the caller of a handle, nil if there is none.
func (k *Callers) Get(id string) *Caller {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byID[id]
}

// errLate is returned where registering takes too long.
var errLate = errors.New("the session could not be registered in time")

// Session returns the store and the registered session of the caller. It waits for that, and
// returns store.ErrNoContext if the session or its workspace is not known.
func (c *Caller) Session(ctx context.Context) (*store.Store, *store.Session, error) {
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
			return nil, nil, errLate
		}
	}
	db, err := shared.open()
	if err != nil {
		return nil, nil, errors.Join(store.ErrUnavailable, err)
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
	if store.IsGone(err) || err == nil && now.State == store.Ended {
		return nil, nil, store.ErrNoContext
	}
	return db, now, err
}

// View returns what is known of the caller's session.
func (c *Caller) View() *sessionstate.Context { return c.view }

// onSent calls f when the answer to the call was written to the client, or will not be.
func (c *Caller) onSent(f func(error)) {
	c.mu.Lock()
	over := c.over
	c.sent = f
	c.mu.Unlock()
	if over != nil {
		f(over)
	}
}

// Note adds to the audit's record of the call what a tool did.
func (c *Caller) Note(act middleware.Act, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, middleware.Note{Layer: "teams", Rule: "teams", Act: act, Why: why})
}

// Take takes messages for the answer to the call, which settles them.
func (c *Caller) Take(ctx context.Context, db *store.Store, me *store.Session, peek bool) (*store.Taking, error) {
	taking, err := db.Take(ctx, me.Ref, store.TakeOption{Limit: store.ReadLimit, Peek: peek})
	if err != nil || peek || len(taking.Messages) == 0 {
		return taking, err
	}
	c.onSent(func(err error) {
		o := store.Arrived
		if err != nil {
			o = store.NotSent
		}
		c.c.shared.beside(func(ctx context.Context) { c.c.shared.settle(ctx, c.s, taking, o) })
	})
	return taking, nil
}
