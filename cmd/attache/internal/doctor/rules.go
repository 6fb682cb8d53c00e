package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	toolglob "github.com/attache-mcp/attache/middleware/glob"
)

// examineNames reports rules that name no tool of the server, and names that look misspelled: a rule that
// never matches refuses and hides nothing.
func (d *Doctor) examineNames(names []string) {
	d.check = "rules"
	for _, r := range d.Settings.Access.Rules {
		d.misspelled(r.Name, r.Tools, names)
		d.unused(r.Name, r.Tools, names)
	}
	for _, r := range d.Settings.Access.Rates {
		d.misspelled(r.Name, r.Tools, names)
		d.unused(r.Name, r.Tools, names)
	}
	for _, r := range d.Settings.Rewrite {
		d.misspelled(r.Name, r.Tools, names)
		if !r.Hide { // or it may be for prompts or resources
			d.unused(r.Name, r.Tools, names)
		}
	}
	for _, r := range d.Settings.Arguments {
		d.misspelled(r.Name, r.Tools, names)
	}
}

// misspelled warns of names without * and ? that the server does not have, if it has a similar one.
func (d *Doctor) misspelled(rule string, patterns, names []string) {
	for _, p := range patterns {
		if strings.ContainsAny(p, "*?") || slices.Contains(names, p) {
			continue
		}
		if near := cli.Nearest(p, names); near != "" {
			d.warn("correct the name, unless it is a tool of another server", "%s is for the tool %q, which this server does not have: did you mean %q?", d.placed(rule), p, near)
		}
	}
}

// unused notes a rule that matches none of the server's tools.
func (d *Doctor) unused(rule string, patterns, names []string) {
	matches := func(name string) bool {
		ok, err := toolglob.Match(patterns, name)
		return ok || err != nil
	}
	if !slices.ContainsFunc(names, matches) {
		d.note("nothing, if it is for another server; or correct its tools", "%s is for none of this server's tools", d.placed(rule))
	}
}

// placed returns the name of a rule with its place in a file.
func (d *Doctor) placed(rule string) string {
	if at := d.Settings.Origin(rule); !at.Default() {
		return fmt.Sprintf("%s (%v)", rule, at)
	}
	return rule
}
