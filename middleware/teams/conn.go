package teams

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// ConnOptions are what belongs to one client connection.
type ConnOptions struct {
	// Catalog knows what tools/list said on this connection; nil stands for an empty one.
	Catalog *middleware.Catalog
	// Results knows the client and its tools; nil stands for an empty one.
	Results *toolresult.Memory
	// ToolCalls is where the server behind this process learns who calls a tool; nil for all
	// servers but that of the teams tools.
	ToolCalls *ToolCalls
}

// A Conn is the layer of one client connection.
type Conn struct {
	shared *Shared
	o      ConnOptions

	// Of the call before, which is most often of the same session: to find its session takes a
	// look at the client's process. Client's direction only.
	view    *sessionstate.Context
	session *session
	carrier *carrier // nil before the first call
	named   bool     // the client's name is known
}

// Connect returns the layer of one connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	if o.Catalog == nil {
		o.Catalog = new(middleware.Catalog)
	}
	if o.Results == nil {
		o.Results = new(toolresult.Memory)
	}
	return &Conn{shared: s, o: o}
}

// Layer returns the layer. It is inside the layer of the briefing, so the briefing stands in
// front of the messages.
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

// observe handles a frame from the client.
func (c *Conn) observe(call *middleware.Call, m *wire.Message) {
	view, _ := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context)
	if view == nil {
		return
	}
	switch m.Kind() {
	case wire.Notification:
		if c.o.ToolCalls != nil && m.MethodIs("notifications/initialized") {
			c.shared.of(view, c.o.Results) // registers the session: others see it before its first call
		}
		return
	case wire.Request:
	default:
		return
	}
	response, isResult := c.o.Results.Expect(m)
	if !isResult || !c.named {
		c.o.Results.LearnClient(m)
		c.named, c.view = c.o.Results.ClientName() != "", nil // the session depends on the name
	}
	switch {
	case isResult:
	case m.MethodIs("tools/list") && c.o.Results.Extends(c.shared.o.Structured):
		call.OnReply(func(_ context.Context, reply *wire.Message) error { return c.o.Results.Extend(call, reply) })
		return
	case c.o.ToolCalls == nil || !view.Modern || m.MethodIs("server/discover"):
		return // a probe leaves no trace
	}
	s := c.of(view)
	if c.o.ToolCalls != nil && m.MethodIs("tools/call") {
		c.introduce(call, m, s, view)
	}
	if s == nil {
		return
	}
	c.noteSeen(call, s)
	if isResult {
		c.expect(call, s, response)
	}
}

// of returns the session of a call, nil if it is of none.
func (c *Conn) of(view *sessionstate.Context) *session {
	if c.view != view {
		c.view, c.session = view, c.shared.of(view, c.o.Results)
	}
	return c.session
}

// expect has the reply to a call carry the messages that wait when it comes. Without mail the
// reply is not read.
func (c *Conn) expect(call *middleware.Call, s *session, r toolresult.Response) {
	s.begun.Add(1)
	c.shared.askWithCall(s)
	if last := c.carrier; last == nil || last.s != s || last.response != r {
		c.carrier = &carrier{c, s, r}
	}
	call.OnReplyIf(c.carrier)
}

// A carrier has the results of one tool carry the messages for one session.
type carrier struct {
	c        *Conn
	s        *session
	response toolresult.Response
}

// Wanted implements middleware.LateHook: without mail the reply is not read.
func (r *carrier) Wanted() bool {
	r.s.ended.Add(1)
	return r.s.mail.Load()
}

// Reply implements middleware.LateHook.
func (r *carrier) Reply(ctx context.Context, reply *wire.Message) error {
	call := middleware.CallFrom(ctx)
	view, _ := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context)
	return r.c.respond(call, view, r.s, r.response, reply)
}

// noteSeen notes that the client has sent a further request after messages went to it.
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
	c.shared.beside(func(ctx context.Context) {
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

// respond has a reply carry the messages that wait for its session, if it can.
func (c *Conn) respond(call *middleware.Call, view *sessionstate.Context, s *session, r toolresult.Response, reply *wire.Message) error {
	me := s.me.Load()
	if me == nil || c.o.Results.Handle(r, reply) || call.Cancelled() {
		return nil
	}
	if why := r.Unfit(c.o.Catalog, reply); why != "" {
		if call.Explained() {
			note(call, middleware.Skipped, why)
		}
		return nil
	}
	t := &turn{c: c, s: s, over: make(chan struct{})}
	if !c.shared.beside(func(ctx context.Context) { t.take(ctx, me.Ref) }) {
		return nil
	}
	call.Suspend(reply, t.over, c.shared.o.Wait, func(_ context.Context, reply *wire.Message) error {
		taking := t.claim()
		switch {
		case taking == nil:
			return nil
		case call.Cancelled():
			t.settle(taking, store.NotSent)
			return nil
		}
		return c.carry(call, view, t, taking, r, reply)
	})
	return nil
}

// carry puts messages into a reply, and settles them when it was written.
func (c *Conn) carry(call *middleware.Call, view *sessionstate.Context, t *turn, taking *store.Taking, r toolresult.Response, reply *wire.Message) error {
	marker, _ := json.Marshal(map[string]any{MarkerKey: map[string]any{"ids": strings.Fields(ids(taking))}})
	plan := c.o.Results.Plan(call, c.shared.o.Structured, c.o.Catalog, r, reply)
	err := plan.Put(call, r, reply, toolresult.Text{
		Text: Block(taking.Messages, taking.Remaining, c.shared.o.Now()), Meta: marker,
		Layer: "teams", Rule: "teams", Why: "carried: " + ids(taking), Source: "other agents",
	}, view.Protocol)
	if err != nil {
		t.settle(taking, store.NotSent)
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
		t.settle(taking, outcome)
	})
	return nil
}

// ids returns the ids of messages as notes have them.
func ids(taking *store.Taking) string {
	var all []string
	for _, m := range taking.Messages {
		all = append(all, m.ID)
	}
	return strings.Join(all, " ")
}

// note adds a note to the audit's record of the call.
func note(call *middleware.Call, act middleware.Act, why string) {
	call.Note(middleware.Note{Layer: "teams", Rule: "teams", Act: act, Why: why})
}

// A turn is one attempt to carry messages.
type turn struct {
	c    *Conn
	s    *session
	over chan struct{}

	mu     sync.Mutex
	taking *store.Taking
	late   bool // the reply was sent without messages
}

// take takes the messages, unless the reply was sent meanwhile.
func (t *turn) take(ctx context.Context, ref store.Ref) {
	defer close(t.over)
	db, err := t.c.shared.open()
	if err != nil {
		return
	}
	taking, err := db.Take(ctx, ref, store.TakeOption{Limit: store.CarryLimit, Cut: true})
	switch {
	case err != nil:
		t.c.shared.warn(err)
		return
	case len(taking.Messages) == 0:
		t.c.shared.ask(ctx, db, t.s)
		return
	}
	t.mu.Lock()
	late := t.late
	if !late {
		t.taking = taking
	}
	t.mu.Unlock()
	if late {
		_ = db.Settle(ctx, taking, store.NotSent, t.c.shared.instance) // its lease lapses
	}
}

// claim returns the messages that were taken in time, nil if there are none.
func (t *turn) claim() *store.Taking {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late = true
	return t.taking
}

// settle records in the background what became of the messages that were taken.
func (t *turn) settle(taking *store.Taking, o store.Outcome) {
	s := t.c.shared
	s.beside(func(ctx context.Context) { s.settle(ctx, t.s, taking, o) })
}

func (s *Shared) settle(ctx context.Context, m *session, taking *store.Taking, o store.Outcome) {
	db, err := s.open()
	if err == nil {
		err = db.Settle(ctx, taking, o, s.instance)
	}
	if err != nil {
		s.warn(err)
		return
	}
	s.ask(ctx, db, m)
	if o == store.Arrived {
		m.mu.Lock()
		m.carried = append(m.carried, taking)
		m.unseen.Store(true)
		m.mu.Unlock()
	}
}
