// Package arguments is the layer that decides where the arguments of tool calls
// come from, and shows the client a schema that agrees.
//
// A rule names tools, an argument, and what is done about it:
//
//	mode     the call lacks it             the call has it              shown
//	fill     filled from the rule's value  kept, a difference is told   not required
//	pin      set to the rule's value       overwritten, and told        not at all
//	forbid   passes                        refused                      not at all
//
// Fill serves the model: it is spared what the session knows already. An argument
// is filled only where the upstream's own schema has it; schemas are learnt from
// tools/list as it passes, and asked for once when a call comes first. Whatever
// cannot be found out lets the call pass as it came. The one exception is a value
// that is required and missing; its call is answered with a tool result that says
// so.
//
// Pin and forbid serve the operator, who does not leave a choice to the model:
// whatever cannot be decided refuses. A pinned argument is set where the schema has
// it, and where the schema is not known; where the schema does not have it, a value
// that the call brings is overwritten all the same. A pin that has no value, because
// nobody is identified or the session does not know it, refuses the call: the
// client's own value is never sent in its place. The relay has to refuse frames that
// parsers may read differently; see [Arguments.Enforces].
//
// Who calls is never for the call to say. So a fill rule whose value depends on the
// principal acts as a pin.
//
// Of several rules for one argument the first counts that is for the tool and whose
// condition holds; pins and forbids stand before all fills, wherever they are listed.
// Rules judge the call as the client sent it; then fills are written, and pins after
// them, so that no filled value ends up inside a pinned one.
package arguments

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A Mode says what a rule does about its argument.
type Mode string

// The modes; see the package comment.
const (
	Fill   Mode = "fill"
	Pin    Mode = "pin"
	Forbid Mode = "forbid"
)

// A Schema says how the argument of a rule is shown in tools/list.
type Schema string

// The ways to show an argument.
const (
	Keep     Schema = "keep"     // as the upstream shows it
	Optional Schema = "optional" // the property stays and is not required; the default of Fill
	Hide     Schema = "hide"     // the property is not shown; the default of Pin and Forbid
)

// A Rule is about one argument of the tools it names.
type Rule struct {
	// Name is where the configuration has the rule, such as "arguments[1]", for
	// those who read notes; "" for a rule that nobody configured.
	Name string
	// Tools are patterns of tool names, with * and ?.
	Tools []string
	// Argument is the path of the argument: one key, or the keys of nested
	// objects.
	Argument []string
	// Mode is what the rule does; "" stands for Fill. A Fill rule whose Value
	// depends on the principal is a Pin.
	Mode Mode
	// Value gives the argument's value, of any JSON type; nil for Forbid. An empty
	// string or list and null count as no value, and so does whatever reads the
	// principal while there is none.
	Value *expression.Program
	// When, if not nil, is the condition under which the rule applies. It reads
	// the arguments as the client sent them. A condition that fails lets a Fill
	// rule pass and has a Pin or Forbid rule refuse.
	When *expression.Program
	// Schema says how the argument is shown; "" stands for what the mode does. A
	// rule whose condition reads arguments leaves the schema as it is.
	Schema Schema
	// Required says what a call that lacks an argument to fill meets when there is
	// no value either: true, an error for the model; false, it passes; nil, an
	// error if the upstream's schema requires the argument.
	Required *bool
}

// Default is the rule there is without configuration.
func Default() Rule {
	value, err := expression.Compile(workspacePath, expression.Any)
	if err != nil {
		panic(err) // a constant that compiles
	}
	return Rule{Tools: []string{"*"}, Argument: []string{"workspace"}, Value: value}
}

const workspacePath = "session.workspace.path"

// A Workspace can find out a workspace that is not known yet. The layer named
// capture is one.
type Workspace interface {
	// CanAskWorkspace reports whether there is a way to find out.
	CanAskWorkspace(call *middleware.Call) bool
	// AskWorkspace starts finding out; ok is false if there is nothing to wait
	// for.
	AskWorkspace(call *middleware.Call) (ready <-chan struct{}, ok bool)
	// Refresh returns what is known once it is ready, and attaches it to call.
	Refresh(call *middleware.Call) *sessionstate.Context
}

// Options configure the layer.
type Options struct {
	// Rules in order; of those for one argument of one tool the first that applies
	// counts, and one that binds the client counts before any that fills.
	Rules []Rule
	// AskForMissing has the upstream asked for its tools also when there is no
	// value to fill, to find out whether one is required. Without it a call that
	// comes before any list passes as it came.
	AskForMissing bool
	// Workspace, if not nil, is asked when a workspace is missing.
	Workspace Workspace
	// Server is the server's name, for expressions.
	Server string
	// Initialized, if not nil, reports whether a legacy client had said already
	// that it is initialized when the layer came into the chain.
	Initialized func() bool
	// Scrub takes secrets out of the raw JSON of a call's own argument before it is
	// logged; path is the argument's. Nil leaves it as it is.
	Scrub func(path []string, raw []byte) []byte
	// Log takes what is worth telling; nil discards it.
	Log *slog.Logger
}

const (
	// askTime bounds attache's own walk through the upstream's tools/list.
	askTime = 2 * time.Second
	// waitTime is longer, so that a question that has timed out is over when the
	// call goes on.
	waitTime = askTime + 500*time.Millisecond
)

// An Arguments is the layer and what it has learnt.
type Arguments struct {
	o Options

	rules     []rule
	all       []*rule // the same
	annotated bool    // a condition or value reads annotations
	overlap   bool    // the argument of a rule is inside that of another

	// Client's direction only:
	initialized bool
	in          expression.Inputs // of the call at hand, if reading
	reading     bool
	settled     []bool       // by path: a rule has had its say about the call at hand
	given       []wire.Value // what the call at hand has for the rules that may be for it; none if it was not looked at
	splices     []wire.Splice
	added       []byte // members to add, of values that were computed

	rounds rounds // has its own lock

	mu      sync.Mutex
	tools   map[string]*tool // of a whole list, nil while none is known
	partial map[string]*tool // of the list whose pages are passing
	ask     *listing         // the one question under way or done
	told    map[string]bool  // tools that a warning was about
}

// New returns the layer.
func New(o Options) *Arguments {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Initialized == nil {
		o.Initialized = func() bool { return false }
	}
	a := &Arguments{o: o, told: map[string]bool{}}
	paths := map[string]int{}
	for i, given := range o.Rules {
		r := newRule(i, given)
		if _, known := paths[r.path]; !known {
			paths[r.path] = len(paths)
		}
		r.slot = paths[r.path]
		a.annotated = a.annotated || usesAnnotations(r.When) || usesAnnotations(r.Value)
		a.rules = append(a.rules, r)
	}
	for slot := range len(paths) {
		bindingFirst(a.rules, slot)
	}
	a.given = make([]wire.Value, 0, len(a.rules))
	for i := range a.rules {
		a.all = append(a.all, &a.rules[i])
	}
	a.settled = make([]bool, len(paths))
	for outer := range paths {
		for inner := range paths {
			a.overlap = a.overlap || strings.HasPrefix(inner, outer+".")
		}
	}
	return a
}

func usesAnnotations(p *expression.Program) bool { return p != nil && p.UsesAnnotations() }

// A rule is a Rule with what is derived from it.
type rule struct {
	Rule
	index int
	keys  []string // from the frame's root
	path  string   // for people
	slot  int      // the same for rules with the same path
	fact  string   // the path of the fact that is the value, "" if it is computed

	// Client's direction only:
	known  reading // of the fact, by the last view
	warned bool    // that its value cannot be computed
	origin string  // who the last value was from
	source string  // and that, as notes have it
}

func newRule(i int, given Rule) rule {
	r := rule{Rule: given, index: i, path: strings.Join(given.Argument, ".")}
	r.keys = append([]string{"params", "arguments"}, given.Argument...)
	if r.Mode == "" {
		r.Mode = Fill
	}
	if r.Value != nil {
		if r.Mode == Fill && r.Value.UsesPrincipal() {
			r.Mode = Pin
		}
		if path := r.Value.Path(); sessionstate.KnownPath(path) {
			r.fact = path
		}
	}
	if r.Schema == "" {
		r.Schema = Hide
		if r.Mode == Fill {
			r.Schema = Optional
		}
	}
	return r
}

func (r *rule) last() string { return r.Argument[len(r.Argument)-1] }

// bindingFirst puts those of the rules for one argument that bind the client in the
// places before those that only fill, so that they count: a fill that somebody wrote
// first must not open what a pin closes.
func bindingFirst(rules []rule, slot int) {
	var places []int
	var binding, filling []rule
	for i, r := range rules {
		switch {
		case r.slot != slot:
			continue
		case r.enforces():
			binding = append(binding, r)
		default:
			filling = append(filling, r)
		}
		places = append(places, i)
	}
	for n, r := range append(binding, filling...) {
		rules[places[n]] = r
	}
}

// enforces reports whether the rule binds the client.
func (r *rule) enforces() bool { return r.Mode != Fill }

// Enforces reports whether a rule binds the client. Then the relay must let no
// frame pass that parsers may read differently, and none that is too large to
// hold; see [middleware.Layer].
func (a *Arguments) Enforces() bool {
	return slices.ContainsFunc(a.rules, func(r rule) bool { return r.enforces() })
}

// Names returns the argument names of the rules by depth: what a frame's scan
// must find unambiguous.
func (a *Arguments) Names() [][]string {
	var names [][]string
	for _, r := range a.o.Rules {
		for depth, name := range r.Argument {
			if depth == len(names) {
				names = append(names, nil)
			}
			names[depth] = append(names[depth], name)
		}
	}
	return names
}

// Layer returns the layer.
func (a *Arguments) Layer() middleware.Layer {
	return middleware.Layer{Name: "arguments", Wrap: a.wrap, Enforces: a.Enforces(), ArgumentNames: a.Names()}
}

func (a *Arguments) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From == wire.Server:
			if m.MethodIs("notifications/tools/list_changed") {
				a.forget()
			}
		case m.MethodIs("tools/call"):
			return a.call(ctx, m, next, asked{})
		case m.MethodIs("tools/list"):
			call := middleware.CallFrom(ctx)
			call.OnReply(a.listed(viewOf(call), !m.Get("params", "cursor").Exists()))
		case m.MethodIs("notifications/initialized"):
			a.initialized = true
		}
		return next(ctx, m)
	}
}

func viewOf(call *middleware.Call) *sessionstate.Context {
	view, _ := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context)
	return view
}

// asked says what a call has waited for already; nothing is waited for twice.
type asked struct{ list, workspace bool }

// call takes a tools/call, request or notification.
func (a *Arguments) call(ctx context.Context, m *wire.Message, next middleware.Handler, was asked) error {
	c := calling{call: middleware.CallFrom(ctx), m: m, name: m.Name().View(), again: was != asked{}}
	c.view = viewOf(c.call)
	if was.workspace && a.o.Workspace != nil {
		c.view = a.o.Workspace.Refresh(c.call)
	}
	ready, no := a.handle(&c, &was)
	switch {
	case ready != nil:
		return a.suspend(&c, ready, next, was)
	case no != nil:
		return a.refuse(ctx, &c, no)
	}
	c.tell()
	return next(ctx, m)
}

// handle applies the rules. It returns what there is to wait for before that can be
// done, or what a rule has against the call.
func (a *Arguments) handle(c *calling, was *asked) (ready <-chan struct{}, no *refusal) {
	if a.annotated {
		if a.lookUp(c); !c.known && !was.list {
			was.list = true
			if ready := a.askList(c.call, c.m, c.view); ready != nil {
				return ready, nil
			}
		}
	}
	var spare [4]intent
	intents, no := a.judge(c, spare[:0])
	if no != nil || len(intents) == 0 {
		return nil, no
	}
	a.lookUp(c)
	round := a.recall(c, intents)
	if c.known {
		if intents = c.admit(intents); len(intents) == 0 {
			return nil, nil
		}
	}
	if ready := a.wait(c, intents, was); ready != nil {
		return ready, nil
	}
	if !c.known {
		intents = c.unknown(intents)
	}
	if no := c.unmet(intents); no != nil {
		return nil, no
	}
	c.tell()
	return nil, a.write(c, intents, round)
}

// lookUp finds out what is known of the tool.
func (a *Arguments) lookUp(c *calling) {
	if !c.known {
		c.tool, c.known = a.tool(c.name)
	}
}

// suspend holds the call back until ready is closed, and takes it up anew.
func (a *Arguments) suspend(c *calling, ready <-chan struct{}, next middleware.Handler, was asked) error {
	c.call.Suspend(c.m, ready, waitTime, func(ctx context.Context, m *wire.Message) error { return a.call(ctx, m, next, was) })
	return nil
}

// wait returns what there is to wait for before the intents can be carried out,
// nil if nothing: first the schema, as nobody is to be asked for the value of an
// argument that no tool has, then the workspace.
func (a *Arguments) wait(c *calling, intents []intent, was *asked) <-chan struct{} {
	askable := a.o.Workspace != nil && !was.workspace && lacksWorkspace(intents) && a.o.Workspace.CanAskWorkspace(c.call)
	if !c.known && !was.list && (a.o.AskForMissing || askable || worthAsking(intents)) {
		was.list = true
		return a.askList(c.call, c.m, c.view)
	}
	if askable && (c.known || some(intents, (*intent).pinsWorkspace)) {
		was.workspace = true
		if ready, ok := a.o.Workspace.AskWorkspace(c.call); ok {
			return ready
		}
	}
	return nil
}

func lacksWorkspace(intents []intent) bool { return some(intents, (*intent).lacksWorkspace) }

func (in *intent) lacksWorkspace() bool { return in.value.empty() && in.rule.fact == workspacePath }

// pinsWorkspace reports whether a pin needs the workspace, whatever the schema.
func (in *intent) pinsWorkspace() bool { return in.rule.enforces() && in.lacksWorkspace() }

// some is slices.ContainsFunc without a copy of each intent.
func some(intents []intent, is func(*intent) bool) bool {
	for i := range intents {
		if is(&intents[i]) {
			return true
		}
	}
	return false
}

// names reports whether the rule is for a tool. The error is of a name that takes
// too long to match, as no ordinary one does.
func (r *rule) names(tool string) (bool, error) { return glob.Match(r.Tools, tool) }
