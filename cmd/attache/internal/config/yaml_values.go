package config

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// value reads the value of the field f, which people know as key, into v.
func (r *reader) value(key string, v value, f field) {
	if f.value == nil || f.value.Type() == ast.NullType {
		r.problems.Add(f.at, "%s: has no value: give it one, or remove the key%s", key, emptyHint(v))
		return
	}
	switch v := v.(type) {
	case scalar:
		r.scalar(key, v, f.value)
	case words:
		r.words(key, v, f.value)
	case globs:
		r.words(key, v.words(), f.value)
	case patterns:
		if isText(f.value) {
			var word string
			r.scalar(key, text{&word, notEmpty}, f.value)
			*v.to = []string{word}
			return
		}
		r.words(key, v.words(), f.value)
	case metaPaths:
		r.metaPaths(key, v.to, f.value)
	case variables:
		r.variables(key, v.to, f.value)
	case expressions:
		r.expressions(key, v.to, f.value)
	case list:
		r.entries(key, v, f.value)
	case table:
		r.table(key, v, f.value)
	case environments:
		r.environments(key, v.to, f.value)
	}
}

// emptyHint says how an empty list is written, where v is one.
func emptyHint(v value) string {
	mayBe := false
	switch v := v.(type) {
	case words:
		mayBe = v.empty == ""
	case metaPaths, list:
		mayBe = true
	}
	if mayBe {
		return ", or write [] for none"
	}
	return ""
}

// kindOf names what n is, for people.
func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode:
		return "a number"
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number with a fraction"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "nothing"
	}
	return "this"
}

// scalar reads n into v.
func (r *reader) scalar(key string, v scalar, n ast.Node) {
	want, ok := "a text (put it in quotes)", false
	switch v.(type) {
	case boolean, maybe:
		want = "true or false"
		_, ok = n.(*ast.BoolNode)
	case count:
		want = "a whole number"
		_, ok = n.(*ast.IntegerNode)
	case duration:
		want = "a duration such as 500ms, 2s or 12h"
		ok = isText(n) || n.Type() == ast.IntegerType
	case size:
		want = "a size such as 8MiB"
		ok = isText(n) || n.Type() == ast.IntegerType
	default:
		ok = isText(n)
		if !ok && n.Type() == ast.SequenceType {
			want = "one text"
		}
	}
	if !ok {
		r.problem(n, "%s: wants %s, not %s", key, want, kindOf(n))
		return
	}
	if err := v.set(textOf(n), r.base); err != nil {
		r.problem(n, "%s: %v", key, err)
	}
}

func isText(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return true
	}
	return false
}

// textOf returns the text of a scalar as it is written, less its quotes.
func textOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	return n.GetToken().Value
}

// items returns the elements of the list n.
func (r *reader) items(key string, n ast.Node) ([]ast.Node, bool) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.problem(n, "%s: wants a list, such as [one, two], not %s", key, kindOf(n))
		return nil, false
	}
	return list.Values, true
}

// words reads a list of texts. What is in the list replaces the default.
func (r *reader) words(key string, v words, n ast.Node) {
	items, ok := r.items(key, n)
	if !ok {
		return
	}
	if len(items) == 0 && v.empty != "" {
		r.problem(n, "%s: is empty: %s", key, v.empty)
	}
	all := make([]string, 0, len(items))
	for _, item := range items {
		var word string
		before := len(r.problems)
		r.scalar(key, text{&word, v.accept}, item)
		if len(r.problems) == before {
			all = append(all, word)
		}
	}
	*v.to = all
}

// metaPaths reads a list of places in _meta.
func (r *reader) metaPaths(key string, to *[]MetaPath, n ast.Node) {
	items, ok := r.items(key, n)
	if !ok {
		return
	}
	all := make([]MetaPath, 0, len(items))
	for _, item := range items {
		var path []string
		switch {
		case isText(item):
			var word string
			r.scalar(key, text{&word, notEmpty}, item)
			path = []string{word}
		case item.Type() == ast.SequenceType:
			r.words(key, words{to: &path}, item)
			if len(path) == 0 {
				r.problem(item, "%s: this path is empty: name the objects it goes through", key)
			}
		default:
			r.problem(item, "%s: wants a text (one key) or a list of texts (a path into objects), not %s", key, kindOf(item))
		}
		all = append(all, path)
	}
	*to = all
}

// variables reads names and values for an environment. Numbers and booleans are
// taken as they are written.
func (r *reader) variables(key string, to *map[string]string, n ast.Node) {
	fields, ok := r.fields(n, key)
	if !ok {
		return
	}
	all := make(map[string]string, len(fields))
	for _, f := range fields {
		if err := CheckVariableName(f.name); err != nil || f.name == "" {
			r.problems.Add(f.at, "%s: %q is no name of a variable: write letters, digits and _, such as MY_TOKEN", key, f.name)
			continue
		}
		switch f.value.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			all[f.name] = textOf(f.value)
		case *ast.StringNode, *ast.LiteralNode:
			all[f.name] = r.variable(key+"."+f.name, f.value)
		default:
			r.problems.Add(f.at, "%s.%s: wants a text, such as \"\", not %s", key, f.name, kindOf(f.value))
		}
	}
	*to = all
}

// variable reads the value of a variable, in which line breaks are allowed.
func (r *reader) variable(key string, n ast.Node) string {
	s := textOf(n)
	for i := range len(s) {
		if s[i] == 0 {
			r.problem(n, "%s: has a NUL in it: no variable can hold one", key)
			return ""
		}
	}
	return s
}

// entries reads a list of structures.
func (r *reader) entries(key string, v list, n ast.Node) {
	items, ok := r.items(key, n)
	if !ok {
		return
	}
	v.begin(len(items))
	before := len(r.problems)
	for i, item := range items {
		r.entry(key+"["+cli.Itoa(i)+"]", v, i, item)
	}
	if len(r.problems) > before {
		return
	}
	for i, item := range items {
		if err := v.misfit(i); err != nil {
			r.problem(item, "%s[%d]: %v", key, i, err)
		}
		if text := v.warning(i); text != "" {
			r.settings.Warnings.Add(r.place(item), "%s[%d]: %s", key, i, text)
		}
	}
}

// entry reads one entry of a list of structures.
func (r *reader) entry(key string, v list, i int, n ast.Node) {
	before := len(r.problems)
	fields, ok := r.fields(n, key)
	if !ok {
		return
	}
	required, example := v.wants()
	given, unknown := map[string]bool{}, false
	known := &reader{options: v.entry(i)}
	for _, f := range fields {
		given[f.name] = true
		o, ok := known.option(f.name)
		if !ok {
			r.problems.Add(f.at, "%s: unknown key %q%s", key, f.name, known.suggest("", f.name))
			unknown = true
			continue
		}
		r.value(key+"."+f.name, o.value, f)
	}
	if len(given) == 0 {
		r.problem(n, "%s: this rule is empty: write it as %s, or remove it", key, example)
		return
	}
	for _, name := range required {
		if !given[name] && !unknown { // or the unknown one was meant
			r.problem(n, "%s: has no %q: write it as %s", key, name, example)
		}
	}
	if len(r.problems) == before {
		if err := v.problem(i); err != nil {
			r.problem(n, "%s: %v", key, err)
		}
	}
}

// expressions reads names and the expressions that give their values.
func (r *reader) expressions(key string, to *map[string]*expression.Program, n ast.Node) {
	fields, ok := r.fields(n, key)
	if !ok {
		return
	}
	all := make(map[string]*expression.Program, len(fields))
	for _, f := range fields {
		if err := argumentPath(f.name); err != nil {
			r.problems.Add(f.at, "%s: %v", key, err)
			continue
		}
		var p *expression.Program
		r.value(key+"."+f.name, formula{to: &p, want: expression.Any}, f)
		all[f.name] = p
	}
	*to = all
}
