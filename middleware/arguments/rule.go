package arguments

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

const layerName = "arguments"

// A Mode is what a rule does with its argument.
type Mode string

// The modes; see the package comment.
const (
	Fill   Mode = "fill"
	Pin    Mode = "pin"
	Forbid Mode = "forbid"
)

// A Schema is the way to show the argument of a rule in tools/list.
type Schema string

// The ways to show an argument.
const (
	Keep     Schema = "keep"     // as the upstream shows it
	Optional Schema = "optional" // the property stays and is not required; the default of Fill
	Hide     Schema = "hide"     // the property is removed; the default of Pin and Forbid
)

// A Rule is a rule for one argument of the tools that match its patterns.
type Rule struct {
	// Name is the rule's place in the configuration, for notes and errors; "" means
	// "arguments[i]", with its index, except in a PathOnly rule.
	Name string
	// Tools are patterns of tool names, with * and ?.
	Tools []string
	// Argument is the path of the argument: one key, or the keys of nested objects and
	// the argument.
	Argument []string
	// Mode is what the rule does; "" stands for Fill. A Fill rule whose Value
	// depends on the principal is a Pin.
	Mode Mode
	// Value yields the argument's value, of any JSON type; nil for Forbid. Compile it with
	// [expression.Any]. An empty string, an empty list and null count as no value, and so does
	// any expression that reads the principal while nobody is identified.
	Value *expression.Program
	// When, if not nil, is the condition under which the rule applies. It reads the
	// arguments as the client sent them. If it cannot be evaluated, a Fill rule does
	// nothing, and a Pin or Forbid rule refuses the call.
	When *expression.Program
	// Schema is the way to show the argument; "" stands for the default of the mode. A
	// rule whose condition reads arguments does not change the schema.
	Schema Schema
	// PathOnly makes a Fill rule fill only an argument that the tool requires and that,
	// according to [Judge], takes the path of the workspace. An optional argument is filled
	// only if the client itself sent the workspace in _meta.
	PathOnly bool
	// Required determines the result of a call if neither it nor a Fill rule has a value:
	// true, an error for the model; false, the call passes; nil, an error if the upstream's
	// schema requires the argument.
	Required *bool
}

// Default returns the built-in rule, which applies without a configuration: it fills the argument
// workspace of every tool for which PathOnly allows it.
func Default() Rule {
	value, err := expression.Compile(workspacePath, expression.Any)
	if err != nil {
		panic(err) // a constant that compiles
	}
	return Rule{Tools: []string{"*"}, Argument: []string{"workspace"}, Value: value, PathOnly: true}
}

const workspacePath = "session.workspace.path"

func (r *Rule) check() error {
	if err := glob.Check(r.Tools); err != nil {
		return err
	}
	switch {
	case len(r.Argument) == 0 || r.Argument[0] == "":
		return errors.New("it names no argument")
	case r.Mode != "" && r.Mode != Fill && r.Mode != Pin && r.Mode != Forbid:
		return fmt.Errorf("the mode %q is not known: write fill, pin or forbid", string(r.Mode))
	case r.Mode != Forbid && r.Value == nil:
		return errors.New("it has no value for the argument")
	case r.Value != nil && r.Value.Type() != expression.Any:
		return errors.New("value is a condition: compile it as a value")
	case r.When != nil && r.When.Type() != expression.Bool:
		return errors.New("when is not a condition: compile it as one")
	}
	return nil
}

// A rule is a compiled Rule. It does not change.
type rule struct {
	Rule
	index int      // among the rules
	slot  int      // the same for rules with the same argument, of which one counts for a call
	keys  []string // the path of the argument from the frame's root
	path  string   // the path of the argument for people
	fact  string   // the path of the fact that is the value, "" if the value is computed
}

func newRule(config Rule) rule {
	r := rule{Rule: config, path: strings.Join(config.Argument, ".")}
	r.keys = append([]string{"params", "arguments"}, config.Argument...)
	r.Mode = cmp.Or(r.Mode, Fill)
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

// reads returns layers with the argument names of the rule, its condition and its value.
func (r *rule) reads() []middleware.Layer {
	layers := []middleware.Layer{{}}
	for _, name := range r.Argument {
		layers[0].ArgumentNames = append(layers[0].ArgumentNames, []string{name})
	}
	return append(layers, middleware.Layer{ArgumentNames: r.When.ArgumentNames()}, middleware.Layer{ArgumentNames: r.Value.ArgumentNames()})
}

func (r *rule) last() string { return r.Argument[len(r.Argument)-1] }

// matches reports whether the rule's patterns match a tool. The error is [glob.ErrTooLong].
func (r *rule) matches(tool string) (bool, error) { return glob.Match(r.Tools, tool) }

// enforces reports whether the rule binds the client.
func (r *rule) enforces() bool { return r.Mode != Fill }

// sortEnforcingFirst moves the rules of each argument that enforce before those that fill, within
// the positions of these rules, so that a fill that is listed first does not override a pin.
func sortEnforcingFirst(rules []*rule) {
	for i := range rules {
		for at, j := i, i-1; j >= 0; j-- {
			if rules[j].slot == rules[at].slot && rank(rules[j]) < rank(rules[at]) {
				rules[j], rules[at] = rules[at], rules[j]
				at = j
			}
		}
	}
}

func rank(r *rule) int {
	if r.enforces() {
		return 1
	}
	return 0
}
