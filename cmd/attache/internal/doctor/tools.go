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
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// An argumentGroup is an argument that several tools have in the same form, with what attache does with it.
type argumentGroup struct {
	// Argument is its name, or its path in objects.
	Argument string `json:"argument"`
	// Kind is workspace, according to its schema, or workspace id, project, organisation, repository or
	// tenant, according to its name; empty if only a rule names it.
	Kind  string   `json:"kind,omitempty"`
	Tools []string `json:"tools"`
	// Optional is true if the tools do not require it.
	Optional bool `json:"optional,omitempty"`
	// Path is true if it accepts the path of the workspace, according to its schema. Why is the reason, and
	// Words are the words of the schema that decided.
	Path  bool   `json:"path,omitempty"`
	Why   string `json:"why,omitempty"`
	Words string `json:"words,omitempty"`
	// Rule is the rule that applies, Mode its mode, Value its value, and When its condition.
	Rule  string `json:"rule,omitempty"`
	Mode  string `json:"mode,omitempty"`
	Value string `json:"value,omitempty"`
	When  string `json:"when,omitempty"`
	// Misfit is the reason why the argument does not accept the current value, so that calls are not
	// filled, or are pinned to what the server refuses.
	Misfit string `json:"misfit,omitempty"`

	suggest nameClass
	builtIn bool // the built-in rule is for this argument but does not fill it
}

// A nameClass describes arguments with certain names: their kind, and a value that could fill them.
type nameClass struct {
	kind  string
	names []string // in lower case, without separators
	// value is the expression for them. A text in double quotes is a constant that the operator has to
	// replace.
	value string
	pin   bool // a call must not choose it, because it identifies the caller
}

// constant reports whether the value is a constant that the operator has to replace.
func (l nameClass) constant() bool { return strings.HasPrefix(l.value, `"`) }

// nameClasses returns the classes of arguments that many servers have. The names are from servers for git,
// GitHub, GitLab, Sentry, Linear, Asana, Jira and others.
func nameClasses() []nameClass {
	return []nameClass{
		{kind: "workspace id", value: "session.workspace.id", names: []string{"workspaceid", "workspacegid", "workspaceslug", "workspacekey"}},
		{kind: "tenant", value: "principal.tenant", pin: true, names: []string{"tenant", "tenantid", "tenantslug", "accountid", "customerid"}},
		{kind: "organisation", value: `"YOUR-ORGANISATION"`, names: []string{
			"organization", "organisation", "org", "orgid", "orgslug", "organizationid", "organizationslug",
			"organisationid", "organisationslug", "owner", "team", "teamid", "teamkey",
		}},
		{kind: "project", value: `"YOUR-PROJECT"`, names: []string{
			"project", "projectid", "projectkey", "projectslug", "projectname", "projectgid", "projectnumber",
		}},
		{kind: "repository", value: `"YOUR-REPOSITORY"`, names: []string{
			"repo", "reponame", "reposlug", "repoid", "repository", "repositoryname", "repositoryslug", "repositoryid",
		}},
	}
}

// classOf returns the class of an argument: the path of the workspace according to its schema, or another
// class according to its name.
func classOf(name string, v arguments.Verdict) (nameClass, bool) {
	if v.Path {
		return nameClass{kind: "workspace", value: workspaceValue}, true
	}
	plain := strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(name))
	for _, l := range nameClasses() {
		if slices.Contains(l.names, plain) {
			return l, true
		}
	}
	return nameClass{}, false
}

const workspaceValue = "session.workspace.path"

const maxArgumentDepth = 4

// toolArguments returns the arguments of the tools in a JSON array.
func toolArguments(list []byte) []toolArgument {
	var all []toolArgument
	ownWorkspaces := false
	for entry := range (wire.Value{Raw: list}).Elements() {
		ownWorkspaces = ownWorkspaces || arguments.MakesWorkspaces(entry.Get("name").Text())
	}
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
				verdict := arguments.Judge(tool, entry.Get("inputSchema").Raw, at...)
				if ownWorkspaces {
					verdict = verdict.AmongOwn(m.Key.Text())
				}
				all = append(all, toolArgument{
					tool: tool, path: at, text: admitsText(m.Value),
					verdict:     verdict,
					optional:    !slices.Contains(required, m.Key.Text()),
					schema:      entry.Get("inputSchema").Raw,
					annotations: middleware.AnnotationsOf(entry),
				})
				walk(m.Value, at)
			}
		}
		walk(entry.Get("inputSchema"), nil)
	}
	return all
}

func textsOf(list wire.Value) []string {
	var all []string
	for one := range list.Elements() {
		all = append(all, one.Text())
	}
	return all
}

func admitsText(schema wire.Value) bool {
	kind := schema.Get("type")
	switch {
	case kind.IsString():
		return kind.Text() == "string"
	case kind.IsArray():
		return slices.Contains(textsOf(kind), "string")
	}
	return true // no type, or anyOf
}

// groupArguments groups the arguments that a rule sets or that have a class, by name and rule. It sorts the
// groups by name.
func groupArguments(all []toolArgument) []argumentGroup {
	byKey := map[string]*argumentGroup{}
	for _, a := range all {
		class, ok := classOf(a.path[len(a.path)-1], a.verdict)
		r := a.rule
		if r == nil && (!ok || !a.text) {
			continue
		}
		g := argumentGroup{Argument: strings.Join(a.path, "."), Kind: class.kind, suggest: class}
		g.Path, g.Why, g.Words = a.verdict.Path, a.verdict.Why, a.verdict.Words
		switch {
		case r == nil:
			g.Optional = a.optional
		case r.PathOnly && (!g.Path || a.optional):
			g.Optional, g.builtIn = a.optional, true
		default:
			g.Rule, g.Mode = cmp.Or(r.Name, builtInRule), cmp.Or(string(r.Mode), "fill")
			if r.Value != nil {
				g.Value = r.Value.String()
			}
			if r.When != nil {
				g.When = r.When.String()
			}
			g.Misfit = a.misfit
		}
		key := fmt.Sprint(g.Argument, "\x00", g.Kind, g.Rule, g.Optional, g.Why, "\x00", g.Words, "\x00", g.Misfit)
		if byKey[key] == nil {
			byKey[key] = &g
		}
		if group := byKey[key]; !slices.Contains(group.Tools, a.tool) {
			group.Tools = append(group.Tools, a.tool)
		}
	}
	var groups []argumentGroup
	for _, g := range byKey {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b argumentGroup) int {
		return cmp.Or(cmp.Compare(a.Argument, b.Argument), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Tools[0], b.Tools[0]))
	})
	return groups
}

// builtInRule is the name of the rule that applies without a configuration.
const builtInRule = "the built-in rule"

func withArticle(kind string) string {
	if strings.HasPrefix(kind, "o") {
		return "an " + kind
	}
	return "a " + kind
}

// toolsText lists the tools, or the first few of many. all is the number of all tools.
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

// suggestedRules returns rules for the arguments that have none, in the syntax of the configuration, or "" if
// there are none. A list of rules replaces the built-in rule, so it also contains rules for the arguments that
// the built-in rule fills.
func suggestedRules(groups []argumentGroup, tools int) string {
	var lines, builtInLines []string
	for _, g := range groups {
		builtIn := g.Rule == builtInRule
		if builtIn {
			g.Rule = ""
		}
		line := suggestedRule(g, tools)
		switch {
		case line == "":
		case builtIn:
			builtInLines = append(builtInLines, line+", as without a list")
		default:
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "arguments:\n" + strings.Join(append(builtInLines, lines...), "\n") + "\n"
}

// suggestedRule returns a rule for an argument that has none, or "". It omits names of the server that are not
// plain: those with a dot, which separates the names of nested objects, or with special characters of patterns
// or YAML. It suggests no constant for an optional argument, because setting a project, for example, could move
// an issue.
func suggestedRule(g argumentGroup, all int) string {
	plain := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_/-]{0,99}$`)
	path := strings.Split(g.Argument, ".")
	bad := func(name string) bool { return !plain.MatchString(name) }
	class := g.suggest
	if g.Rule != "" || class.kind == "" || g.Optional && class.constant() || slices.ContainsFunc(path, bad) {
		return ""
	}
	tools := slices.DeleteFunc(slices.Clone(g.Tools), bad)
	if len(g.Tools) == all {
		tools = []string{"*"}
	}
	if len(tools) == 0 {
		return ""
	}
	list, _ := json.Marshal(tools) // cannot fail
	line := fmt.Sprintf("  - {tools: %s, argument: %s, value: ", list, g.Argument)
	switch {
	case class.pin:
		line += class.value + ", mode: pin} # by its name; refuses the calls of those without one"
	case class.constant():
		line += "'" + class.value + "'} # by its name; write your own"
	case g.Path:
		line += fmt.Sprintf("%s} # its schema says %s", class.value, strconv.QuoteToASCII(g.Words))
	default:
		line += class.value + "} # by its name"
	}
	return line
}

// meantArgument suggests an argument of the rule's tools if that of the rule looks misspelled. It returns "" if not,
// and if the rule's has a further word, such as projectId for project: that is another argument, perhaps another server's.
func meantArgument(r *arguments.Rule, all []toolArgument) string {
	var names []string
	for _, a := range all {
		if matches(r.Tools, a.tool) {
			names = append(names, strings.Join(a.path, "."))
		}
	}
	name := strings.Join(r.Argument, ".")
	near := cli.Nearest(name, names)
	if near != "" && !slices.Contains(names, name) && !(strings.HasPrefix(name, near) && len(name) > len(near)+1) {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ""
}

// examineTools reports the arguments that attache fills or could fill.
func (d *Doctor) examineTools(list []byte, conn *assembly.Conn) {
	names := inspect.ToolNames(list)
	d.check = "tools"
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			d.warn("report it to the server's makers: a call by that name reaches only one of them", "it has two tools named %q", name)
			break
		}
	}
	d.examineNames(names)
	d.check = "arguments"
	rules := assembly.ArgumentRules(d.Settings)
	all := toolArguments(list)
	used := map[string]bool{} // names of rules
	view := d.identified(conn.Context())
	for i := range all {
		a := &all[i]
		candidates := rulesFor(a, rules)
		for _, r := range candidates {
			used[r.Name] = true
		}
		if a.rule = actingRule(candidates, &expression.Inputs{Context: view, Tool: a.tool, Annotations: a.annotations, Server: d.Settings.Server.Name}); a.rule != nil {
			a.misfit = a.rule.Misfit(&middleware.Tool{Name: a.tool, InputSchema: a.schema, Annotations: a.annotations}, view, d.Settings.Server.Name)
		}
	}
	groups := groupArguments(all)
	d.Arguments = groups
	for _, g := range groups {
		d.reportArgument(g, conn, len(names))
	}
	for i := range rules {
		if r := &rules[i]; !used[r.Name] && r.Name != "" && d.Settings.Arguments != nil {
			d.note("nothing, if it is for another server, or another rule for the argument applies; or correct its tools or argument",
				"%s (argument %s) sets no argument of this server's tools%s", r.Name, strings.Join(r.Argument, "."), meantArgument(r, all))
		}
	}
	d.Rules = suggestedRules(groups, len(names))
	if len(groups) == 0 {
		d.ok("no tool has an argument that looks like a workspace, project, organisation, repository or tenant")
	}
}

// reportArgument reports what attache does with an argument. all is the number of tools.
func (d *Doctor) reportArgument(g argumentGroup, conn *assembly.Conn, all int) {
	what, rule := fmt.Sprintf("%q of %s", g.Argument, toolsText(g.Tools, all)), d.placed(g.Rule)
	if g.When != "" {
		rule += " when " + g.When
	}
	switch {
	case g.Rule == "" && g.Path:
		d.note("look at the rules below, and paste those that are right for you", "%s is not filled; %s", what, g.reason())
	case g.Rule == "" && g.builtIn:
		d.note("nothing; or, if it does take that path, write a rule for it, as in docs/rules.md",
			"%s is left alone by the built-in rule: %s", what, g.reason())
	case g.Rule == "" && g.Optional && g.suggest.constant():
		d.note("nothing: calls without it have a meaning of their own", "%s is optional, looks like %s and is not filled", what, withArticle(g.Kind))
	case g.Rule == "":
		d.note("look at the rules below, and paste those that are right for you", "%s looks like %s and is not filled", what, withArticle(g.Kind))
	case g.Mode == string(arguments.Forbid):
		d.ok("%s is forbidden by %s", what, rule)
	case g.Misfit != "" && g.Mode == string(arguments.Pin):
		d.warn("write a rule for the other tools alone, or with a value that it takes", "%s is pinned by %s to %s, so the server may refuse every call: %s", what, rule, g.Value, g.Misfit)
	case g.Misfit != "":
		d.warn("write a rule for the other tools alone, or with a value that it takes", "%s is not filled by %s from %s: %s", what, rule, g.Value, g.Misfit)
	case g.Value == workspaceValue && !g.Path && g.Words != "":
		d.warn("correct the rule; the value may be session.workspace.id, or a text of your own",
			"%s is set by %s from %s, which it does not take: %s", what, rule, g.Value, g.reason())
	case g.Value == workspaceValue && !g.Path:
		d.note("check in the server's documentation that it takes that path", "%s is set by %s, mode %s, from %s; %s", what, rule, g.Mode, g.Value, g.reason())
	case d.unknownValue(g.Value, conn):
		d.note("nothing, if the client says it; or say it by the flags or a key, as in --workspace",
			"%s is set by %s, mode %s, from %s, which is not known here", what, rule, g.Mode, g.Value)
	default:
		d.ok("%s is set by %s, mode %s, from %s", what, rule, g.Mode, g.Value)
	}
}

// reason returns why an argument accepts the path of the workspace, or why not.
func (g *argumentGroup) reason() string {
	if g.Words == "" {
		return g.Why
	}
	return fmt.Sprintf("%s (%q)", g.Why, g.Words)
}

// unknownValue reports whether a value is a fact that the session does not have.
func (d *Doctor) unknownValue(value string, conn *assembly.Conn) bool {
	fact, known := d.identified(conn.Context()).Lookup(value)
	return known && fact.Empty()
}
