package filesource

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/attache-mcp/attache/policy"
)

// file is a policy file that was read, with the places that problems found
// later, between files, are reported at.
type file struct {
	path  string
	scope policy.Scope

	scopeAt, parentAt *token.Token
	dropAt            []*token.Token // one for each of scope.Drop
}

// reader collects what is wrong with one file.
type reader struct {
	path     string
	problems []Problem
}

// parse reads the text of a policy file. The file is empty but for its path when
// the text is no policy file at all.
func parse(path string, data []byte) (file, []Problem) {
	r := &reader{path: path}
	f := file{path: path}
	if body := r.body(data); body != nil {
		r.file(body, &f)
	}
	return f, r.problems
}

// body returns the one YAML document in data, nil if that is not to be had.
func (r *reader) body(data []byte) ast.Node {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors of Windows write it
	if at := invalidUTF8(data); at >= 0 {
		line := 1 + bytes.Count(data[:at], []byte("\n"))
		column := 1 + utf8.RuneCount(data[bytes.LastIndexByte(data[:at], '\n')+1:at])
		r.problems = append(r.problems, Problem{File: r.path, Line: line, Column: column, Text: "is not UTF-8 text: save the file as UTF-8"})
		return nil
	}
	documents, err := parseYAML(string(data))
	if err != nil {
		r.syntax(err)
		return nil
	}
	var bodies []ast.Node
	for _, d := range documents {
		if d.Body != nil && d.Body.Type() != ast.CommentType {
			bodies = append(bodies, d.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		r.add(nil, "is empty: write the scope, or take the file out")
		return nil
	case len(bodies) > 1:
		r.add(start(bodies[1]), "is a second document: put each scope into a file of its own")
	}
	return bodies[0]
}

// guardError is what [guard] found.
type guardError struct {
	at   *token.Token
	text string
}

func (e *guardError) Error() string { return e.text }

// parseYAML turns text into documents. The library has panicked on malformed
// input before (its issues 191, 439, 479); here that is one more unreadable file.
func parseYAML(text string) (documents []*ast.DocumentNode, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			documents, err = nil, errors.New("the reader failed")
		}
	}()
	tokens := lexer.Tokenize(text)
	if at, why := guard(tokens); at != nil {
		return nil, &guardError{at: at, text: why}
	}
	parsed, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, err
	}
	return parsed.Docs, nil
}

// syntax adds the problem that kept a text from being parsed.
func (r *reader) syntax(err error) {
	var guarded *guardError
	var located yaml.Error
	switch {
	case errors.As(err, &guarded):
		r.add(guarded.at, "%s", guarded.text)
	case errors.As(err, &located):
		r.add(located.GetToken(), "is not YAML that can be read (%s): correct it here or just before", printable(located.GetMessage()))
	default:
		r.add(nil, "is not YAML that can be read (%s): correct it", printable(err.Error()))
	}
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
	if !scopeSeen && isMapping(body) {
		r.add(nil, "has no scope: add a line such as scope: acme/platform")
	}
}

// ParseLoose reads the text of a policy file that belongs to no scope, such as a
// workspace's own. It has policies and objectives and nothing else: it has no
// parent, and there is nothing that it could drop. path is what problems call it.
func ParseLoose(path string, data []byte) (policy.Effective, []Problem) {
	var e policy.Effective
	r := &reader{path: path}
	if body := r.body(data); body != nil {
		r.fields(body, "a workspace's policy file", fields{
			{"policies", func(n ast.Node) { e.Policies = r.policies(n) }},
			{"objectives", func(n ast.Node) { e.Objectives = r.objectives(n) }},
		})
	}
	return e, r.problems
}

// objectives reads the list of objectives.
func (r *reader) objectives(list ast.Node) []string {
	var all []string
	for _, item := range r.items(list, "objectives") {
		if text := r.text(item, "an objective"); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// policies reads the list of policies.
func (r *reader) policies(list ast.Node) []policy.Policy {
	var policies []policy.Policy
	at := make(map[string]*token.Token)
	for _, item := range r.items(list, "policies") {
		p, nameAt := r.policy(item)
		if p.Name == "" {
			continue // a problem already
		}
		if first, twice := at[p.Name]; twice {
			r.add(nameAt, "policy %s is there already, in line %d: rename one or take it out", quote(p.Name), first.Position.Line)
			continue
		}
		at[p.Name] = nameAt
		policies = append(policies, p)
	}
	return policies
}

// policy reads one policy.
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
			r.add(start(item), "a policy here has no %s: add it", f.key)
		}
	}
	return p, nameAt
}

func (r *reader) position(n ast.Node) policy.Position {
	text := r.text(n, "position")
	p := policy.Position(text)
	if text != "" && !p.Valid() {
		r.add(start(n), "position is %s: make it prepend or append", quote(text))
	}
	return p
}

// name reads a word that identifies something and is printed on one line.
func (r *reader) name(n ast.Node, what string) string {
	text := r.string(n, what)
	if strings.TrimSpace(text) != text || strings.ContainsFunc(text, func(c rune) bool { return unseen(c) || unicode.IsControl(c) }) {
		r.add(start(n), "%s is %s: leave out line breaks, characters that cannot be seen, and space around it", what, quote(text))
	}
	return text
}

// text reads text that people and models are to read.
func (r *reader) text(n ast.Node, what string) string {
	text := r.string(n, what)
	if strings.ContainsFunc(text, unseen) {
		r.add(start(n), "%s has characters that cannot be seen, which will be left out: take them out", what)
		r.problems[len(r.problems)-1].Warning = true
	}
	return text
}

// string reads a scalar that is to be text. Numbers and the like are not taken
// for text: what YAML makes of `1.10` or `no` surprises people.
func (r *reader) string(n ast.Node, what string) string {
	text := ""
	switch n := n.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.LiteralNode:
		text = n.Value.Value
	case *ast.NullNode:
	default:
		hint := "put it in quotes"
		if isMapping(n) {
			hint = "put it in quotes if a colon made it one"
		}
		r.add(start(n), "%s is %s where text is expected: %s", what, kind(n), hint)
		return ""
	}
	if strings.TrimSpace(text) == "" {
		r.add(start(n), "%s is empty: write it or take it out", what)
		return ""
	}
	return text
}

// add notes a problem at t; nil is the file as a whole.
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

// unseen reports characters that are drawn as nothing or change the direction of
// what is drawn; joiners are left alone, scripts and emoji need them.
func unseen(r rune) bool {
	if r == 0x200C || r == 0x200D || r == '\t' || r == '\n' || r == '\r' {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// invalidUTF8 returns where data stops being UTF-8, -1 for nowhere.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
