package config

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

// argumentRuleList is the list of the rules for arguments.
func argumentRuleList(to *[]arguments.Rule) setting.Value {
	return setting.Entries[arguments.Rule]{
		To:       to,
		Default:  arguments.Rule{Mode: arguments.Fill},
		Name:     func(r *arguments.Rule) *string { return &r.Name },
		Options:  ruleOptions,
		Required: []string{"tools", "argument"},
		Example:  argumentExample,
		Unset:    "the built-in rule: fill workspace from session.workspace.path",
		Check:    func(r *arguments.Rule) error { return checkArgument(*to, r) },
		Warn:     bindsOverFill,
	}
}

const argumentExample = `{tools: ["git_*"], argument: path, value: session.workspace.path}`

// ruleOptions returns what can be set in one rule for arguments.
func ruleOptions(r *arguments.Rule) []setting.Option {
	return []setting.Option{
		{Key: "tools", Help: "globs of the tools' names", Value: globs(&r.Tools)},
		{Key: "argument", Help: "the name of the argument, or its path into objects: options.workspace", Value: dotted{&r.Argument}},
		{Key: "value", Help: "where the value comes from: a path such as session.workspace.path, or an expression", Value: argumentValue{&r.Value}},
		{Key: "when", Help: "the condition under which the rule applies", Value: setting.Expression(&r.When, expression.Bool)},
		{Key: "mode", Help: "fill: set if the call lacks it; pin: always set; forbid: a call that has it is refused", Value: setting.Choice((*string)(&r.Mode), string(arguments.Fill), string(arguments.Pin), string(arguments.Forbid))},
		{Key: "schema", Help: "what the model is shown of the argument", Value: setting.Choice((*string)(&r.Schema), string(arguments.Keep), string(arguments.Optional), string(arguments.Hide))},
		{Key: "required", Help: "refuse a call that lacks the argument when there is no value either", Value: setting.OptionalBool(&r.Required)},
	}
}

// errCallSays is the mistake in a rule for which [letsCallSay] holds.
var errCallSays = errors.New("the call would say who calls, as the value depends on the principal, and when reads the argument that it is for: remove that from when")

// letsCallSay reports whether the value of a rule depends on the principal and its condition
// reads the very argument that it sets. The call would then choose between its own value and the
// principal's, as with a fill.
func letsCallSay(when, value *expression.Program, argument []string) bool {
	return when != nil && value.UsesPrincipal() && when.ReadsArgument(argument)
}

// checkArgument says what is wrong with r, by itself or beside those before it.
func checkArgument(all []arguments.Rule, r *arguments.Rule) error {
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
	case r.Mode == arguments.Pin && letsCallSay(r.When, r.Value, r.Argument):
		return errCallSays
	}
	for i := range all {
		if &all[i] == r {
			break
		}
		if covers(&all[i], r) && (!bindsOver(r, &all[i]) || covers(r, &all[i])) {
			return fmt.Errorf("never applies: %s is about the same argument of the same tools, and the first that applies counts: remove one of the two", all[i].Name)
		}
	}
	return nil
}

// bindsOver reports whether r takes precedence over earlier, a rule before it, where both apply:
// pin and forbid come before fill.
func bindsOver(r, earlier *arguments.Rule) bool {
	return r.Mode != arguments.Fill && earlier.Mode == arguments.Fill
}

// bindsOverFill names the first rule before rule i that rule i takes calls from,
// though the order suggests the contrary.
func bindsOverFill(all []arguments.Rule, i int) string {
	r := &all[i]
	for n := range all[:i] {
		if earlier := &all[n]; slices.Equal(earlier.Argument, r.Argument) && bindsOver(r, earlier) && overlap(earlier.Tools, r.Tools) {
			return fmt.Sprintf("mode %s holds for the argument %s also where %s (mode fill), which stands before it, names the tool: put %s first, or name other tools in %s", r.Mode, strings.Join(r.Argument, "."), earlier.Name, r.Name, earlier.Name)
		}
	}
	return ""
}

// overlap reports whether a tool may be named by patterns of both lists.
func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(one string) bool {
		return slices.ContainsFunc(b, func(other string) bool { return glob.Overlap(one, other) })
	})
}

// covers reports whether r applies to every call that later is for.
func covers(r, later *arguments.Rule) bool {
	return slices.Equal(r.Argument, later.Argument) && r.When == nil && !slices.ContainsFunc(later.Tools, func(pattern string) bool {
		return !slices.Contains(r.Tools, pattern) && !slices.Contains(r.Tools, "*")
	})
}

// dotted is the path of an argument.
type dotted struct{ to *[]string }

func (v dotted) Set(s, base string) error {
	err := setting.Text(&s, argumentPath).Set(s, base)
	if err == nil {
		*v.to = strings.Split(s, ".")
	}
	return err
}

func (v dotted) String() string         { return strings.Join(*v.to, ".") }
func (v dotted) Schema() map[string]any { return map[string]any{"type": "string"} }

// An argumentValue is an expression for the value of an argument. Most are plain
// paths, and for what is nearly one the reader says which.
type argumentValue struct{ to **expression.Program }

func (v argumentValue) Set(s, base string) error {
	err := setting.Expression(v.to, expression.Any).Set(s, base)
	if err != nil && looksLikeText(s) {
		return fmt.Errorf(`for the text itself write it in quotes, '"%s"'; %q is no expression: %w`, s, s, err)
	}
	if !isPath(s) || err == nil && (*v.to).Path() != "" {
		return err
	}
	root, _, dotted := strings.Cut(s, ".")
	known := sessionstate.KnownPaths()
	switch {
	case err == nil && dotted && root != "session" && root != "principal":
		return nil // of arguments or tool
	case err == nil && !dotted && !slices.Contains([]string{"session", "principal", "tool", "arguments", "server"}, s):
		return nil // true or false
	}
	*v.to = nil
	for _, path := range known {
		if strings.HasPrefix(path, s+".") {
			return fmt.Errorf("unknown value %q: did you mean %q? there are %s", s, path, strings.Join(known, ", "))
		}
	}
	if near := cli.Nearest(s, known); near != "" {
		return fmt.Errorf("unknown value %q: did you mean %q? there are %s", s, near, strings.Join(known, ", "))
	}
	return fmt.Errorf(`unknown value %q: write one of %s, or an expression; for the text itself '"%s"'`, s, strings.Join(known, ", "), s)
}

// looksLikeText reports whether s is more likely a text than an expression: a path of a file, an
// address or a word with dashes.
func looksLikeText(s string) bool {
	return strings.ContainsAny(s, "/-:@~") && !strings.ContainsAny(s, "\"'()[]{}?=<>&|!+*% \t\n\\")
}

// isPath reports whether s is nothing but names joined by dots.
func isPath(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return c != '.' && c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

func (v argumentValue) String() string { return setting.Expression(v.to, expression.Any).String() }
func (v argumentValue) Schema() map[string]any {
	return setting.Expression(v.to, expression.Any).Schema()
}
