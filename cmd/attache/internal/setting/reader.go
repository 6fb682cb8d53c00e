package setting

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A Reader reads options from the syntax tree of a configuration file. It walks the
// tree itself and does not decode by reflection, so that it can report all mistakes at
// once, each with its place.
type Reader struct {
	// File is the name of the file in problems. Relative paths are relative to Base.
	File, Base string
	// Prefix begins the keys in problems: "servers.git.".
	Prefix string
	// EntryPrefix begins the names of entries in an included file: "include[0].".
	EntryPrefix string

	// Options are the options that [Reader.ReadSection] reads.
	Options []Option
	// Origins receives the place of each option and entry that was read.
	Origins map[string]Origin
	// Warnings receives settings that are valid but probably a mistake.
	Warnings *Problems
	// Problems are the mistakes found so far.
	Problems Problems

	seen map[string]Origin // the options that the file has set
}

// A Field is a key of a mapping and its value.
type Field struct {
	Name  string
	At    Origin
	Value ast.Node
}

// Empty reports whether the key has no value.
func (f Field) Empty() bool { return f.Value == nil || f.Value.Type() == ast.NullType }

// Parse returns the content of data, nil if data is empty. ok is false if data is not valid YAML.
func (r *Reader) Parse(data []byte) (content ast.Node, ok bool) {
	content, err := textfile.ParseYAML(data)
	if syntax, ok := errors.AsType[*textfile.SyntaxError](err); ok {
		r.Problems.Add(Origin{File: r.File, Line: syntax.Line, Column: syntax.Column}, "%s", syntax.Text)
	}
	return content, err == nil
}

// Place returns where n begins.
func (r *Reader) Place(n ast.Node) Origin {
	o := Origin{File: r.File}
	if t := textfile.Start(n); t != nil && t.Position != nil {
		o.Line, o.Column = t.Position.Line, t.Position.Column
	}
	return o
}

// AddProblem adds a problem at n.
func (r *Reader) AddProblem(n ast.Node, format string, args ...any) {
	r.Problems.Add(r.Place(n), format, args...)
}

// Fields returns the fields of the mapping n, each key once. Problems call n what.
func (r *Reader) Fields(n ast.Node, what string) ([]Field, bool) {
	if !textfile.IsMapping(n) {
		r.AddProblem(n, "%s: wants keys and values, not %s", what, KindOf(n))
		return nil, false
	}
	seen := map[string]Origin{}
	var all []Field
	for iter := n.(ast.MapNode).MapRange(); iter.Next(); {
		f, ok := r.field(iter.KeyValue(), what)
		if !ok {
			continue
		}
		if first, twice := seen[f.Name]; twice {
			r.Problems.Add(f.At, "%q appears twice: the first is in line %d, remove one", f.Name, first.Line)
			continue
		}
		seen[f.Name] = f.At
		all = append(all, f)
	}
	return all, true
}

func (r *Reader) field(e *ast.MappingValueNode, what string) (Field, bool) {
	f := Field{At: r.Place(e.Key), Value: e.Value}
	switch k := e.Key.(type) {
	case *ast.StringNode:
		f.Name = k.Value
	case *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode, *ast.NullNode:
		f.Name = k.GetToken().Value
	default:
		r.Problems.Add(f.At, "%s: this is not a plain key: write a name", what)
		return f, false
	}
	return f, true
}

// ReadSection reads fields, whose keys begin with prefix, into the options.
func (r *Reader) ReadSection(prefix string, fields []Field) {
	for _, f := range fields {
		key := prefix + f.Name
		if o, ok := find(r.Options, key); ok {
			r.set(o, f)
			continue
		}
		if !r.isSection(key) {
			r.Problems.Add(f.At, "unknown key %q%s", f.Name, suggest(r.Options, prefix, f.Name))
			continue
		}
		if f.Empty() {
			continue // for example, all lines of the section are commented out
		}
		if inner, ok := r.Fields(f.Value, key); ok {
			r.ReadSection(key+".", inner)
		}
	}
}

func (r *Reader) isSection(key string) bool {
	return slices.ContainsFunc(r.Options, func(o Option) bool { return strings.HasPrefix(o.Key, key+".") })
}

// set reads the value of one option and records its origin. A key with dots, such as access.rules, and
// the key in its section are the same option; the second would replace rules of the first.
func (r *Reader) set(o Option, f Field) {
	if first, twice := r.seen[o.Key]; twice {
		r.Problems.Add(f.At, "%q appears twice: the first is in line %d, remove one", r.Prefix+o.Key, first.Line)
		return
	}
	if r.seen == nil {
		r.seen = map[string]Origin{}
	}
	r.seen[o.Key] = f.At
	before := len(r.Problems)
	r.readValue(r.Prefix+o.Key, o.Value, f)
	if len(r.Problems) == before {
		r.Origins[o.Key] = f.At
	}
}

// A Structure is a value with parts. It is read from the syntax tree.
type Structure interface {
	Value
	// Read reads n, the value of key.
	Read(r *Reader, key string, n ast.Node)
}

// giveValue is the advice for a key without a value.
const giveValue = "give it one, or remove the key"

// readValue reads the value of f into v. Problems call it key.
func (r *Reader) readValue(key string, v Value, f Field) {
	if f.Empty() {
		advice := giveValue
		if s := v.Schema(); s["type"] == "array" && s["minItems"] == nil {
			advice += ", or write [] for none"
		}
		if v, ok := v.(interface{ EmptyAdvice() string }); ok {
			advice = v.EmptyAdvice()
		}
		r.Problems.Add(f.At, "%s: has no value: %s", key, advice)
		return
	}
	switch v := v.(type) {
	case Scalar:
		r.readScalar(key, v, f.Value)
	case Structure:
		v.Read(r, key, f.Value)
	}
}

// readScalar reads n into v. Problems call it key. n must be a text node, unless v has a method
// Written that accepts other nodes and describes them.
func (r *Reader) readScalar(key string, v Scalar, n ast.Node) {
	want, ok := writtenText(n)
	if typed, is := v.(interface{ Written(ast.Node) (string, bool) }); is {
		want, ok = typed.Written(n)
	}
	if !ok {
		r.AddProblem(n, "%s: wants %s, not %s", key, want, KindOf(n))
		return
	}
	if err := v.Set(textfile.TextOf(n), r.Base); err != nil {
		r.AddProblem(n, "%s: %v", key, err)
	}
}

// items returns the elements of the list n. Problems call it key.
func (r *Reader) items(key string, n ast.Node) ([]ast.Node, bool) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.AddProblem(n, "%s: wants a list, such as [one, two], not %s", key, KindOf(n))
		return nil, false
	}
	return list.Values, true
}

// uniqueBeginning returns the word that begins with the first half of name, but at least its first
// three letters: deny for denied. It returns "" if no word does, or several do.
func uniqueBeginning(name string, words []string) string {
	begin := name[:min(max(3, (len(name)+1)/2), len(name))]
	alike := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, begin) })
	if len(begin) < 3 || len(alike) != 1 {
		return ""
	}
	return alike[0]
}

// suggest returns the advice for an unknown key: the key that was probably meant, or all keys of the
// section.
func suggest(options []Option, prefix, name string) string {
	var here, elsewhere []string // keys of the section; keys with that name in other sections
	for _, o := range options {
		if rest, ok := strings.CutPrefix(o.Key, prefix); ok && rest != "" {
			if word, _, _ := strings.Cut(rest, "."); !slices.Contains(here, word) {
				here = append(here, word)
			}
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
	if near = cmp.Or(near, uniqueBeginning(name, here)); near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	if len(elsewhere) > 0 {
		slices.SortStableFunc(elsewhere, func(a, b string) int { return strings.Count(a, ".") - strings.Count(b, ".") })
		return fmt.Sprintf(": did you mean %q? write it in that section", elsewhere[0])
	}
	return ": the keys here are " + strings.Join(here, ", ")
}
