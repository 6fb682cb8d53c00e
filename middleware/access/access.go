// Package access is the layer that decides who may call what, and how often.
//
// A rule names tools and what it takes to call them. Rules are read in order, and
// the first that decides does; a call that none decides meets the default:
//
//	access:
//	  default: deny
//	  hide: true
//	  rules:
//	    - {tools: ["delete_*"], deny: true, when: 'session.trust != "direct"', message: "Ask a person to delete."}
//	    - {tools: ["get_*", "list_*"], require: [records:read]}
//	    - {tools: ["write_*"], require: [records:write], when: 'has(arguments.path)'}
//	    - {tools: ["ping"]}
//	  rates:
//	    - {tools: ["*"], per: tenant, limit: 60/minute, burst: 10}
//
// A rule whose tools do not match, or whose condition does not hold, is passed
// over. Otherwise deny refuses; require refuses unless the principal holds every
// permission named, and allows if it does; a rule with neither allows. So a rule
// that is to hold beside others stands before them.
//
// Patterns and names are compared letter by letter. A name that looks like
// another, or has a blank behind it, is another: rules that allow, with a default
// of deny, are a boundary; rules that deny are not where a server takes names
// loosely.
//
// # What is judged
//
// The call as it will be sent: the layer stands behind those that edit calls, and
// knows tools by the server's names for them. A refusal is a tool result with
// isError whose text is for the model; it says what is missing, and never why
// else. A refused notification is dropped.
//
// Every decision about a call is a note, and so is every tool left out of a list.
//
// Whatever cannot be decided is refused: a condition that fails, a permission
// required of nobody, an identity that could not be looked up.
//
// A condition may read tool.annotations, as the server declared them in the last
// tools/list that passed. They are the server's word for itself, and before a
// list has passed they are unknown: let them forbid, never allow.
//
// # What is listed
//
// With Hide, a tool is left out of tools/list if no arguments could make its call
// allowed. A condition that reads arguments hides nothing. A list that cannot be
// filtered is answered as an error. What is hidden may still be called by who
// knows its name, and is then judged like any other.
//
// # Rates
//
// A rate is a token bucket for each session, user, tenant or tool, in the memory
// of this process. Only allowed calls take from it. A session key may come from
// the client's _meta: per session is for fairness, per user and per tenant bind.
// Calls without a user or tenant share one bucket.
package access

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// Options configure the layer. Zero values work: everything is allowed.
type Options struct {
	// Rules in order, the first that decides does.
	Rules []Rule
	// Default is what a call meets that no rule decides; "" stands for Allow.
	Default Default
	// Hide leaves tools out of tools/list that may not be called.
	Hide bool
	// Rates bound how often allowed calls are made.
	Rates []Rate

	// Server is the server's name, for conditions.
	Server string
	// LookupFailed, if not nil, returns why the identity of a session could not
	// be looked up, nil if it could or if there is none. Rules that depend on the
	// principal then refuse.
	LookupFailed func(view *sessionstate.Context) error
	// Memory, if not nil, has the layer begin with what another, of an earlier
	// configuration, has learnt and counted.
	Memory *Memory
	// Now is the clock, whose monotonic reading counts; nil stands for time.Now.
	Now func() time.Time
	// Log takes what is worth telling; nil discards it.
	Log *slog.Logger
}

// An Access is the layer and what it has learnt.
type Access struct {
	o      Options
	memory *Memory
	rates  []*buckets              // in memory
	names  []string                // of the rules, so that a note allocates none
	in     expression.Inputs       // of the call at hand; client's direction only
	rules  glob.Names[*candidates] // client's direction only, but for All

	learns  bool // a condition reads annotations
	filters bool // a tool may have to be hidden
	private bool // what is listed depends on who asks
}

// New returns the layer. The error is for a rule or rate that makes no sense.
func New(o Options) (*Access, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	a := &Access{o: o, memory: o.Memory}
	if a.memory == nil {
		a.memory = new(Memory)
	}
	a.rates = a.memory.buckets(o.Rates)
	for i := range o.Rules {
		a.names = append(a.names, ruleName(i))
	}
	a.rules = glob.Names[*candidates]{All: a.o.every(), Find: a.o.candidates}
	a.filters = o.Hide && o.Default == Deny
	for _, r := range o.Rules {
		a.learns = a.learns || r.When != nil && r.When.UsesAnnotations()
		if o.Hide && !r.judgesCalls() {
			a.filters = a.filters || r.mayRefuse()
			a.private = a.private || r.usesSession()
		}
	}
	a.private = a.private && a.filters
	return a, nil
}

func (o *Options) check() error {
	if o.Default != "" && o.Default != Allow && o.Default != Deny {
		return fmt.Errorf("access.default is %q: write allow or deny", string(o.Default))
	}
	for i := range o.Rules {
		if err := o.Rules[i].Check(); err != nil {
			return fmt.Errorf("access.rules[%d]: %w", i, err)
		}
		if err := CheckOrder(o.Rules, i); err != nil {
			return fmt.Errorf("access.rules[%d] %w", i, err)
		}
	}
	for i := range o.Rates {
		if err := o.Rates[i].Check(); err != nil {
			return fmt.Errorf("access.rates[%d]: %w", i, err)
		}
	}
	return nil
}

// Layer returns the layer. It stands behind the layers that edit calls.
func (a *Access) Layer() middleware.Layer {
	return middleware.Layer{Name: layerName, Wrap: a.wrap, Enforces: true}
}

func (a *Access) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From == wire.Client && m.MethodIs("tools/call") {
			return a.call(ctx, m, next)
		}
		return next(ctx, m)
	}
}

// ListLayer returns the layer that learns from tools/list, and takes out of it what
// may not be called. It stands in front of the layers that edit calls: those have
// to see every tool, whoever asked for the list.
func (a *Access) ListLayer() middleware.Layer {
	return middleware.Layer{Name: listLayerName, Wrap: a.wrapLists, Enforces: true}
}

// Lists reports whether there is anything for ListLayer to do.
func (a *Access) Lists() bool { return a.learns || a.filters }

func (a *Access) wrapLists(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From == wire.Server:
			if a.learns && m.MethodIs("notifications/tools/list_changed") {
				a.memory.forget()
			}
		case m.MethodIs("tools/list") && a.Lists():
			call := middleware.CallFrom(ctx)
			if a.filters {
				call.MustHold()
			}
			call.OnReply(a.listed(viewOf(call)))
		}
		return next(ctx, m)
	}
}

func viewOf(call *middleware.Call) *sessionstate.Context {
	view, _ := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context)
	return view
}

func (a *Access) call(ctx context.Context, m *wire.Message, next middleware.Handler) error {
	call := middleware.CallFrom(ctx)
	view := viewOf(call)
	tool := m.Name().View()
	d, steps := a.decide(m, view, tool, call.Explained())
	if call.Noted() {
		a.noteDecision(call, &d, steps)
	}
	if call.Explained() {
		a.noteRates(call, &d, tool)
	}
	if d.Allowed {
		return next(ctx, m)
	}
	a.tell(call, view, tool, &d)
	if m.Kind() != wire.Request {
		return nil
	}
	return call.Answer(ctx, wire.RefusalReply(m, d.Text, view != nil && view.Modern))
}

// decide judges a call. With explain it also tells what came of each rule.
func (a *Access) decide(m *wire.Message, view *sessionstate.Context, tool string, explain bool) (d Decision, steps []Step) {
	if !m.Plain() {
		// The relay refuses such a frame itself where rules enforce.
		return undecided(none, wire.ErrNotPlain), nil
	}
	a.in.Context, a.in.Tool, a.in.Server = view, tool, a.o.Server
	a.in.Annotations, a.in.Arguments = a.learnt(tool), m.Arguments().Raw
	q := Request{Inputs: &a.in, LookupErr: a.lookupErr(view)}
	if explain {
		d, steps = Explain(&a.o, q)
	} else {
		d = decide(&a.o, a.rules.Of(tool), q, nil)
	}
	a.in.Clear()
	if d.Allowed && len(a.rates) > 0 {
		a.memory.take(a.rates, &d, view, tool, a.o.Now())
	}
	return d, steps
}

func (a *Access) lookupErr(view *sessionstate.Context) error {
	if a.o.LookupFailed == nil {
		return nil
	}
	return a.o.LookupFailed(view)
}

// tell logs a refusal. What could not be decided needs somebody to look at it.
func (a *Access) tell(call *middleware.Call, view *sessionstate.Context, tool string, d *Decision) {
	level := slog.LevelInfo
	if d.Reason == Undecided {
		level = slog.LevelWarn
	}
	session, _ := view.Lookup("session.id")
	a.o.Log.Log(call.LogContext(), level, "a call was refused", "tool", cut(tool), "why", d.String(), "session", session.Value)
}

// cut shortens a name that came over the wire for a log line.
func cut(name string) string {
	if len(name) > 200 {
		return name[:200] + "…"
	}
	return name
}
