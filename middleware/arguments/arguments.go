// Package arguments is the layer that decides where the arguments of tool calls come from, and
// shows the client a schema that agrees with it.
//
// A rule names tools, an argument and a mode:
//
//	mode    argument is absent             argument is present           in the schema
//	fill    filled with the rule's value   kept; a difference is logged  not required
//	pin     set to the rule's value        overwritten, with a note      removed
//	forbid  passes                         refused                       removed
//
// Fill helps the model: it need not give what the session knows. An argument is filled only
// where the upstream's own schema has it. The layer learns schemas from tools/list as it
// passes, and asks for the list once when a call comes first. If something cannot be found
// out, the call passes as it came, with one exception: if a required value is missing, the
// call is answered with a tool result that says so. The schema lets the model leave the
// argument out only while the session has a value for it, or the client can be asked for one.
//
// Only plain objects are edited and filled. Where a schema has "$ref", "oneOf", "not" or
// anything else that looks at the object around the argument, the tool is shown as it is and
// the argument is not filled; it is still pinned.
//
// Pin and forbid are for operators, who decide and leave the model no choice. What cannot be
// decided is refused. A pinned argument is set where the schema has it or the schema is not
// known; where the schema does not have it, a value in the call is still overwritten. If a pin
// has no value, because nobody is identified or the session does not know it, the call is
// refused: the client's own value is never sent instead. The relay refuses frames that parsers
// may read differently; see [middleware.Layer].
//
// A client must not choose its own principal, so a fill rule whose value depends on the
// principal acts as a pin.
//
// Of several rules for one argument, the first one that names the tool and whose condition is
// true applies; pins and forbids come before all fills, wherever they are listed. Rules judge
// the call as the client sent it. Fills are written first and pins after them, so that no
// filled value ends up inside a pinned one.
package arguments

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A Workspace can ask for a workspace that is not known yet. Package capture implements it.
type Workspace interface {
	// CanAskWorkspace reports whether there is a way to find out.
	CanAskWorkspace(call *middleware.Call) bool
	// AskWorkspace starts finding out; ok is false if there is nothing to wait
	// for.
	AskWorkspace(call *middleware.Call) (ready <-chan struct{}, ok bool)
	// Refresh returns what is known once it is ready, and attaches it to call.
	Refresh(call *middleware.Call) *sessionstate.Context
}

// Options are the rules and what else is the same for all connections.
type Options struct {
	// Rules are in order: of those for one argument of one tool the first that applies counts,
	// and a pin or forbid counts before any fill.
	Rules []Rule
	// Server is the server's name, for expressions.
	Server string
	// Scrub removes secrets from the raw JSON of a call's own argument before it is
	// logged; path is the argument's. Nil leaves it as it is.
	Scrub func(path []string, raw []byte) []byte
}

// Shared holds the compiled rules. It serves any number of connections at once.
type Shared struct {
	o        Options
	rules    []*rule
	slots    int  // of different arguments
	overlap  bool // the argument of a rule is inside that of another
	enforces bool
	names    [][]string // the argument names of the rules and their conditions, by depth

	annotated bool // a condition or value reads annotations
}

// Compile checks and prepares the rules.
func Compile(o Options) (*Shared, error) {
	s := &Shared{o: o}
	paths := map[string]int{}
	for _, config := range o.Rules {
		if err := config.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", config.Name, err)
		}
		r := newRule(config)
		if _, known := paths[r.path]; !known {
			paths[r.path] = len(paths)
		}
		r.slot = paths[r.path]
		s.annotated = s.annotated || usesAnnotations(r.When) || usesAnnotations(r.Value)
		s.enforces = s.enforces || r.enforces()
		s.rules = append(s.rules, &r)
	}
	s.slots = len(paths)
	bindingFirst(s.rules)
	var reads []middleware.Layer
	for i, r := range s.rules {
		r.index = i
		reads = append(reads, middleware.Layer{ArgumentNames: r.reads()})
	}
	s.names = middleware.Needs(reads...).ArgumentNames
	for outer := range paths {
		for inner := range paths {
			s.overlap = s.overlap || strings.HasPrefix(inner, outer+".")
		}
	}
	return s, nil
}

func usesAnnotations(p *expression.Program) bool { return p != nil && p.UsesAnnotations() }

// ConnOptions are those of one connection.
type ConnOptions struct {
	// Catalog is the connection's; nil makes one that never learns anything.
	Catalog *middleware.Catalog
	// Workspace, if not nil, is asked when a workspace is missing.
	Workspace Workspace
	// Log takes what is worth telling; nil discards it.
	Log *slog.Logger
}

// A Conn is the layer of one connection.
type Conn struct {
	*Shared
	catalog   *middleware.Catalog
	workspace Workspace
	log       *slog.Logger

	// Client's direction only:
	plans      map[string]*plan  // by tool
	readings   []reading         // of the rules' facts, by the index of the rule
	in         expression.Inputs // of the call at hand, if reading
	reading    bool
	settled    []bool       // by slot: a rule has decided about this call
	callValues []wire.Value // the current call's values for the rules that may apply; none if it was not scanned
	splices    []wire.Splice
	added      []byte // members to add, of values that were computed

	rounds rounds // has its own lock

	mu     sync.Mutex
	logged map[event]bool // events that were logged once
}

// Connect returns the layer for one connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	c := &Conn{Shared: s, catalog: o.Catalog, workspace: o.Workspace, log: o.Log, rounds: rounds{seed: maphash.MakeSeed()}}
	if c.catalog == nil {
		c.catalog = new(middleware.Catalog)
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.readings = make([]reading, len(s.rules))
	c.callValues = make([]wire.Value, 0, len(s.rules))
	c.settled = make([]bool, s.slots)
	return c
}

// Layer returns the layer. It stands in front of the layers that judge a call, and of
// the catalogue.
func (c *Conn) Layer() middleware.Layer {
	return middleware.Layer{Name: layerName, Wrap: c.wrap, Enforces: c.enforces, ArgumentNames: c.names}
}

const layerName = "arguments"

func (c *Conn) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From == wire.Server:
		case m.MethodIs("tools/call"):
			return c.call(ctx, m, next, waitState{})
		case m.MethodIs("tools/list"):
			call := middleware.CallFrom(ctx)
			call.OnReply(c.editList(sessionstate.ContextOf(call)))
		}
		return next(ctx, m)
	}
}

// A waitState says what a call has waited for: it waits for nothing twice.
type waitState struct{ list, workspace bool }

// waitTime is how long a call waits. It is longer than the question takes, so a question that
// has timed out is over when the call goes on.
const waitTime = middleware.ListTimeout + middleware.ListTimeout/4

// call takes a tools/call, request or notification.
func (c *Conn) call(ctx context.Context, m *wire.Message, next middleware.Handler, was waitState) error {
	tc := toolCall{call: middleware.CallFrom(ctx), m: m, name: m.Name().View(), again: was != waitState{}}
	tc.view = sessionstate.ContextOf(tc.call)
	if was.workspace && c.workspace != nil {
		tc.view = c.workspace.Refresh(tc.call)
	}
	ready, no := c.handle(&tc, &was)
	switch {
	case ready != nil:
		c.suspend(&tc, ready, next, was)
		return nil
	case no != nil:
		return c.refuse(ctx, &tc, no)
	}
	tc.addNotes()
	return next(ctx, m)
}

// suspend holds the call back until ready is closed, and then handles it again. It is a
// function of its own so that a call that does not wait allocates nothing.
func (c *Conn) suspend(tc *toolCall, ready <-chan struct{}, next middleware.Handler, was waitState) {
	tc.call.Suspend(tc.m, ready, waitTime, func(ctx context.Context, m *wire.Message) error { return c.call(ctx, m, next, was) })
}

// handle applies the rules. It returns what to wait for before it can do so, or the refusal of a
// rule.
func (c *Conn) handle(tc *toolCall, was *waitState) (ready <-chan struct{}, no *refusal) {
	if c.annotated {
		if c.lookUp(tc); !tc.known && !was.list {
			if ready := c.askList(tc, was); ready != nil {
				return ready, nil
			}
		}
	}
	var spare [4]intent
	intents, no := c.judge(tc, spare[:0])
	if no != nil || len(intents) == 0 {
		return nil, no
	}
	c.lookUp(tc)
	round := c.recall(tc, intents)
	if tc.known {
		if intents = c.admit(tc, intents); len(intents) == 0 {
			return nil, nil
		}
	}
	if ready := c.wait(tc, intents, was); ready != nil {
		return ready, nil
	}
	if !tc.known {
		intents = tc.unknown(intents)
		if was.list {
			c.once(event{kind: "unlisted"}, slog.LevelWarn, "the server did not list its tools, so no arguments are filled until it does")
		}
	}
	if no := tc.unmet(intents); no != nil {
		return nil, no
	}
	tc.addNotes()
	return nil, c.write(tc, intents, round)
}

// lookUp finds out what is known of the tool.
func (c *Conn) lookUp(tc *toolCall) {
	if tc.known {
		return
	}
	t, known := c.catalog.Tool(tc.name)
	if tc.known = known; t == nil {
		return
	}
	tc.plan = c.plans[t.Name]
	if tc.plan == nil || tc.plan.tool != t {
		if c.plans == nil || len(c.plans) >= maxPlans {
			c.plans = map[string]*plan{}
		}
		tc.plan = c.newPlan(t)
		c.plans[t.Name] = tc.plan
	}
}

// maxPlans bounds the memory of plans: the names are the server's to choose.
const maxPlans = 10_000

// askList makes the catalogue ask the server for its tools.
func (c *Conn) askList(tc *toolCall, was *waitState) <-chan struct{} {
	ready := c.catalog.Ask(tc.call, tc.m)
	was.list = ready != nil
	return ready
}

// wait returns what there is to wait for before the intents can be carried out, nil
// if nothing: first the schema, as nobody is asked for the value of an argument that
// no tool has, then the workspace.
func (c *Conn) wait(tc *toolCall, intents []intent, was *waitState) <-chan struct{} {
	askable := !was.workspace && slices.ContainsFunc(intents, lacksWorkspace) && c.canAsk(tc.call)
	if !tc.known && !was.list && (askable || slices.ContainsFunc(intents, worthAsking)) {
		if ready := c.askList(tc, was); ready != nil {
			return ready
		}
	}
	if askable && (tc.known || slices.ContainsFunc(intents, pinsWorkspace)) {
		was.workspace = true
		if ready, ok := c.workspace.AskWorkspace(tc.call); ok {
			return ready
		}
	}
	return nil
}

func (c *Conn) canAsk(call *middleware.Call) bool {
	return c.workspace != nil && c.workspace.CanAskWorkspace(call)
}

func lacksWorkspace(in intent) bool { return in.value.empty() && in.rule.fact == workspacePath }

// pinsWorkspace reports whether a pin needs the workspace, whatever the schema.
func pinsWorkspace(in intent) bool { return in.rule.enforces() && lacksWorkspace(in) }

// worthAsking reports whether a list would decide anything: there is a value to give,
// or one that must not be missing. The built-in rule asks for no list to find out that
// a value is missing.
func worthAsking(in intent) bool { return !in.value.empty() || !in.rule.PathOnly }
