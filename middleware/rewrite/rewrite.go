// Package rewrite is the layer that shows the client another server than there
// is: tools hidden, renamed or described otherwise, and arguments of calls set.
//
//	rewrite:
//	  - {tools: ["delete_*"], hide: true}
//	  - {tools: ["search"], rename: search_code, describe: "Search the code, not the web."}
//	  - {tools: ["create_issue"], when: 'session.trust == "sandboxed"', set: {labels: '["agent"]'}}
//
// # Which names
//
// Rules know tools by the server's names, whatever other rules make of them. All
// rules are looked at, in order, and of two that give one tool a name, a
// description or the value of an argument the first that applies counts. The
// layer stands outside those for arguments and access, which see the server's
// names too; audit and trace stand outside this one, and see the client's.
//
// # Hide
//
// A hidden tool is not listed, and its name is unknown: a call to it is answered
// with the error -32602 that the specification has for unknown tools, and never
// reaches the server. The patterns are held against the names of prompts and the
// URIs of resources as well, in their lists and in requests for one of them. A
// resource is also known by what is left of its URI when escapes and dots in its
// path are resolved, and its query is cut off. A condition that reads annotations
// hides tools alone.
//
// # Rename
//
// The client sees and calls the tool by its new name. The old one is unknown,
// unless another tool is given it. Where the server names the tool in a member of
// an error's data, or of a notification's, its name is replaced; see names.go.
// Free text is not touched: not descriptions, not the server's instructions, not
// the messages of errors, not what a tool answers.
//
// If the server turns out to have two tools that would be shown under one name,
// its list is answered with an error that names both, and so are calls to that
// name: which of the two was meant is not ours to guess.
//
// # Describe and set
//
// Describe replaces the description in the list. Set gives arguments of a call
// values that nothing the client sends can change; all conditions and values are
// evaluated on the call as it came. The schema shown stays as it is: to hide an
// argument from the model, pin it (see package arguments).
//
// # What it does when it cannot
//
// Hide and set enforce: a condition that cannot be evaluated hides, or refuses the
// call, and so does a value that cannot be set. A list that cannot be edited is
// answered with an error if tools may have to be hidden or renamed in it. Rename
// and describe with a condition that fails leave the tool as it is.
//
// Conditions may read tool.annotations as the server declared them in the last
// tools/list that passed; before that they are unknown, and read as the careful
// defaults of the specification. They are the server's word for itself: let them
// hide, never show.
package rewrite

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// Options configure the layer. Zero values work: nothing is rewritten.
type Options struct {
	// Rules in order; see the package comment for what of two counts.
	Rules []Rule
	// Server is the server's name, for conditions.
	Server string
	// Log takes what is worth telling; nil discards it.
	Log *slog.Logger
}

// A Rewrite is the layer and what it has learnt.
type Rewrite struct {
	o     Options
	byNew map[string][]int // the rules that give a name, by that name
	all   rules
	some  glob.Names[*rules] // that may be for a tool; client's direction only
	items []int              // the rules that may hide prompts and resources

	lists        bool // a list of tools may have to be edited
	learns       bool // a condition reads annotations
	privateTools bool // what is listed depends on who asks
	privateItems bool

	in     expression.Inputs // of the call at hand; client's direction only
	values []value           // of the call at hand; client's direction only

	last  atomic.Pointer[sessionstate.Context] // of the client's last frame
	known known                                // has its own lock

	mu   sync.Mutex
	told map[string]bool // what has been logged once
}

// New returns the layer. The error is for a rule that makes no sense.
func New(o Options) (*Rewrite, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Rules = slices.Clone(o.Rules)
	r := &Rewrite{o: o, byNew: map[string][]int{}, told: map[string]bool{}}
	r.known.tools = map[string]tool{}
	for i := range o.Rules {
		rule := &o.Rules[i]
		if err := rule.Check(); err != nil {
			return nil, fmt.Errorf("rewrite[%d]: %w", i, err)
		}
		if err := Collision(o.Rules, i); err != nil {
			return nil, fmt.Errorf("rewrite[%d]: %w", i, err)
		}
		r.add(i, rule)
	}
	r.some = glob.Names[*rules]{All: &r.all, Find: r.rulesFor}
	return r, nil
}

// add prepares rule i, and notes what it makes necessary.
func (r *Rewrite) add(i int, rule *Rule) {
	rule.key = fmt.Sprintf("%s[%d]", layerName, i)
	rule.Set = slices.Clone(rule.Set)
	for n := range rule.Set {
		rule.Set[n].keys = append([]string{"params", "arguments"}, rule.Set[n].Path...)
	}
	if rule.Rename != "" {
		rule.quoted = wire.Quote(rule.Tools[0])
		r.byNew[rule.Rename] = append(r.byNew[rule.Rename], i)
		r.known.named = append(r.known.named, rule.Tools[0], rule.Rename)
	}
	r.all.add(i, rule)
	if rule.hidesItems() {
		r.items = append(r.items, i)
	}
	r.lists = r.lists || rule.lists()
	r.learns = r.learns || rule.When != nil && rule.When.UsesAnnotations()
	r.privateTools = r.privateTools || rule.lists() && rule.usesSession()
	r.privateItems = r.privateItems || rule.hidesItems() && rule.usesSession()
}

// hides reports whether a tool may have to be hidden.
func (r *Rewrite) hides() bool { return len(r.all.hide) > 0 }

// renames reports whether a tool may have another name for the client.
func (r *Rewrite) renames() bool { return len(r.byNew) > 0 }

// hidesItems reports whether a prompt or resource may have to be hidden.
func (r *Rewrite) hidesItems() bool { return len(r.items) > 0 }

// Enforces reports whether a rule hides, renames or sets: then no frame may slip
// through that parsers read differently (see [middleware.Layer]).
func (r *Rewrite) Enforces() bool { return r.hides() || r.renames() || len(r.all.set) > 0 }

// Names returns the names of the arguments that are set, by depth: what a frame's
// scan must find unambiguous.
func (r *Rewrite) Names() [][]string {
	var names [][]string
	for i := range r.o.Rules {
		for _, s := range r.o.Rules[i].Set {
			for depth, name := range s.Path {
				if depth == len(names) {
					names = append(names, nil)
				}
				if !slices.Contains(names[depth], name) {
					names[depth] = append(names[depth], name)
				}
			}
		}
	}
	return names
}

const layerName = "rewrite"

// Layer returns the layer.
func (r *Rewrite) Layer() middleware.Layer {
	return middleware.Layer{Name: layerName, Wrap: r.wrap, Enforces: r.Enforces(), ArgumentNames: r.Names()}
}

func (r *Rewrite) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From == wire.Server:
			return r.fromServer(ctx, m, next)
		case m.Kind().IsReply():
			return next(ctx, m)
		}
		return r.fromClient(ctx, m, next)
	}
}

func (r *Rewrite) fromClient(ctx context.Context, m *wire.Message, next middleware.Handler) error {
	call := middleware.CallFrom(ctx)
	view := viewOf(call)
	if view != nil && view != r.last.Load() {
		r.last.Store(view)
	}
	switch method := m.Method(); method {
	case "tools/call":
		return r.call(ctx, m, view, next)
	case "tools/list":
		r.watchTools(call, m, view)
	case "tasks/get", "tasks/result":
		if r.renames() {
			call.OnReply(r.namesInTask(view))
		}
	default:
		if r.hidesItems() {
			return r.item(ctx, m, method, view, next)
		}
	}
	return next(ctx, m)
}

// fromServer handles a request or notification of the server's. Whose call it
// belongs to is not known, so the client's last frame stands for it.
func (r *Rewrite) fromServer(ctx context.Context, m *wire.Message, next middleware.Handler) error {
	switch {
	case m.MethodIs("notifications/tools/list_changed"):
		r.known.forget()
	case m.MethodIs("notifications/resources/updated"):
		if r.hidesItems() && r.hidesURI(m.Get("params", "uri")) {
			middleware.CallFrom(ctx).Note(middleware.Note{Layer: layerName, Act: middleware.Refused, Why: "the resource is hidden"})
			return nil // the client cannot have asked for it
		}
	case r.renames() && m.Kind() == wire.Notification:
		r.namesInNotification(m)
	}
	return next(ctx, m)
}

// hidesURI reports whether a resource is hidden from the client's last frame.
func (r *Rewrite) hidesURI(uri wire.Value) bool {
	rule, _ := r.uriHiddenBy(r.last.Load(), uri.View())
	return rule != none
}

func viewOf(call *middleware.Call) *sessionstate.Context {
	view, _ := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context)
	return view
}

// fill fills the inputs that a rule is judged by, for a tool by the server's name.
func (r *Rewrite) fill(in *expression.Inputs, view *sessionstate.Context, name string) {
	in.Context, in.Tool, in.Server = view, name, r.o.Server
	if r.learns {
		in.Annotations = r.known.annotations(name)
	}
}

// hiddenBy returns the one of some rules that hides a tool, or a prompt or
// resource, none if it is not hidden. A rule that cannot be decided hides, and err
// says why it cannot.
func (r *Rewrite) hiddenBy(in *expression.Inputs, rules []int) (rule int, err error) {
	for _, i := range rules {
		came, err := r.o.Rules[i].judge(in)
		switch came {
		case applies:
			return i, nil
		case undecided:
			r.failed(i, in.Tool, "it is hidden", err)
			return i, err
		}
	}
	return none, nil
}

// renamedBy returns the one of some rules that gives the tool the name the client
// knows, none if it keeps its own.
func (r *Rewrite) renamedBy(in *expression.Inputs, rules []int) int {
	return r.first(in, "it keeps its name", rules)
}

// describedBy returns the rule that describes the tool, none if its own
// description stays.
func (r *Rewrite) describedBy(in *expression.Inputs) int {
	return r.first(in, "it keeps its description", r.all.describe)
}

// first returns the first of some rules that applies to the tool. One that cannot
// be decided does not, which is told.
func (r *Rewrite) first(in *expression.Inputs, otherwise string, rules []int) int {
	for _, i := range rules {
		came, err := r.o.Rules[i].judge(in)
		switch came {
		case applies:
			return i
		case undecided:
			r.failed(i, in.Tool, otherwise, err)
		}
	}
	return none
}

const none = -1 // no rule

// key returns where the configuration has rule i, "" for none.
func (r *Rewrite) key(i int) string {
	if i == none {
		return ""
	}
	return r.o.Rules[i].key
}

// failed tells of a rule that could not be decided: once for each rule and
// reason, as a list may have many tools and be asked for often.
func (r *Rewrite) failed(i int, name, otherwise string, err error) {
	if r.once(r.key(i) + err.Error()) {
		r.o.Log.Warn("a rule could not be applied", "rule", r.key(i), "name", cut(name), "so", otherwise, "why", err)
	}
}

// maxTold bounds what is remembered of what was logged.
const maxTold = 1000

// once reports whether text comes for the first time.
func (r *Rewrite) once(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told[text] {
		return false
	}
	if len(r.told) >= maxTold {
		clear(r.told)
	}
	r.told[text] = true
	return true
}

// cut shortens a name that came over the wire for a log line or an error.
func cut(name string) string {
	if len(name) > 200 {
		return name[:200] + "…"
	}
	return name
}
