package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/inspect"
	"github.com/attache-mcp/attache/middleware/arguments"
	toolglob "github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
)

// An argumentGroup is an argument that several tools have in the same form, and what attache
// does with it.
type argumentGroup struct {
	argument string // its name, or its path into objects
	tools    []string
	// path says that it takes the path of the workspace by its schema; why says why or
	// why not, and words are the words of the schema that decided.
	path       bool
	why, words string
	// rule is the rule that acts, mode what it does, and value what it gives.
	rule, mode, value string
	builtIn           bool // the built-in rule is for it, and leaves it alone
}

const workspaceValue = "session.workspace.path"

// A toolArgument is an argument of one tool.
type toolArgument struct {
	tool     string
	path     []string
	text     bool // it may be text, which is all that is suggested
	verdict  arguments.Verdict
	optional bool
}

// maxArgumentDepth is how deep arguments are looked for in objects.
const maxArgumentDepth = 4

// toolArguments returns the arguments of the tools in a JSON array.
func toolArguments(list []byte) []toolArgument {
	var all []toolArgument
	for entry := range (wire.Value{Raw: list}).Elements() {
		tool := entry.Get("name").Text()
		var walk func(schema wire.Value, path []string)
		walk = func(schema wire.Value, path []string) {
			if len(path) == maxArgumentDepth {
				return
			}
			required := textsOf(schema.Get("required"))
			for m := range schema.Get("properties").Members() {
				at := append(slices.Clone(path), m.Key.Text())
				all = append(all, toolArgument{
					tool: tool, path: at, text: admitsText(m.Value),
					verdict:  arguments.Judge(tool, entry.Get("inputSchema").Raw, at...),
					optional: !slices.Contains(required, m.Key.Text()),
				})
				walk(m.Value, at)
			}
		}
		walk(entry.Get("inputSchema"), nil)
	}
	return all
}

// textsOf returns the texts in a list.
func textsOf(list wire.Value) []string {
	var all []string
	for one := range list.Elements() {
		all = append(all, one.Text())
	}
	return all
}

// admitsText reports whether the type in schema allows a text.
func admitsText(schema wire.Value) bool {
	kind := schema.Get("type")
	switch {
	case kind.IsString():
		return kind.Text() == "string"
	case kind.IsArray():
		return slices.Contains(textsOf(kind), "string")
	}
	return true // not said, or by anyOf
}

// repeated returns a name that occurs twice, "" if none does.
func repeated(names []string) string {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

// groupArguments groups, by name and rule, the arguments that a rule sets or that take the path
// of the workspace, in the order of their names.
func groupArguments(all []toolArgument, rules []arguments.Rule) []argumentGroup {
	byKey := map[string]*argumentGroup{}
	for _, a := range all {
		r := ruleFor(a, rules)
		if r == nil && (!a.verdict.Path || !a.text) {
			continue
		}
		g := argumentGroup{argument: strings.Join(a.path, "."), path: a.verdict.Path, why: a.verdict.Why, words: a.verdict.Words}
		switch {
		case r == nil:
		case r.PathOnly && (!g.path || a.optional):
			g.builtIn = true
		default:
			g.rule, g.mode = cmp.Or(r.Name, builtInRule), cmp.Or(string(r.Mode), "fill")
			if r.Value != nil {
				g.value = r.Value.String()
			}
		}
		key := fmt.Sprint(g.argument, "\x00", g.rule, g.builtIn, g.why, "\x00", g.words)
		if byKey[key] == nil {
			byKey[key] = &g
		}
		if kept := byKey[key]; !slices.Contains(kept.tools, a.tool) {
			kept.tools = append(kept.tools, a.tool)
		}
	}
	var groups []argumentGroup
	for _, g := range byKey {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b argumentGroup) int {
		return cmp.Or(cmp.Compare(a.argument, b.argument), cmp.Compare(a.rule, b.rule), cmp.Compare(a.tools[0], b.tools[0]))
	})
	return groups
}

// builtInRule names the rule that applies without configuration.
const builtInRule = "the built-in rule"

// ruleFor returns the first rule for an argument, nil if there is none.
func ruleFor(a toolArgument, rules []arguments.Rule) *arguments.Rule {
	for i, r := range rules {
		if applies, err := toolglob.Match(r.Tools, a.tool); err == nil && applies && slices.Equal(r.Argument, a.path) {
			return &rules[i]
		}
	}
	return nil
}

// toolsText names the tools, or the first few of many.
func toolsText(tools []string, all int) string {
	const show = 4
	switch {
	case len(tools) == all && all > 1:
		return "all " + cli.Plural(all, "tool")
	case len(tools) > show:
		return fmt.Sprintf("%s (%s and others)", cli.Plural(len(tools), "tool"), strings.Join(tools[:show], ", "))
	}
	return strings.Join(tools, ", ")
}

// suggestedRules returns rules for the arguments that take the path of the workspace and have
// none, in the form of the configuration; "" if there is nothing to suggest. A list of rules
// replaces the built-in rule, so it also has rules for the arguments that the built-in rule fills.
func suggestedRules(groups []argumentGroup, tools int) string {
	var lines, before []string
	for _, g := range groups {
		builtIn := g.rule == builtInRule
		if builtIn {
			g.rule = ""
		}
		line := suggestedRule(g, tools)
		switch {
		case line == "":
		case builtIn:
			before = append(before, line+", as without a list")
		default:
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "arguments:\n" + strings.Join(append(before, lines...), "\n") + "\n"
}

// plainName matches the names that a rule can be written with: without a dot, which leads into
// objects, and without characters that mean something in a pattern or in YAML.
func plainName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_/-]{0,99}$`) }

// suggestedRule returns a rule for an argument that has none, "" if none is to be suggested.
// Names of the server that are not plain are left out.
func suggestedRule(g argumentGroup, all int) string {
	plain := plainName()
	bad := func(name string) bool { return !plain.MatchString(name) }
	if g.rule != "" || !g.path || slices.ContainsFunc(strings.Split(g.argument, "."), bad) {
		return ""
	}
	tools := slices.DeleteFunc(slices.Clone(g.tools), bad)
	if len(g.tools) == all {
		tools = []string{"*"}
	}
	if len(tools) == 0 {
		return ""
	}
	list, _ := json.Marshal(tools) // strings never fail
	return fmt.Sprintf("  - {tools: %s, argument: %s, value: %s} # its schema says %s", list, g.argument, workspaceValue, strconv.QuoteToASCII(g.words))
}

// examineTools reports which arguments attache fills or could fill.
func (d *Doctor) examineTools(list []byte, conn *assembly.Conn) {
	names := inspect.ToolNames(list)
	d.check = "tools"
	if twice := repeated(names); twice != "" {
		d.warn("report it to the server's makers: a call by that name reaches only one of them", "it has two tools named %q", twice)
	}
	d.check = "arguments"
	rules := assembly.ArgumentRules(d.Settings)
	groups := groupArguments(toolArguments(list), rules)
	for _, g := range groups {
		d.reportArgument(g, conn, len(names))
	}
	for _, r := range rules {
		acts := slices.ContainsFunc(groups, func(g argumentGroup) bool { return g.rule == r.Name })
		if !acts && r.Name != "" && d.Settings.Arguments != nil {
			d.note("nothing, if it is for another server; or correct its tools or argument",
				"%s (argument %s) is for no argument of this server's tools", r.Name, strings.Join(r.Argument, "."))
		}
	}
	d.rules = suggestedRules(groups, len(names))
	if len(groups) == 0 {
		d.ok("no tool has an argument that takes the path of the workspace by its schema")
	}
}

// reportArgument reports what attache does with an argument. all is the number of tools.
func (d *Doctor) reportArgument(g argumentGroup, conn *assembly.Conn, all int) {
	what, rule := fmt.Sprintf("%q of %s", g.argument, toolsText(g.tools, all)), g.rule
	if at := d.Settings.Origin(rule); !at.Default() {
		rule += fmt.Sprintf(" (%v)", at)
	}
	switch {
	case g.rule == "" && g.path:
		d.note("look at the rules below, and paste those that are right for you", "%s is not filled; %s", what, g.reason())
	case g.rule == "":
		d.note("nothing; or, if it does take that path, write a rule for it, as docs/rules.md has them",
			"%s is left alone by the built-in rule: %s", what, g.reason())
	case g.mode == string(arguments.Forbid):
		d.ok("%s is forbidden by %s", what, rule)
	case g.value == workspaceValue && !g.path && g.words != "":
		d.warn("correct the rule; the value may be session.workspace.id, or a text of your own",
			"%s is set by %s from %s, which it does not take: %s", what, rule, g.value, g.reason())
	case g.value == workspaceValue && !g.path:
		d.note("see in the server's documentation that it takes that path", "%s is set by %s, mode %s, from %s; %s", what, rule, g.mode, g.value, g.reason())
	case d.unknownValue(g.value, conn):
		d.note("nothing, if the client says it; or say it by the flags or a key, as in --workspace",
			"%s is set by %s, mode %s, from %s, which is not known here", what, rule, g.mode, g.value)
	default:
		d.ok("%s is set by %s, mode %s, from %s", what, rule, g.mode, g.value)
	}
}

// reason returns why an argument takes the path of the workspace, or why not.
func (g *argumentGroup) reason() string {
	if g.words == "" {
		return g.why
	}
	return fmt.Sprintf("%s (%q)", g.why, g.words)
}

// unknownValue reports whether a value is a fact that the session does not have.
func (d *Doctor) unknownValue(value string, conn *assembly.Conn) bool {
	fact, known := d.identified(conn.Context()).Lookup(value)
	return known && fact.Empty()
}
