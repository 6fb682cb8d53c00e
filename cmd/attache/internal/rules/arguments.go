package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// Arguments returns a value that is a list of rules for the arguments of tools.
func Arguments(to *[]arguments.Rule) setting.Value {
	return setting.Entries[arguments.Rule]{
		To:       to,
		Default:  arguments.Rule{Mode: arguments.Fill},
		Name:     func(r *arguments.Rule) *string { return &r.Name },
		Options:  ruleOptions,
		Required: []string{"tools", "argument"},
		Example:  argumentExample,
		Unset:    "the built-in rule: fill workspace from session.workspace.path",
		Check:    checkArgument,
		Warn:     warnPrecedence,
	}
}

const argumentExample = `{tools: ["git_*"], argument: path, value: session.workspace.path}`

func ruleOptions(r *arguments.Rule) []setting.Option {
	return []setting.Option{
		{Key: "tools", Help: "globs of the tools' names", Value: globs(&r.Tools)},
		{Key: "argument", Help: "the name of the argument, or its path into objects: options.workspace", Value: dottedPath{&r.Argument}},
		{Key: "value", Help: "where the value comes from, such as session.workspace.path", Value: argumentValue{setting.Expression(&r.Value, expression.Any), &r.Value}},
		{Key: "when", Help: "the condition under which the rule applies", Value: setting.Expression(&r.When, expression.Bool)},
		{Key: "mode", Help: "fill: set if the call lacks it; pin: always set; forbid: a call that has it is refused", Value: setting.Choice((*string)(&r.Mode), string(arguments.Fill), string(arguments.Pin), string(arguments.Forbid))},
		{Key: "schema", Help: "how the model sees the argument in the schema; default: optional with fill, else hide", Value: setting.Choice((*string)(&r.Schema), string(arguments.Keep), string(arguments.Optional), string(arguments.Hide))},
		{Key: "required", Help: "refuse a call that lacks the argument when there is no value either; default: if the tool's schema requires it", Value: setting.OptionalBool(&r.Required)},
	}
}

// errCallerChooses is returned for a rule for which [callerChooses] is true.
var errCallerChooses = errors.New("the call would say who calls, as the value depends on the principal, and when reads the argument that it is for: remove that from when")

// callerChooses reports whether the value of a rule depends on the principal while its condition
// reads the argument that it sets. The caller could then choose between its own value and that of
// the principal, as with a fill.
func callerChooses(when, value *expression.Program, argument []string) bool {
	return value.UsesPrincipal() && when.ReadsArgument(argument)
}

// checkArgument returns an error if rule i is wrong by itself or conflicts with a rule before it.
func checkArgument(all []arguments.Rule, i int) error {
	r := &all[i]
	switch {
	case r.Mode == arguments.Forbid && r.Value != nil:
		return errors.New("mode forbid takes no value, it refuses the argument whatever it is: remove the value, or write mode: pin to set it")
	case r.Mode != arguments.Forbid && r.Value == nil:
		return fmt.Errorf("has no %q: write it as %s", "value", argumentExample)
	case r.Mode != arguments.Fill && r.Required != nil:
		return fmt.Errorf("required is for mode fill: remove it; a call that mode %s cannot be applied to is refused in any case", r.Mode)
	case r.Mode == arguments.Fill && r.Value.UsesPrincipal():
		return fmt.Errorf("mode fill would let the call say who calls, as the value depends on the principal (%s): write mode: pin", r.Value)
	case r.Mode == arguments.Pin && r.Value.UsesArguments():
		return errors.New("a pinned value must not depend on arguments, which are the client's to choose: take it from session or principal")
	case r.Mode == arguments.Pin && callerChooses(r.When, r.Value, r.Argument):
		return errCallerChooses
	}
	for n := range all[:i] {
		switch earlier := &all[n]; {
		case !covers(earlier, r):
		case !precedes(r, earlier):
			return fmt.Errorf("never applies: %s is about the same argument of the same tools, and the first that applies counts: put the rule for fewer tools first, or remove one of the two", earlier.Name)
		case covers(r, earlier):
			return fmt.Errorf("applies in place of %s, which is about the same argument of the same tools: mode %s comes before mode fill: remove one of the two", earlier.Name, r.Mode)
		}
	}
	return nil
}

// precedes reports whether r takes precedence over earlier, a rule before it, if both apply:
// pin and forbid take precedence over fill.
func precedes(r, earlier *arguments.Rule) bool {
	return r.Mode != arguments.Fill && earlier.Mode == arguments.Fill
}

// warnPrecedence returns a warning if rule i takes precedence over a rule before it, because the
// order of the two suggests the opposite.
func warnPrecedence(all []arguments.Rule, i int) string {
	r := &all[i]
	for n := range all[:i] {
		if earlier := &all[n]; slices.Equal(earlier.Argument, r.Argument) && precedes(r, earlier) && overlap(earlier.Tools, r.Tools) {
			return fmt.Sprintf("mode %s applies to the argument %s also where %s (mode fill), which comes before it, names the tool: put %s first, or name other tools in %s", r.Mode, strings.Join(r.Argument, "."), earlier.Name, r.Name, earlier.Name)
		}
	}
	return ""
}

// overlap reports whether a tool may match patterns of both lists.
func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(one string) bool {
		return slices.ContainsFunc(b, func(other string) bool { return glob.Overlap(one, other) })
	})
}

// covers reports whether r applies to every call that later applies to.
func covers(r, later *arguments.Rule) bool {
	return slices.Equal(r.Argument, later.Argument) && r.When == nil && !slices.ContainsFunc(later.Tools, func(pattern string) bool {
		return !slices.ContainsFunc(r.Tools, func(tool string) bool { return glob.Covers(tool, pattern) })
	})
}

// argumentPath returns an error if s is not the name of an argument, or names joined by dots.
func argumentPath(s string) error {
	if s == "" || slices.Contains(strings.Split(s, "."), "") {
		return fmt.Errorf("%q has an empty name in it: write the argument's name, or a path such as options.workspace", s)
	}
	return nil
}

// dottedPath reads the path of an argument, such as options.workspace.
type dottedPath struct{ to *[]string }

func (v dottedPath) Set(s, base string) error {
	err := setting.Text(&s, argumentPath).Set(s, base)
	if err == nil {
		*v.to = strings.Split(s, ".")
	}
	return err
}

func (v dottedPath) String() string         { return strings.Join(*v.to, ".") }
func (v dottedPath) Schema() map[string]any { return map[string]any{"type": "string"} }

// An argumentValue reads the expression for the value of an argument. Most are plain paths, so it
// suggests the right path for a misspelled one.
type argumentValue struct {
	setting.Scalar
	to **expression.Program
}

func (v argumentValue) Set(s, base string) error {
	err := v.Scalar.Set(s, base)
	if err != nil && looksLikeText(s) {
		return fmt.Errorf(`for the text itself write it in quotes, '"%s"'; %q is not an expression: %w`, s, s, err)
	}
	if !isPath(s) || err == nil && (*v.to).Path() != "" {
		return err
	}
	root, _, dotted := strings.Cut(s, ".")
	known := sessionstate.KnownPaths()
	switch {
	case err == nil && dotted && root != "session" && root != "principal":
		return nil // a path into arguments or tool
	case err == nil && !dotted && !slices.Contains([]string{"session", "principal", "tool", "arguments", "server"}, s):
		return nil // true or false
	}
	*v.to = nil
	for _, path := range known {
		if strings.HasPrefix(path, s+".") {
			return fmt.Errorf("unknown value %q: did you mean %q? the values are %s", s, path, strings.Join(known, ", "))
		}
	}
	if near := cli.Nearest(s, known); near != "" {
		return fmt.Errorf("unknown value %q: did you mean %q? the values are %s", s, near, strings.Join(known, ", "))
	}
	return fmt.Errorf(`unknown value %q: write one of %s, or an expression; for the text itself '"%s"'`, s, strings.Join(known, ", "), s)
}

// looksLikeText reports whether s is probably a text and not an expression: the path of a file, an
// address or a word with dashes.
func looksLikeText(s string) bool {
	return strings.ContainsAny(s, "/-:@~") && !strings.ContainsAny(s, "\"'()[]{}?=<>&|!+*% \t\n\\")
}

// isPath reports whether s consists of names joined by dots.
func isPath(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return c != '.' && c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}
