package teams

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// ConnOptions are the options of one client connection.
type ConnOptions struct {
	// Catalog holds the tools that the server listed on this connection; nil means none.
	Catalog *middleware.Catalog
	// Results describes the client and its tools; nil means an empty one.
	Results *toolresult.Memory
	// ToolCalls passes the callers of tools to the server of the teams tools; nil for other
	// servers.
	ToolCalls *ToolCalls
}

// A Conn is the layer of one client connection.
type Conn struct {
	shared *Shared
	o      ConnOptions

	// The state of the last call, because the next one usually has the same session, and finding
	// the session may need a look at the client's process. Used by the client's direction only.
	view    *sessionstate.Context
	session *session
	carrier *carrier // nil before the first call
	named   bool     // whether the client's name is known
}

// Connect returns the layer of one connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	o.Catalog = cmp.Or(o.Catalog, new(middleware.Catalog))
	o.Results = cmp.Or(o.Results, new(toolresult.Memory))
	return &Conn{shared: s, o: o}
}

// Layer returns the layer. It must run inside the layer of the briefing, so that the briefing is
// in front of the messages.
func (c *Conn) Layer() middleware.Layer {
	return middleware.Layer{Name: "teams", Wrap: c.wrap}
}

func (c *Conn) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From == wire.Client {
			c.observe(middleware.CallFrom(ctx), m)
		}
		return next(ctx, m)
	}
}

// observe handles a frame from the client. A server of any kind registers the session at the first tools/call.
// The server of the teams tools does so earlier, so that others see the session: at notifications/initialized,
// and in 2026-07-28, which has none, with the first request that is not server/discover. See also isNamed.
func (c *Conn) observe(call *middleware.Call, m *wire.Message) {
	view := sessionstate.ContextOf(call)
	if view == nil {
		return
	}
	switch m.Kind() {
	case wire.Notification:
		// The notification has no credential. If credentials come with requests, the session would be one of
		// no tenant, beside that of the first request.
		if c.o.ToolCalls != nil && m.MethodIs("notifications/initialized") && (view.Principal != nil || !c.shared.o.LateCredentials) && c.isNamed(view) {
			c.shared.session(view, c.o.Results) // so that others see the session before its first call
		}
		return
	case wire.Request:
	default:
		return
	}
	if !c.named || !m.MethodIs("tools/call") {
		c.o.Results.LearnClient(m)
		c.named, c.view = c.o.Results.ClientName() != "", nil // the session depends on the name
	}
	response, isResult := c.o.Results.Expect(m)
	switch {
	case isResult:
	case m.MethodIs("tools/list") && c.o.Results.Extends(c.shared.o.Structured):
		call.OnReply(func(_ context.Context, reply *wire.Message) error { return c.o.Results.Extend(call, reply) })
		return
	case c.o.ToolCalls == nil || !view.Modern || m.MethodIs("server/discover") || !c.isNamed(view):
		return // such a request may be a probe, which must not register a session
	}
	s := c.sessionOf(view)
	if c.o.ToolCalls != nil && m.MethodIs("tools/call") {
		c.addHandle(call, m, s, view)
	}
	if s == nil {
		return
	}
	c.noteSeen(call, s)
	if isResult {
		c.expect(call, s, response)
	}
}

// isNamed reports whether a frame that is no call belongs to the same session as the calls. If the client names the
// session only in calls, the frame has the session of the client's process, whose messages nobody would read.
func (c *Conn) isNamed(view *sessionstate.Context) bool {
	return view.Session.Source != sessionstate.None || !c.o.Results.Client().NamesInCalls
}

// sessionOf returns the session of a call, or nil.
func (c *Conn) sessionOf(view *sessionstate.Context) *session {
	if c.view != view {
		c.view, c.session = view, c.shared.session(view, c.o.Results)
	}
	return c.session
}

// expect adds the hook that puts waiting messages into the reply to a call. The hook of the last call is
// used again if it is for the same session and tool, so that a call without messages allocates nothing.
func (c *Conn) expect(call *middleware.Call, s *session, r toolresult.Response) {
	s.begun.Add(1)
	c.shared.askWithCall(s)
	if last := c.carrier; last == nil || last.s != s || last.response != r {
		c.carrier = &carrier{c, s, r}
	}
	call.OnReplyIf(c.carrier)
}

// A carrier is the hook that puts messages for a session into the results of a tool.
type carrier struct {
	c        *Conn
	s        *session
	response toolresult.Response
}

// Wanted implements middleware.LateHook: without mail the reply is not read. It is called once for a
// call, also if that was cancelled; for a call without a reply see calling.
func (r *carrier) Wanted() bool {
	r.s.ended.Add(1)
	return r.s.mail.Load()
}

// Reply implements middleware.LateHook.
func (r *carrier) Reply(ctx context.Context, reply *wire.Message) error {
	call := middleware.CallFrom(ctx)
	return r.c.respond(call, sessionstate.ContextOf(call), r.s, r.response, reply)
}

// noteSeen marks the messages of earlier results as seen, because the client has sent another
// request.
func (c *Conn) noteSeen(call *middleware.Call, s *session) {
	if !s.unseen.Load() {
		return
	}
	s.mu.Lock()
	carried := s.carried
	s.carried = nil
	s.unseen.Store(false)
	s.mu.Unlock()
	for _, t := range carried {
		note(call, middleware.Allowed, "seen: "+ids(t))
	}
	c.shared.background(func(ctx context.Context) {
		db, err := c.shared.open()
		for _, t := range carried {
			if err == nil {
				err = db.MarkSeen(ctx, t)
			}
		}
		if err != nil {
			c.shared.warn(err)
		}
	})
}

// respond puts the waiting messages of a session into a reply, if the reply can carry them. The reply waits at
// most Options.Wait for the registry. Messages that come too late are given back.
func (c *Conn) respond(call *middleware.Call, view *sessionstate.Context, s *session, r toolresult.Response, reply *wire.Message) error {
	if c.o.Results.Handle(r, reply) || call.Cancelled() {
		return nil
	}
	if c.o.ToolCalls != nil && r.Tool == "read_messages" {
		return nil // it returns messages itself, and a peek leaves them unread
	}
	if why := r.Unfit(c.o.Catalog, reply); why != "" {
		if call.Explained() {
			note(call, middleware.Skipped, why)
		}
		return nil
	}
	d := &delivery{c: c, s: s, done: make(chan struct{})}
	if !c.shared.background(func(ctx context.Context) { d.take(ctx, s.me.Load().Ref) }) {
		return nil
	}
	call.Suspend(reply, d.done, c.shared.o.Wait, func(_ context.Context, reply *wire.Message) error {
		taking := d.taking.Swap(new(store.Taking))
		switch {
		case taking == nil:
			return nil
		case call.Cancelled():
			c.shared.settleLater(s, taking, store.NotSent)
			return nil
		}
		return c.carry(call, view, s, taking, r, reply)
	})
	return nil
}

// carry puts messages into a reply, and settles them when it was written: settled before, they would be lost
// if attache ended in between. If it ends before it settles, they come again.
func (c *Conn) carry(call *middleware.Call, view *sessionstate.Context, s *session, taking *store.Taking, r toolresult.Response, reply *wire.Message) error {
	marker, _ := json.Marshal(map[string]any{MarkerKey: map[string]any{"ids": strings.Fields(ids(taking))}})
	plan := c.o.Results.Plan(call, c.shared.o.Structured, c.o.Catalog, r, reply)
	err := plan.Put(call, r, reply, toolresult.Text{
		Text: Block(taking.Messages, taking.Remaining, c.shared.o.Now()), Meta: marker,
		Layer: "teams", Rule: "teams", Why: "carried: " + ids(taking), Source: "other agents",
	}, view.Protocol)
	if err != nil {
		c.shared.settleLater(s, taking, store.NotSent)
		return err
	}
	outcome := store.Arrived
	if !plan.Seen {
		outcome = store.Unsure
	}
	call.OnSent(func(err error) {
		if err != nil {
			outcome = store.NotSent
		}
		c.shared.settleLater(s, taking, outcome)
	})
	return nil
}

func note(call *middleware.Call, act middleware.Act, why string) {
	call.Note(middleware.Note{Layer: "teams", Rule: "teams", Act: act, Why: why})
}

// A delivery is an attempt to put messages into a reply.
type delivery struct {
	c    *Conn
	s    *session
	done chan struct{} // closed when take has returned
	// taking has the messages for the reply, nil before they are known. When the reply no longer waits, it
	// leaves another value there, and take gives back what it gets.
	taking atomic.Pointer[store.Taking]
}

// take takes messages from the registry for the reply.
func (d *delivery) take(ctx context.Context, ref store.Ref) {
	defer close(d.done)
	db, err := d.c.shared.open()
	if err != nil || d.s.unsettled.Load() > 0 {
		return
	}
	taking, err := db.Take(ctx, ref, store.TakeOption{Limit: store.CarryLimit, Cut: true})
	switch {
	case err != nil:
		d.c.shared.warn(err)
		return
	case len(taking.Messages) == 0:
		d.c.shared.ask(ctx, db, d.s) // another process has taken them: lower the flag
		return
	}
	if !d.taking.CompareAndSwap(nil, taking) {
		_ = db.Settle(ctx, taking, store.NotSent, d.c.shared.instance) // after an error its lease expires
	}
}

// settleEvery is the pause after messages could not be settled.
const settleEvery = time.Second

// settleLater calls settle in the background. If messages were written and the registry does not answer, it
// tries again, and meanwhile the process takes no messages of the session: it would get the same ones.
// Messages that were not sent stay in the mailbox anyway.
func (s *Shared) settleLater(m *session, taking *store.Taking, o store.Outcome) {
	s.background(func(ctx context.Context) {
		if o != store.NotSent {
			m.unsettled.Add(1)
			defer m.unsettled.Add(-1)
		}
		for !s.settle(ctx, m, taking, o) && o != store.NotSent {
			select {
			case <-s.done:
				return
			case <-time.After(settleEvery):
			}
		}
	})
}

// settle records the outcome of messages, and asks for the next ones. Those that have arrived count as seen
// when the client sends its next request. It reports whether the registry answered.
func (s *Shared) settle(ctx context.Context, m *session, taking *store.Taking, o store.Outcome) bool {
	db, err := s.open()
	if err == nil {
		err = db.Settle(ctx, taking, o, s.instance)
	}
	if err != nil {
		s.warn(err)
		return false
	}
	s.ask(ctx, db, m)
	if o == store.Arrived {
		m.mu.Lock()
		m.carried = append(m.carried, taking)
		m.unseen.Store(true)
		m.mu.Unlock()
	}
	return true
}
