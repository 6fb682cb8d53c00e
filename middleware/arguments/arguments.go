// Package arguments is the layer that puts the session's values into tool calls
// that lack them, and shows the client a schema that agrees.
//
// A rule names tools, an argument, and the fact it is filled from. The explicit
// value of a call wins and a difference is logged. An argument is filled only
// where the upstream's own schema has it; schemas are learnt from tools/list as
// it passes, and asked for once when a call comes first.
//
// The layer enriches: when it cannot find out what it needs, the call passes as
// it came. The one exception is a rule whose value is required and missing; its
// call is answered with a tool result that says what is missing.
package arguments

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/match"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A Schema says how a filled argument is shown in tools/list.
type Schema string

// The ways to show a filled argument.
const (
	Keep     Schema = "keep"     // as the upstream shows it
	Optional Schema = "optional" // the property stays and is not required; the default
	Hide     Schema = "hide"     // the property is not shown
)

// A Rule fills one argument of the tools it names.
type Rule struct {
	// Tools are patterns of tool names, with * and ?.
	Tools []string
	// Argument is the path of the argument: one key, or the keys of nested
	// objects.
	Argument []string
	// Value is the path of a fact, one of sessionstate.KnownPaths.
	Value string
	// Schema says how the argument is shown; "" stands for Optional.
	Schema Schema
	// Required says what a call that lacks the argument meets when the fact is
	// unknown too: true, an error for the model; false, it passes; nil, an error
	// if the upstream's schema requires the argument.
	Required *bool
}

// Default is the rule there is without configuration.
func Default() Rule {
	return Rule{Tools: []string{"*"}, Argument: []string{"workspace"}, Value: "session.workspace.path"}
}

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
	// Rules in order; of two for one argument of one tool the first counts.
	Rules []Rule
	// AskForMissing has the upstream asked for its tools also when there is no
	// value to fill, to find out whether one is required. Without it a call that
	// comes before any list passes as it came.
	AskForMissing bool
	// Workspace, if not nil, is asked when a workspace is missing.
	Workspace Workspace
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

	rules []rule

	initialized bool   // client's direction only, as is
	quoted      []byte // the value being written
	rounds      rounds // has its own lock

	mu      sync.Mutex
	tools   map[string]*tool // of a whole list, nil while none is known
	partial map[string]*tool // of the list whose pages are passing
	ask     *listing         // the one question under way or done
}

// New returns the layer.
func New(o Options) *Arguments {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Arguments{o: o}
	for _, r := range o.Rules {
		a.rules = append(a.rules, rule{r, append([]string{"params", "arguments"}, r.Argument...), strings.Join(r.Argument, ".")})
	}
	return a
}

// A rule is a Rule with what is derived from it.
type rule struct {
	Rule
	keys []string // from the frame's root
	path string   // for people
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
	return middleware.Layer{Name: "arguments", Wrap: a.wrap}
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
			first := !m.Get("params", "cursor").Exists()
			middleware.CallFrom(ctx).OnReply(func(_ context.Context, reply *wire.Message) error {
				return a.show(reply, first)
			})
		case m.MethodIs("notifications/initialized"):
			a.initialized = true
		}
		return next(ctx, m)
	}
}

// asked says what a call has waited for already; nothing is waited for twice.
type asked struct{ list, workspace bool }

// gap is an argument that a call lacks.
type gap struct {
	rule *rule
	fact sessionstate.Fact
}

func (a *Arguments) call(ctx context.Context, m *wire.Message, next middleware.Handler, was asked) error {
	call := middleware.CallFrom(ctx)
	view, _ := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context)
	if was.workspace && a.o.Workspace != nil {
		view = a.o.Workspace.Refresh(call)
	}
	var spare [4]gap
	gaps := a.gaps(m, view, spare[:0])
	if len(gaps) == 0 {
		return next(ctx, m)
	}
	t, known := a.tool(m.Name())
	if known {
		gaps = t.admit(gaps)
	}
	if ready := a.wait(call, m, view, gaps, known, &was); ready != nil {
		call.Suspend(m, ready, waitTime, func(ctx context.Context, m *wire.Message) error { return a.call(ctx, m, next, was) })
		return nil
	}
	if !known {
		gaps = unknown(gaps)
	}
	if missing := t.missing(gaps); missing != nil {
		return call.Answer(ctx, wire.ToolErrorReply(m.ID(), missingText(m.Name().Text(), missing), view != nil && view.Modern))
	}
	a.fill(call, m, view, gaps)
	return next(ctx, m)
}

// wait returns what there is to wait for before the gaps can be filled, nil if
// nothing: first the schema, as nobody is to be asked for the value of an
// argument that no tool has, then the workspace.
func (a *Arguments) wait(call *middleware.Call, m *wire.Message, view *sessionstate.Context, gaps []gap, known bool, was *asked) <-chan struct{} {
	askable := a.o.Workspace != nil && !was.workspace && lacksWorkspace(gaps) && a.o.Workspace.CanAskWorkspace(call)
	if !known && !was.list && (a.o.AskForMissing || askable || worthAsking(gaps)) {
		was.list = true
		return a.askList(call, m, view)
	}
	if known && askable {
		was.workspace = true
		if ready, ok := a.o.Workspace.AskWorkspace(call); ok {
			return ready
		}
	}
	return nil
}

// gaps appends the arguments that rules could fill to out: those the call does
// not have, or has as null or an empty string.
func (a *Arguments) gaps(m *wire.Message, view *sessionstate.Context, out []gap) []gap {
	name := m.Name().View()
	for i := range a.rules {
		r := &a.rules[i]
		if !r.names(name) || covered(out, r) {
			continue
		}
		fact, _ := view.Lookup(r.Value)
		given := m.Arguments().Get(r.Argument...)
		if given.Exists() && !given.IsNull() && string(given.Raw) != `""` {
			if !fact.Empty() && !given.Equals(fact.Value) {
				a.o.Log.Info("the call's own value was kept", "tool", name, "argument", r.path,
					"given", shown(given), "given_by", "tools/call", "session", fact.Value, "session_by", fact.From)
			}
			continue
		}
		out = append(out, gap{r, fact})
	}
	return out
}

// shown returns a value as a log line takes it.
func shown(v wire.Value) string {
	text := string(v.Raw)
	if v.IsString() {
		text = v.Text()
	}
	if len(text) > 200 {
		return text[:200] + "…"
	}
	return text
}

// covered reports whether an earlier rule has the same argument.
func covered(gaps []gap, r *rule) bool {
	for _, g := range gaps {
		if g.rule.path == r.path {
			return true
		}
	}
	return false
}

func (r *Rule) names(tool string) bool {
	for _, pattern := range r.Tools {
		if pattern == "*" || match.Match(tool, pattern) {
			return true
		}
	}
	return false
}

func lacksWorkspace(gaps []gap) bool {
	for _, g := range gaps {
		if g.fact.Empty() && g.rule.Value == "session.workspace.path" {
			return true
		}
	}
	return false
}

// missingText tells the model what to do.
func missingText(tool string, r *rule) string {
	how := "set " + r.Value + " for the session"
	if r.Value == "session.workspace.path" {
		how = "set the session's workspace (--workspace or ATTACHE_WORKSPACE for attache, or _meta of the client)"
	}
	return fmt.Sprintf("missing %s: the tool %s needs the argument %q and the session has no value for it. Give it in the call, or ask the user to %s.",
		r.path, tool, r.path, how)
}

// fill writes the values into the call.
func (a *Arguments) fill(call *middleware.Call, m *wire.Message, view *sessionstate.Context, gaps []gap) {
	round, before := a.rounds.begin(m, view)
	var filled map[string]string
	for _, g := range gaps {
		value := g.fact.Value
		if v, ok := before[g.rule.path]; ok {
			value = v
		}
		if value == "" {
			continue
		}
		a.quoted = wire.AppendQuote(a.quoted[:0], value)
		if err := m.Set(a.quoted, g.rule.keys...); err != nil {
			a.o.Log.Warn("an argument could not be filled; the call passes as it came", "argument", g.rule.path, "err", err)
			continue
		}
		if round != 0 {
			if filled == nil {
				filled = map[string]string{}
			}
			filled[g.rule.path] = value
		}
	}
	if filled != nil {
		call.OnReply(a.rounds.keep(round, filled))
	}
}
