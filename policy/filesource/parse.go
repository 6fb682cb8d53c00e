package filesource

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// file is a policy file, with the places for the problems that crossCheck finds.
type file struct {
	path  string
	scope policy.Scope

	scopeAt, parentAt *token.Token
	dropAt            []*token.Token // one for each of scope.Drop
}

// reader collects the problems of one file.
type reader struct {
	path     string
	problems []Problem
}

// parse parses the content of a policy file. If it is no policy file at all, the result has only
// a path.
func parse(path string, data []byte) (*file, []Problem) {
	r := &reader{path: path}
	f := &file{path: path}
	if body := r.body(data, "the scope"); body != nil {
		r.file(body, f)
	}
	return f, r.problems
}

// body returns the YAML in data, nil if it is invalid. missing says what an empty file lacks.
func (r *reader) body(data []byte, missing string) ast.Node {
	content, err := textfile.ParseYAML(data)
	switch syntax, invalid := errors.AsType[*textfile.SyntaxError](err); {
	case invalid:
		r.problems = append(r.problems, Problem{File: r.path, Line: syntax.Line, Column: syntax.Column, Text: syntax.Text})
	case content == nil:
		r.add(nil, "is empty: write %s, or take the file out", missing)
	}
	return content
}

// file reads the top level of a policy file.
func (r *reader) file(body ast.Node, f *file) {
	var scopeSeen bool
	r.fields(body, "a policy file", fields{
		{"scope", func(n ast.Node) { scopeSeen, f.scopeAt, f.scope.Name = true, n.GetToken(), r.name(n, "scope") }},
		{"parent", func(n ast.Node) {
			if n.Type() != ast.NullType {
				f.parentAt, f.scope.Parent = n.GetToken(), r.name(n, "parent")
			}
		}},
		{"policies", func(n ast.Node) { f.scope.Policies = r.policies(n) }},
		{"drop", func(n ast.Node) {
			for _, item := range r.items(n, "drop") {
				if name := r.name(item, "a name to drop"); name != "" {
					f.scope.Drop, f.dropAt = append(f.scope.Drop, name), append(f.dropAt, item.GetToken())
				}
			}
		}},
		{"objectives", func(n ast.Node) { f.scope.Objectives = r.objectives(n) }},
	})
	if !scopeSeen && textfile.IsMapping(body) {
		r.add(nil, "has no scope: add a line such as scope: acme/platform")
	}
}

// ParseLoose parses the content of a policy file without a scope, such as that of a workspace.
// It may have only policies and objectives, because it inherits nothing. Problems call it path.
func ParseLoose(path string, data []byte) (policy.Effective, []Problem) {
	var e policy.Effective
	r := &reader{path: path}
	if body := r.body(data, "policies or objectives"); body != nil {
		r.fields(body, "a workspace's policy file", fields{
			{"policies", func(n ast.Node) { e.Policies = r.policies(n) }},
			{"objectives", func(n ast.Node) { e.Objectives = r.objectives(n) }},
		})
	}
	return e, r.problems
}

func (r *reader) objectives(list ast.Node) []string {
	var all []string
	for _, item := range r.items(list, "objectives") {
		if text := r.text(item, "an objective"); text != "" {
			all = append(all, text)
		}
	}
	return all
}

func (r *reader) policies(list ast.Node) []policy.Policy {
	var policies []policy.Policy
	at := make(map[string]*token.Token)
	for _, item := range r.items(list, "policies") {
		p, nameAt := r.policy(item)
		if p.Name == "" {
			continue // already a problem
		}
		if first, twice := at[p.Name]; twice {
			r.add(nameAt, "policy %s already exists, in line %d: rename one or take it out", quote(p.Name), first.Position.Line)
			continue
		}
		at[p.Name] = nameAt
		policies = append(policies, p)
	}
	return policies
}

func (r *reader) policy(item ast.Node) (p policy.Policy, nameAt *token.Token) {
	seen := make(map[string]bool)
	known := fields{
		{"name", func(n ast.Node) { p.Name, nameAt = r.name(n, "name"), n.GetToken() }},
		{"position", func(n ast.Node) { p.Position = r.position(n) }},
		{"text", func(n ast.Node) { p.Text = r.text(n, "text") }},
	}
	for i, f := range known {
		known[i].read = func(n ast.Node) { seen[f.key] = true; f.read(n) }
	}
	isPolicy := r.fields(item, "a policy", known)
	for _, f := range known {
		if isPolicy && !seen[f.key] {
			r.add(textfile.Start(item), "a policy here has no %s: add it, as in {name: tests, position: append, text: \"Write tests.\"}", f.key)
		}
	}
	return p, nameAt
}

func (r *reader) position(n ast.Node) policy.Position {
	text := r.text(n, "position")
	p := policy.Position(text)
	if text != "" && !p.Valid() {
		r.add(textfile.Start(n), "position is %s: make it prepend or append", quote(text))
	}
	return p
}

// name reads a name, which must fit on one line.
func (r *reader) name(n ast.Node, what string) string {
	text := r.string(n, what)
	if strings.TrimSpace(text) != text || strings.ContainsFunc(text, func(c rune) bool { return unseen(c) || unicode.IsControl(c) }) {
		r.add(textfile.Start(n), "%s is %s: leave out line breaks, characters that cannot be seen, and space around it", what, quote(text))
	}
	return text
}

// text reads text for people and models.
func (r *reader) text(n ast.Node, what string) string {
	text := r.string(n, what)
	if strings.ContainsFunc(text, unseen) {
		r.add(textfile.Start(n), "%s has characters that cannot be seen, which will be left out: take them out", what)
		r.problems[len(r.problems)-1].Warning = true
	}
	return text
}

// string reads a scalar that must be a string. It refuses numbers and booleans: the value that
// YAML gives `1.10` or `no` surprises people.
func (r *reader) string(n ast.Node, what string) string {
	text := ""
	switch {
	case textfile.IsText(n):
		text = textfile.TextOf(n)
	case n.Type() != ast.NullType:
		hint := "put it in quotes"
		if textfile.IsMapping(n) {
			hint = "put it in quotes if a colon made it one"
		}
		r.add(textfile.Start(n), "%s is %s where text is expected: %s", what, kind(n), hint)
		return ""
	}
	if strings.TrimSpace(text) == "" {
		r.add(textfile.Start(n), "%s is empty: write it or take it out", what)
		return ""
	}
	return text
}

// add adds a problem at t, or with the file as a whole if t is nil.
func (r *reader) add(t *token.Token, format string, args ...any) {
	r.problems = append(r.problems, problemAt(r.path, t, format, args...))
}

func problemAt(path string, t *token.Token, format string, args ...any) Problem {
	p := Problem{File: path, Text: fmt.Sprintf(format, args...)}
	if t != nil && t.Position != nil {
		p.Line, p.Column = t.Position.Line, t.Position.Column
	}
	return p
}

// unseen reports whether r is invisible or changes the direction of the text. It allows joiners,
// because scripts and emoji need them.
func unseen(r rune) bool {
	if r == 0x200C || r == 0x200D || r == '\t' || r == '\n' || r == '\r' {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}
