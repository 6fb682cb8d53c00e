package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A reader reads the syntax tree of a configuration file. It walks the tree
// itself, and decodes nothing by reflection, because only so does every mistake
// have its place and are all of them told at once.
type reader struct {
	file, base string
	settings   *Settings
	options    []option
	problems   Problems
	prefix     string // stands in front of keys in the texts of mistakes: "servers.git."
	within     string // stands in front of the names of rules in an included file: "include[0]."
}

// parse returns the content of data; nil if it is empty. The bool is false if there
// was a mistake.
func (r *reader) parse(data []byte) (content ast.Node, ok bool) {
	content, err := textfile.ParseYAML(data)
	var syntax *textfile.SyntaxError
	if errors.As(err, &syntax) {
		r.problems.Add(Origin{File: r.file, Line: syntax.Line, Column: syntax.Column}, "%s", syntax.Text)
	}
	return content, err == nil
}

// at is the place of a token.
func (r *reader) at(t *token.Token) Origin {
	o := Origin{File: r.file}
	if t != nil && t.Position != nil {
		o.Line, o.Column = t.Position.Line, t.Position.Column
	}
	return o
}

// place is where n begins.
func (r *reader) place(n ast.Node) Origin { return r.at(textfile.Start(n)) }

func (r *reader) problem(n ast.Node, format string, args ...any) {
	r.problems.Add(r.place(n), format, args...)
}

// A field is one line of a mapping: a key and its value.
type field struct {
	name  string
	at    Origin
	value ast.Node
}

// fields returns what is in the mapping n, each key once. what names n for people.
func (r *reader) fields(n ast.Node, what string) ([]field, bool) {
	var entries []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		entries = n.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{n}
	default:
		r.problem(n, "%s: wants keys and values, not %s", what, kindOf(n))
		return nil, false
	}
	seen := map[string]Origin{}
	var all []field
	for _, e := range entries {
		f, ok := r.field(e, what)
		if !ok {
			continue
		}
		if first, twice := seen[f.name]; twice {
			r.problems.Add(f.at, "%q is there twice: the first is in line %d, remove one", f.name, first.Line)
			continue
		}
		seen[f.name] = f.at
		all = append(all, f)
	}
	return all, true
}

// field returns one entry of a mapping.
func (r *reader) field(e *ast.MappingValueNode, what string) (field, bool) {
	f := field{at: r.place(e.Key), value: e.Value}
	switch k := e.Key.(type) {
	case *ast.StringNode:
		f.name = k.Value
	case *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode, *ast.NullNode:
		f.name = k.GetToken().Value
	default:
		r.problems.Add(f.at, "%s: this is no plain key: write a name", what)
		return f, false
	}
	return f, true
}

// section reads the fields of the section whose keys begin with prefix.
func (r *reader) section(prefix string, fields []field) {
	for _, f := range fields {
		key := prefix + f.name
		if o, ok := r.option(key); ok {
			r.set(o, f)
			continue
		}
		if prefix == "" && f.name == "servers" {
			r.problems.Add(f.at, "servers: an entry of servers cannot have servers: remove it")
			continue
		}
		if !r.isSection(key) {
			r.problems.Add(f.at, "unknown key %q%s", f.name, r.suggest(prefix, f.name))
			continue
		}
		if f.value == nil || f.value.Type() == ast.NullType {
			continue // a section with all its lines commented out
		}
		if inner, ok := r.fields(f.value, key); ok {
			r.section(key+".", inner)
		}
	}
}

// option returns the option of key.
func (r *reader) option(key string) (option, bool) {
	for _, o := range r.options {
		if o.Key == key {
			return o, true
		}
	}
	return option{}, false
}

// isSection reports whether there are options below key.
func (r *reader) isSection(key string) bool {
	for _, o := range r.options {
		if strings.HasPrefix(o.Key, key+".") {
			return true
		}
	}
	return false
}

// suggest says what an unknown key was probably meant to be: a key of the same
// section, or one of that name elsewhere.
func (r *reader) suggest(prefix, name string) string {
	var here, elsewhere []string
	for _, o := range r.options {
		if rest, ok := strings.CutPrefix(o.Key, prefix); ok && rest != "" {
			word, _, _ := strings.Cut(rest, ".")
			here = append(here, word)
		}
		if o.Key != "" && o.Key[strings.LastIndexByte(o.Key, '.')+1:] == name {
			elsewhere = append(elsewhere, o.Key)
		}
	}
	near := cli.Nearest(name, here)
	for _, word := range here {
		if near == "" && len(name) > 2 && strings.HasPrefix(word, name) {
			near = word
		}
	}
	if near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	if len(elsewhere) > 0 {
		slices.SortStableFunc(elsewhere, func(a, b string) int { return strings.Count(a, ".") - strings.Count(b, ".") })
		return fmt.Sprintf(": did you mean %q? write it in that section", elsewhere[0])
	}
	return ": there are " + strings.Join(unique(here), ", ")
}

// unique returns list without repetitions that stand side by side.
func unique(list []string) []string {
	var out []string
	for i, s := range list {
		if i == 0 || s != list[i-1] {
			out = append(out, s)
		}
	}
	return out
}

// set reads the value of one option.
func (r *reader) set(o option, f field) {
	before := len(r.problems)
	r.value(r.prefix+o.Key, o.value, f)
	if len(r.problems) == before {
		r.settings.origins[o.Key] = f.at
	}
}
