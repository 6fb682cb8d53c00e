package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// InjectSettings say what "attache inject" does to which servers, by their names in
// the client's configuration, and for which workspaces, by their ids.
type InjectSettings struct {
	Servers    map[string]ServerRule
	Workspaces map[string]WorkspaceRule
}

// A ServerRule says for which sessions a server of a client's configuration is.
type ServerRule struct {
	Trust string // "direct": for direct sessions alone; "sandboxed": for all
}

// A WorkspaceRule says which servers the sessions of a workspace get, and how.
type WorkspaceRule struct {
	Servers []string // nil: all
	// Env are variables by the server they are for.
	Env map[string]map[string]string
}

func injectOptions(s *Settings) []option {
	return []option{
		{Key: "inject.servers", Help: "which sessions get a server from \"attache inject\", by the server's name in the client's configuration", value: mapping[ServerRule]{
			to:      &s.Inject.Servers,
			options: serverRuleOptions,
			key:     func(name string) error { return notEmpty(name) },
			example: "github: {trust: direct}",
		}},
		{Key: "inject.workspaces", Help: "which servers and variables the sessions of a workspace get from \"attache inject\", by the workspace's id", value: mapping[WorkspaceRule]{
			to:      &s.Inject.Workspaces,
			options: workspaceRuleOptions,
			key:     CheckSlug,
			example: "my-project: {servers: [git, github], env: {github: {GITHUB_OWNER: acme}}}",
		}},
	}
}

func serverRuleOptions(r *ServerRule) []option {
	return []option{
		{Key: "trust", Help: "the least trust a session must have to get the server: direct, or sandboxed for every session", value: choice{&r.Trust, TrustLevels()}},
	}
}

func workspaceRuleOptions(r *WorkspaceRule) []option {
	return []option{
		{Key: "servers", Help: "the only servers that sessions of the workspace get; without this key: all", value: words{to: &r.Servers}},
		{Key: "env", Help: "variables for single servers, over what their entries say", value: environments{&r.Env}},
	}
}

// mapping is a list of structures by their names.
type mapping[T any] struct {
	to      *map[string]T
	options func(*T) []option
	key     func(name string) error // says what is wrong with a name
	example string                  // an entry as the configuration writes it
}

// A table is what the reader of the file sees of [mapping].
type table interface {
	value
	// entry returns what can be set in the entry name, and what keeps it when it
	// is set.
	entry(name string) (all []option, keep func())
	checkName(name string) error
	sample() string
}

func (v mapping[T]) entry(name string) ([]option, func()) {
	one := new(T)
	return v.options(one), func() {
		if *v.to == nil {
			*v.to = map[string]T{}
		}
		(*v.to)[name] = *one
	}
}

func (v mapping[T]) checkName(name string) error { return v.key(name) }
func (v mapping[T]) sample() string              { return v.example }

func (v mapping[T]) String() string {
	var all []string
	for name, one := range *v.to {
		var fields []string
		for _, o := range v.options(&one) {
			if s := o.value.String(); s != "" && s != "[]" && s != "{}" {
				fields = append(fields, o.Key+": "+s)
			}
		}
		all = append(all, name+": {"+strings.Join(fields, ", ")+"}")
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ", ") + "}"
}

func (v mapping[T]) schema() map[string]any {
	properties := map[string]any{}
	for _, o := range v.options(new(T)) {
		properties[o.Key] = described(o)
	}
	return map[string]any{"type": "object", "additionalProperties": map[string]any{
		"type": "object", "properties": properties, "additionalProperties": false,
	}}
}

// environments are variables for several servers, by the servers' names.
type environments struct {
	to *map[string]map[string]string
}

func (v environments) String() string {
	var all []string
	for name, env := range *v.to {
		all = append(all, name+": "+variables{&env}.String())
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ", ") + "}"
}

func (v environments) schema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": variables{}.schema()}
}

// table reads structures by their names.
func (r *reader) table(key string, v table, n ast.Node) {
	entries, ok := r.fields(n, key)
	if !ok {
		return
	}
	for _, e := range entries {
		before := len(r.problems)
		if err := v.checkName(e.name); err != nil {
			r.problems.Add(e.at, "%s: %v", key, err)
			continue
		}
		options, keep := v.entry(e.name)
		r.tableEntry(key+"."+e.name, options, v.sample(), e)
		if len(r.problems) == before {
			keep()
		}
	}
}

// tableEntry reads one structure.
func (r *reader) tableEntry(key string, options []option, example string, e field) {
	if e.value == nil || e.value.Type() == ast.NullType {
		r.problems.Add(e.at, "%s: has no value: write it as %s, or remove it", key, example)
		return
	}
	fields, ok := r.fields(e.value, key)
	if !ok {
		return
	}
	known := &reader{options: options}
	for _, f := range fields {
		o, ok := known.option(f.name)
		if !ok {
			r.problems.Add(f.at, "%s: unknown key %q%s", key, f.name, known.suggest("", f.name))
			continue
		}
		r.value(key+"."+f.name, o.value, f)
	}
}

// environments reads variables by the servers they are for.
func (r *reader) environments(key string, to *map[string]map[string]string, n ast.Node) {
	fields, ok := r.fields(n, key)
	if !ok {
		return
	}
	all := map[string]map[string]string{}
	for _, f := range fields {
		var env map[string]string
		r.value(key+"."+f.name, variables{&env}, f)
		all[f.name] = env
	}
	*to = all
}

// longestSlug is how long an id may be. It is often the name of a file or a
// column elsewhere.
const longestSlug = 128

// CheckSlug accepts the id of a workspace: what is safe as the name of a file, in an
// address and in a shell, so that servers need not escape it.
func CheckSlug(s string) error {
	return plainID("workspace id", s, "._-")
}

// CheckSessionKey accepts the id of a session: those that hosts make, and no more.
func CheckSessionKey(s string) error {
	return plainID("session id", s, "._-:")
}

// plainID accepts letters, digits and the characters of more, beginning with a
// letter or digit.
func plainID(what, s, more string) error {
	if s == "" {
		return errors.New("the " + what + " is empty: give one")
	}
	strange := func(c rune) bool { return !isPlain(c) && !strings.ContainsRune(more, c) }
	if len(s) > longestSlug || !isPlain(rune(s[0])) || strings.ContainsFunc(s, strange) || strings.Contains(s, "..") {
		return fmt.Errorf("%q is no %s: write at most %d letters, digits and %s, a letter or digit first", cli.Elided(s), what, longestSlug, strings.Join(strings.Split(more, ""), " "))
	}
	return nil
}

func isPlain(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
