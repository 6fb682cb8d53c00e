package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/middleware/arguments"
	toolglob "github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// examineNames reports rules that name no tool of the server, and names that look misspelled: a rule that
// never matches refuses and hides nothing.
func (d *Doctor) examineNames(names []string) {
	d.check = "rules"
	var unused []string
	examine := func(rule string, patterns []string, elsewhere bool) {
		misspelled := d.misspelled(rule, patterns, names)
		if !misspelled && !elsewhere && !slices.ContainsFunc(names, func(name string) bool { return matches(patterns, name) }) {
			unused = append(unused, d.placed(rule))
		}
	}
	for _, r := range d.Settings.Access.Rules {
		examine(r.Name, r.Tools, false)
	}
	for _, r := range d.Settings.Access.Rates {
		examine(r.Name, r.Tools, false)
	}
	for _, r := range d.Settings.Rewrite {
		examine(r.Name, r.Tools, r.Hide) // it may be for prompts or resources
		d.examineRename(&r, names)
	}
	for _, r := range d.Settings.Arguments {
		examine(r.Name, r.Tools, true) // examineTools reports it
	}
	if len(unused) > 0 {
		d.note("nothing, if they are for another server; or correct their tools", "rules that match no tool of this server: %s", strings.Join(unused, ", "))
	}
}

// examineRename reports a rename to the name of another tool that stays as it is: the list and calls to that
// name then get an error.
func (d *Doctor) examineRename(r *rewrite.Rule, names []string) {
	if r.Rename == "" || !slices.Contains(names, r.Rename) || !slices.Contains(names, r.Tools[0]) {
		return
	}
	for _, other := range d.Settings.Rewrite {
		if (other.Hide || other.Rename != "") && matches(other.Tools, r.Rename) || other.Hide && matches(other.Tools, r.Tools[0]) {
			return
		}
	}
	report := d.problem
	if r.When != nil {
		report = d.warn
	}
	report("choose another name, or hide or rename that tool too", "%s renames %q to %q, which the server has too: its tools cannot be listed", d.placed(r.Name), r.Tools[0], r.Rename)
}

// misspelled warns if a pattern without * and ? is not the name of a tool, but resembles the name of a
// tool that the rule does not match. It reports whether there is such a pattern.
func (d *Doctor) misspelled(rule string, patterns, names []string) (found bool) {
	for _, p := range patterns {
		if strings.ContainsAny(p, "*?") || slices.Contains(names, p) {
			continue
		}
		if near := cli.Nearest(p, names); near != "" && !matches(patterns, near) {
			found = true
			d.warn("correct the name, unless it is a tool of another server", "%s is for the tool %q, which this server does not have: did you mean %q?", d.placed(rule), p, near)
		}
	}
	return found
}

// matches reports whether a pattern matches the name of a tool, or the match would take too long.
func matches(patterns []string, name string) bool {
	ok, err := toolglob.Match(patterns, name)
	return ok || err != nil
}

// rulesFor returns the rules that may act on an argument, in the order in which attache tries them: first pins
// and forbids, then fills. It leaves out the rules after one without a condition.
func rulesFor(a *toolArgument, rules []arguments.Rule) (found []*arguments.Rule) {
	for _, enforcing := range []bool{true, false} {
		for i := range rules {
			r := &rules[i]
			enforces := r.Mode == arguments.Pin || r.Mode == arguments.Forbid
			if applies, err := toolglob.Match(r.Tools, a.tool); enforces != enforcing || err != nil || !applies || !slices.Equal(r.Argument, a.path) {
				continue
			}
			if found = append(found, r); r.When == nil {
				return found
			}
		}
	}
	return found
}

// actingRule returns the first rule whose condition is true in this session or may be true for some calls,
// or that refuses calls because its condition fails: a pin or forbid. If there is none, it returns the first
// one, and nil without rules.
func actingRule(rules []*arguments.Rule, in *expression.Inputs) *arguments.Rule {
	for _, r := range rules {
		if r.When == nil || r.When.UsesArguments() {
			return r
		}
		if holds, err := r.When.Holds(in); holds || err != nil && r.Mode != arguments.Fill {
			return r
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return rules[0]
}

// placed returns the name of a rule with its place in a file.
func (d *Doctor) placed(rule string) string {
	if at := d.Settings.Origin(rule); !at.Default() {
		return fmt.Sprintf("%s (%v)", rule, at)
	}
	return rule
}

type toolArgument struct {
	tool        string
	path        []string
	text        bool // it accepts a string; rules are suggested only for such arguments
	verdict     arguments.Verdict
	optional    bool
	schema      []byte          // the schema of the tool
	annotations []byte          // of the tool
	rule        *arguments.Rule // that acts on it; see actingRule
	misfit      string          // why it does not accept the value of its rule
}
