// Package arguments is the layer that fills, pins and forbids arguments of tool calls, and
// edits the schemas in tools/list to agree with this.
//
// A rule names tools, an argument and a mode:
//
//	mode    argument is absent             argument is present           in the schema
//	fill    filled with the rule's value   kept; a difference is logged  not required
//	pin     set to the rule's value        overwritten, with a note      removed
//	forbid  passes                         refused                       removed
//
// Fill saves the model from sending what the session knows. An argument is filled only if
// the upstream's own schema has it. The layer reads the schemas of each tools/list, and asks
// for the list itself if a call arrives earlier. If something is unknown, the call passes
// unchanged, with one exception: if a required value is missing, the call is answered with a
// tool result that says so. The schema lets the model omit the argument only while the
// session has a value for it, or the client can be asked for one.
//
// Only plain objects are edited and filled. If a schema has "$ref", "oneOf", "not" or another
// keyword that constrains the object around the argument, the tool is shown unchanged and the
// argument is not filled, but it is still pinned. None of the schemas of published servers that
// were read has such a keyword around an argument that a rule is for.
//
// Pin and forbid leave the model no choice. A call for which such a rule cannot be evaluated
// is refused. A pinned argument is set if the schema has it or the schema is unknown; if the
// schema does not have it, a value in the call is still overwritten, because a server may read
// an undeclared argument, but adding one would break strict servers. If a pin has no value,
// because nobody is identified or the session does not know it, the call is refused: the
// client's own value is never sent. The relay refuses frames that parsers may read
// differently; see [middleware.Layer].
//
// A client must not choose its own principal, so a fill rule whose value depends on the
// principal acts as a pin. The program's configuration does not allow such a rule.
//
// Of several rules for one argument, the first one that matches the tool and whose condition
// is true applies; pins and forbids precede all fills, regardless of their order in the
// configuration, because a fill in front of a pin would let the model's value through. Rules
// judge the call as the client sent it. Pins are written after fills, so that no filled value
// ends up inside a pinned one.
package arguments

import (
	"cmp"
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

// A Workspace can find out the workspace of a session. Package capture implements it.
type Workspace interface {
	// CanAskWorkspace reports whether the client's answer may change the workspace of the call.
	CanAskWorkspace(call *middleware.Call) bool
	// AskWorkspace asks the client. ready is closed when the answer is known; ok is false
	// if there is nothing to wait for.
	AskWorkspace(call *middleware.Call) (ready <-chan struct{}, ok bool)
	// Refresh returns the current context and attaches it to call. The client is then not asked again
	// for the call.
	Refresh(call *middleware.Call) *sessionstate.Context
}

// Options are the rules and what else is the same for all connections.
type Options struct {
	// Rules are the rules in order; see the package comment.
	Rules []Rule
	// Server is the server's name, for expressions.
	Server string
	// Scrub removes secrets from the raw JSON of a call's own argument at path before it is
	// logged. If it is nil, nothing is removed.
	Scrub func(path []string, raw []byte) []byte
}

// Shared holds the compiled rules. It can be used by any number of connections at once.
type Shared struct {
	o       Options
	rules   []*rule
	slots   int        // the number of different arguments
	overlap bool       // the argument of a rule is inside that of another
	names   [][]string // the argument names of the rules and their expressions, by depth

	readAnnotations bool // a condition or value reads annotations
}

// Compile checks and prepares the rules. Its error names the rule.
func Compile(o Options) (*Shared, error) {
	s := &Shared{o: o}
	paths := map[string]int{}
	for i, config := range o.Rules {
		if !config.PathOnly {
			config.Name = cmp.Or(config.Name, fmt.Sprintf("arguments[%d]", i))
		}
		if err := config.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", config.Name, err)
		}
		r := newRule(config)
		key := strings.Join(r.Argument, "\x00") // not r.path: names of arguments may have dots
		if _, known := paths[key]; !known {
			paths[key] = len(paths)
		}
		r.slot = paths[key]
		s.readAnnotations = s.readAnnotations || r.When.UsesAnnotations() || r.Value.UsesAnnotations()
		s.rules = append(s.rules, &r)
	}
	s.slots = len(paths)
	sortEnforcingFirst(s.rules)
	var layers []middleware.Layer
	for i, r := range s.rules {
		r.index = i
		layers = append(layers, r.reads()...)
	}
	s.names = middleware.Needs(layers...).ArgumentNames
	// Then the writing of one value can change what another rule has read.
	for outer := range paths {
		for inner := range paths {
			s.overlap = s.overlap || strings.HasPrefix(inner, outer+"\x00")
		}
	}
	return s, nil
}

// ConnOptions are the options of one connection.
type ConnOptions struct {
	// Catalog is the connection's catalogue; nil means an empty one.
	Catalog *middleware.Catalog
	// Workspace, if not nil, is asked when the workspace is unknown or may have changed.
	Workspace Workspace
	// Log receives edits and warnings; nil discards them.
	Log *slog.Logger
}

// A Conn is the layer of one connection.
type Conn struct {
	*Shared
	catalog   *middleware.Catalog
	workspace Workspace
	log       *slog.Logger

	// For the client's direction only, whose frames come one at a time, so none of it needs a lock. The hooks of lists
	// run in the server's direction and must not use it.
	plans      map[string]*plan  // by tool
	facts      []factMember      // of the rules, by their index
	in         expression.Inputs // of the current call, if inSet
	inSet      bool
	decided    []bool        // by slot: a rule has decided about the argument of the current call
	callValues []wire.Value  // the current call's values for the rules that may apply; empty before find
	splices    []wire.Splice // of writeAll, as memory for the next call
	added      []byte        // members to add, with computed values

	rounds rounds // has its own lock

	mu     sync.Mutex // both directions log
	logged map[event]bool
}

// Connect returns the layer for one connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	return &Conn{
		Shared:     s,
		catalog:    cmp.Or(o.Catalog, new(middleware.Catalog)),
		workspace:  o.Workspace,
		log:        cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		rounds:     rounds{seed: maphash.MakeSeed()},
		facts:      make([]factMember, len(s.rules)),
		callValues: make([]wire.Value, 0, len(s.rules)),
		decided:    make([]bool, s.slots),
	}
}

// Layer returns the layer. It must be outside the layers that allow or refuse calls, so that they
// judge what leaves, and outside the catalogue, which has to learn the upstream's own schemas.
func (c *Conn) Layer() middleware.Layer {
	enforces := slices.ContainsFunc(c.rules, (*rule).enforces)
	return middleware.Layer{Name: layerName, Wrap: c.wrap, Enforces: enforces, ArgumentNames: c.names}
}

func (c *Conn) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From == wire.Server:
		case m.MethodIs("tools/call"):
			return c.call(ctx, m, next, waitState{})
		case m.MethodIs("tools/list"):
			call := middleware.CallFrom(ctx)
			// With the context of the request: in 2026-07-28 each may have another one.
			call.OnReply(c.editList(sessionstate.ContextOf(call)))
		}
		return next(ctx, m)
	}
}

// A waitState records what a call has waited for, so that it waits for each only once.
type waitState struct{ list, workspace bool }

// call handles a tools/call, which may be a notification.
func (c *Conn) call(ctx context.Context, m *wire.Message, next middleware.Handler, waited waitState) error {
	tc := toolCall{call: middleware.CallFrom(ctx), m: m, name: m.Name().View(), again: waited != waitState{}}
	tc.view = sessionstate.ContextOf(tc.call)
	// The client has answered, so the session may know more than when the call came.
	if waited.workspace && c.workspace != nil {
		tc.view = c.workspace.Refresh(tc.call)
	}
	ready, refused := c.handle(&tc, &waited)
	switch {
	case ready != nil:
		c.suspend(&tc, ready, next, waited)
		return nil
	case refused != nil:
		return c.refuse(ctx, &tc, refused)
	}
	tc.addNotes()
	return next(ctx, m)
}

// suspend holds the call back until ready is closed, and then handles it again. It is a
// separate function so that a call that does not wait does not allocate a closure.
func (c *Conn) suspend(tc *toolCall, ready <-chan struct{}, next middleware.Handler, waited waitState) {
	tc.call.Suspend(tc.m, ready, middleware.AskTime, func(ctx context.Context, m *wire.Message) error { return c.call(ctx, m, next, waited) })
}

// handle applies the rules. It returns a channel if the call must wait first, or the refusal of
// a rule. A call that has waited is handled from the beginning. Rules are judged before the schema
// is looked up: most calls end there, and a refusal needs no schema.
func (c *Conn) handle(tc *toolCall, waited *waitState) (ready <-chan struct{}, refused *refusal) {
	// Without a list a condition would see the defaults of the specification for annotations, not those of the
	// server.
	if c.readAnnotations { // they come with the list
		if c.lookUp(tc); !tc.known && !waited.list {
			if ready := c.askList(tc, waited); ready != nil {
				return ready, nil
			}
		}
	}
	var spare [4]intent
	intents, refused := c.judge(tc, spare[:0])
	if refused != nil || len(intents) == 0 {
		return nil, refused
	}
	c.lookUp(tc)
	// A further round of a call gets the values of the first one, whatever the session knows by
	// now.
	round := c.recall(tc, intents)
	// This comes before wait, so that nobody is asked for a value that the tool has no place for.
	if tc.known {
		if intents = c.filterKnown(tc, intents); len(intents) == 0 {
			return nil, nil
		}
	}
	if ready := c.wait(tc, intents, waited); ready != nil {
		return ready, nil
	}
	if !tc.known {
		intents = tc.filterUnknown(intents)
		if waited.list {
			c.once(event{kind: "unlisted"}, slog.LevelWarn, "the server did not list its tools, so no arguments are filled until it does")
		}
	}
	if refused := tc.refuseMissing(intents); refused != nil {
		return nil, refused
	}
	tc.addNotes()
	return nil, c.write(tc, intents, round)
}

// lookUp sets tc.known and tc.plan from the catalogue.
func (c *Conn) lookUp(tc *toolCall) {
	if tc.known {
		return
	}
	t, known := c.catalog.Tool(tc.name)
	// A tool can be known without being there: the list is complete, and lacks it.
	// The plan stays nil, and place then says that the server does not list the tool.
	if tc.known = known; t == nil {
		return
	}
	tc.plan = c.plans[t.Name]
	if tc.plan == nil || tc.plan.tool != t { // the server has listed the tool again
		// To drop all is simple, and plans are made again as they are needed.
		if c.plans == nil || len(c.plans) >= maxPlans {
			c.plans = map[string]*plan{}
		}
		tc.plan = c.newPlan(t, c.ownWorkspaces())
		c.plans[t.Name] = tc.plan
	}
}

// ownWorkspaces reports whether the server makes workspaces, if a rule needs to know.
func (c *Conn) ownWorkspaces() bool {
	return slices.ContainsFunc(c.rules, func(r *rule) bool { return r.PathOnly }) && c.catalog.Any(MakesWorkspaces)
}

// maxPlans bounds the number of plans, because the server chooses the names.
const maxPlans = 10_000

// askList asks the server for its tools. It returns nil if there is nothing to wait for.
func (c *Conn) askList(tc *toolCall, waited *waitState) <-chan struct{} {
	ready := c.catalog.Ask(tc.call, tc.m)
	waited.list = ready != nil
	return ready
}

// wait returns a channel if the call must wait before the intents can be written: first for
// the schema, so that the client is not asked for an argument that the tool does not have,
// then for the workspace.
func (c *Conn) wait(tc *toolCall, intents []intent, waited *waitState) <-chan struct{} {
	askable := !waited.workspace && slices.ContainsFunc(intents, readsWorkspace) && c.canAsk(tc.call)
	if !tc.known && !waited.list && (askable || slices.ContainsFunc(intents, worthAsking)) {
		if ready := c.askList(tc, waited); ready != nil {
			return ready
		}
	}
	if askable && (tc.known || slices.ContainsFunc(intents, pinsWorkspace)) {
		waited.workspace = true
		if ready, ok := c.workspace.AskWorkspace(tc.call); ok {
			return ready
		}
	}
	return nil
}

func (c *Conn) canAsk(call *middleware.Call) bool {
	return c.workspace != nil && c.workspace.CanAskWorkspace(call)
}

func readsWorkspace(in intent) bool { return in.rule.fact == workspacePath }

// pinsWorkspace reports whether a pin needs the workspace. It needs it whatever the schema is.
func pinsWorkspace(in intent) bool { return in.rule.enforces() && readsWorkspace(in) }

// worthAsking reports whether the list matters for an intent: it has a value, or the call may
// be refused without one. The built-in rule does not ask for the list without a value.
func worthAsking(in intent) bool { return !in.value.empty() || !in.rule.PathOnly }

// refuse answers the call in place of the upstream. A notification is dropped.
func (c *Conn) refuse(ctx context.Context, tc *toolCall, refused *refusal) error {
	session, _ := tc.view.Lookup("session.id")
	c.log.InfoContext(ctx, "a call was refused", "tool", middleware.Clip(tc.name), "argument", refused.rule.path, "why", refused.why, "session", session.Value)
	tc.addNotes()
	tc.call.Note(middleware.Note{Layer: layerName, Rule: refused.rule.Name, Act: middleware.Refused, Why: refused.why, Path: refused.rule.keys})
	if tc.m.Kind() != wire.Request {
		return nil
	}
	return tc.call.Answer(ctx, wire.RefusalReply(tc.m, refused.text, tc.view != nil && tc.view.Modern))
}
