package arguments

import (
	"errors"
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
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
	// Value gives the argument's value, of any JSON type; nil for Forbid. Compile it with
	// [expression.Any]. An empty string or list and null count as no value, and so does whatever
	// reads the principal while there is none.
	Value *expression.Program
	// When, if not nil, is the condition under which the rule applies. It reads
	// the arguments as the client sent them. A condition that fails lets a Fill
	// rule pass and has a Pin or Forbid rule refuse.
	When *expression.Program
	// Schema says how the argument is shown; "" stands for what the mode does. A
	// rule whose condition reads arguments leaves the schema as it is.
	Schema Schema
	// PathOnly has a Fill rule fill only an argument that the tool requires and that,
	// by [Judge], takes the path of the workspace. One that is optional is filled only
	// where the client itself announced the workspace in _meta.
	PathOnly bool
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
	return Rule{Tools: []string{"*"}, Argument: []string{"workspace"}, Value: value, PathOnly: true}
}

const workspacePath = "session.workspace.path"

// check returns an error for a rule that makes no sense.
func (r *Rule) check() error {
	switch {
	case len(r.Argument) == 0 || r.Argument[0] == "":
		return errors.New("it names no argument")
	case r.Mode != "" && r.Mode != Fill && r.Mode != Pin && r.Mode != Forbid:
		return fmt.Errorf("the mode %q is not known: write fill, pin or forbid", string(r.Mode))
	case r.Mode != Forbid && r.Value == nil:
		return errors.New("it has no value for the argument")
	}
	return nil
}

// A rule is a Rule with what is derived from it. It does not change.
type rule struct {
	Rule
	index int      // among the rules
	slot  int      // the same for rules with the same path
	keys  []string // from the frame's root
	path  string   // for people
	fact  string   // the path of the fact that is the value, "" if it is computed
}

func newRule(config Rule) rule {
	r := rule{Rule: config, path: strings.Join(config.Argument, ".")}
	r.keys = append([]string{"params", "arguments"}, config.Argument...)
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

// reads returns the argument names of the rule, its condition and its value, by depth.
func (r *rule) reads() [][]string {
	layers := []middleware.Layer{{}}
	for _, name := range r.Argument {
		layers[0].ArgumentNames = append(layers[0].ArgumentNames, []string{name})
	}
	for _, p := range []*expression.Program{r.When, r.Value} {
		if p != nil {
			layers = append(layers, middleware.Layer{ArgumentNames: p.ArgumentNames()})
		}
	}
	return middleware.Needs(layers...).ArgumentNames
}

func (r *rule) last() string { return r.Argument[len(r.Argument)-1] }

// names reports whether the rule is for a tool. The error is of a name that takes
// too long to match, as no ordinary one does.
func (r *rule) names(tool string) (bool, error) { return glob.Match(r.Tools, tool) }

// enforces reports whether the rule binds the client.
func (r *rule) enforces() bool { return r.Mode != Fill }

// bindingFirst orders the rules of each argument: those that bind the client take the places before
// those that only fill. A fill that somebody wrote first must not open what a pin closes.
func bindingFirst(rules []*rule) {
	for i := range rules {
		for at, j := i, i-1; j >= 0; j-- {
			if rules[j].slot == rules[at].slot && rank(rules[j]) < rank(rules[at]) {
				rules[j], rules[at] = rules[at], rules[j]
				at = j
			}
		}
	}
}
