package access

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// ConnOptions are the options of one client connection.
type ConnOptions struct {
	// Catalog holds the tools that the server listed on this connection; nil means none.
	Catalog *middleware.Catalog
	// Log receives a line for each refusal; nil discards them.
	Log *slog.Logger
}

// Conn applies the rules to one client connection.
type Conn struct {
	*Shared
	catalog *middleware.Catalog
	log     *slog.Logger

	// Used by the client's direction only.
	inputs expression.Inputs // for the call being judged
	tools  glob.Names[*candidates]
}

// Connect returns the layers of one connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	return &Conn{
		Shared:  s,
		catalog: cmp.Or(o.Catalog, new(middleware.Catalog)),
		log:     cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		tools:   glob.Names[*candidates]{All: s.all, Find: s.candidates},
	}
}

// Layer returns the layer that judges calls. It must run behind the layers that edit
// them.
func (c *Conn) Layer() middleware.Layer {
	return middleware.Layer{Name: layerName, Wrap: c.wrap, Enforces: true, ArgumentNames: c.reads}
}

func (c *Conn) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From == wire.Client && m.MethodIs("tools/call") {
			return c.call(ctx, m, next, waitState{})
		}
		return next(ctx, m)
	}
}

// A waitState records what a call has waited for.
type waitState struct {
	until time.Time // the end of the time to wait for the Lender; zero if the call has not waited for it
	list  bool      // it has waited for annotations
}

// call judges a call, which waits for the Lender no longer than waited.until. If the decision
// depends on annotations, the call waits once until they are known.
func (c *Conn) call(ctx context.Context, m *wire.Message, next middleware.Handler, waited waitState) error {
	call := middleware.CallFrom(ctx)
	view := sessionstate.ContextOf(call)
	tool := m.Name().View()
	d, steps := c.judge(m, view, tool, call.Explained())
	if d.annotated != "" && !waited.list {
		if ready := c.catalog.AskUnknown(tool, call, m); ready != nil {
			c.suspendForList(call, m, next, ready, waited, d)
			return nil
		}
	}
	if answered := c.takeRates(&d, view, tool, waited.until); answered != nil {
		c.suspend(call, m, next, answered, waited)
		return nil
	}
	return c.finish(ctx, m, next, &d, steps)
}

// finish executes a decision: it passes the call on, or answers it.
func (c *Conn) finish(ctx context.Context, m *wire.Message, next middleware.Handler, d *decision, steps []step) error {
	call := middleware.CallFrom(ctx)
	view := sessionstate.ContextOf(call)
	tool := m.Name().View()
	if call.Noted() {
		c.noteDecision(call, d, steps)
	}
	if call.Explained() {
		c.noteRates(call, d, tool)
	}
	if d.allowed {
		return next(ctx, m)
	}
	c.logRefusal(call, view, tool, d)
	if m.Kind() != wire.Request {
		return nil
	}
	return call.Answer(ctx, wire.RefusalReply(m, d.text, view != nil && view.Modern))
}

// suspendForList judges the call again when the annotations are known. A call that cannot wait is refused: d, which
// was decided without annotations, may allow what they would refuse.
func (c *Conn) suspendForList(call *middleware.Call, m *wire.Message, next middleware.Handler, ready <-chan struct{}, waited waitState, d decision) {
	call.Suspend(m, ready, middleware.AskTime, func(ctx context.Context, m *wire.Message) error {
		select {
		case <-ready:
			return c.call(ctx, m, next, waitState{waited.until, true})
		default:
			if d.allowed {
				d = undecided(d.annotated, errors.New("the annotations of the tool are not known yet, and neither a notification nor a member of a batch can wait for them"))
			}
			return c.finish(ctx, m, next, &d, nil)
		}
	})
}

// suspend judges the call again when the Lender has answered. A frame that cannot be suspended,
// such as a notification or a member of a batch, blocks in the resume function instead.
func (c *Conn) suspend(call *middleware.Call, m *wire.Message, next middleware.Handler, answered <-chan struct{}, waited waitState) {
	if waited.until.IsZero() {
		waited.until = time.Now().Add(waitTime)
	}
	call.Suspend(m, answered, time.Until(waited.until), func(ctx context.Context, m *wire.Message) error {
		select {
		case <-answered:
		case <-time.After(time.Until(waited.until)):
		}
		return c.call(ctx, m, next, waited)
	})
}

// judge decides about a call by the rules. With explain it also returns the result of each rule.
func (c *Conn) judge(m *wire.Message, view *sessionstate.Context, tool string, explain bool) (d decision, steps []step) {
	if !m.Plain() {
		// The relay refuses such a frame itself where rules enforce.
		return undecided(byDefaultRule, wire.ErrNotPlain), nil
	}
	in := &c.inputs
	in.Context, in.Tool, in.Server, in.Arguments = view, tool, c.o.Server, m.Arguments().Raw
	q := request{inputs: in}
	if c.readsAnnotations {
		t, known := c.catalog.Tool(tool)
		if q.unknown = !known; t != nil {
			in.Annotations = t.Annotations
		}
	}
	if explain {
		d = c.decide(c.all, q, func(s step) { steps = append(steps, s) })
	} else {
		d = c.decide(c.tools.Of(tool), q, nil)
	}
	in.Clear()
	return d, steps
}

// takeRates takes the tokens of a call that is allowed, and refuses it if a rate is reached. If it returns
// a channel, nothing is decided yet: it must be called again when the channel is closed. Once until has
// passed, it always decides.
func (c *Conn) takeRates(d *decision, view *sessionstate.Context, tool string, until time.Time) (answered <-chan struct{}) {
	if !d.allowed || len(c.rates) == 0 {
		return nil
	}
	now := time.Now()
	late := !until.IsZero() && !now.Before(until)
	answered = c.limiters.take(c.rates, d, view, tool, attempt{now, c.o.Down, late})
	if d.rate != none {
		d.by = c.o.Rates[d.rate].Name
	}
	return answered
}

// logRefusal logs a refusal, as a warning if the call could not be decided, because then
// somebody has to correct the cause.
func (c *Conn) logRefusal(call *middleware.Call, view *sessionstate.Context, tool string, d *decision) {
	level := slog.LevelInfo
	if d.reason == errored {
		level = slog.LevelWarn
	}
	session, _ := view.Lookup("session.id")
	c.log.Log(call.LogContext(), level, "a call was refused", "tool", middleware.Clip(tool), "why", d.String(), "session", session.Value)
}
