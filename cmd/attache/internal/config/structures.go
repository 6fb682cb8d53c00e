package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// words is a list of words: those that are known, or, if known is nil, those that
// check accepts.
type words struct {
	to    *[]string
	known []string
	check func(string) error
	empty string // what to do about an empty list; "" if there may be one
	// single says that one text stands for a list of it
	single bool
}

func (v words) insteadOfNothing() string {
	if v.empty != "" {
		return giveOne
	}
	return giveOne + ", or write [] for none"
}

// read reads a list of texts, which takes the place of the default.
func (v words) read(r *reader, key string, n ast.Node) {
	if v.single && isText(n) {
		var word string
		r.scalar(key, text{&word, notEmpty}, n)
		*v.to = []string{word}
		return
	}
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

// accept returns what is wrong with one word of the list.
func (v words) accept(s string) error {
	switch {
	case s == "":
		return notEmpty(s)
	case v.known != nil:
		var got string
		return choice{&got, v.known}.set(s, "")
	case v.check != nil:
		return v.check(s)
	}
	return nil
}

func (v words) String() string { return "[" + strings.Join(*v.to, ", ") + "]" }
func (v words) schema() map[string]any {
	item := map[string]any{"type": "string", "minLength": 1}
	if v.known != nil {
		item["enum"] = v.known
	}
	s := map[string]any{"type": "array", "items": item}
	if v.empty != "" {
		s["minItems"] = 1
	}
	if v.single {
		return map[string]any{"anyOf": []any{item, s}}
	}
	return s
}

// metaPaths are the places in _meta that are looked at, the first that has
// something counts.
type metaPaths struct{ to *[]MetaPath }

func (v metaPaths) insteadOfNothing() string { return words{}.insteadOfNothing() }

func (v metaPaths) read(r *reader, key string, n ast.Node) {
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
			words{to: &path}.read(r, key, item)
			if len(path) == 0 {
				r.problem(item, "%s: this path is empty: name the objects it goes through", key)
			}
		default:
			r.problem(item, "%s: wants a text (one key) or a list of texts (a path into objects), not %s", key, kindOf(item))
		}
		all = append(all, path)
	}
	*v.to = all
}

func (v metaPaths) String() string {
	var all []string
	for _, p := range *v.to {
		if len(p) == 1 {
			all = append(all, p[0])
			continue
		}
		all = append(all, "["+strings.Join(p, ", ")+"]")
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func (v metaPaths) schema() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	path := map[string]any{"type": "array", "minItems": 1, "items": text}
	return map[string]any{"type": "array", "items": map[string]any{"anyOf": []any{text, path}}}
}

// variables are names and values for an environment.
func variables(to *map[string]string) value {
	return environment{byName[string]{to: to, check: variableName, value: func(s *string) value { return variable{s} }}}
}

// environment says in the schema how the names of variables are written.
type environment struct{ byName[string] }

func (v environment) schema() map[string]any {
	s := v.byName.schema()
	s["propertyNames"] = map[string]any{"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}
	return s
}

// variableName accepts the name of a variable for a server.
func variableName(s string) error {
	if s == "" || CheckVariableName(s) != nil {
		return fmt.Errorf("%q is no name of a variable: write letters, digits and _, such as MY_TOKEN", s)
	}
	return nil
}

// A variable is the value of one, in which line breaks are allowed. Numbers and
// booleans are taken as they are written. It is often a secret, so it is not shown.
type variable struct{ to *string }

func (v variable) set(s, _ string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("has a NUL in it: no variable can hold one")
	}
	*v.to = s
	return nil
}

func (v variable) insteadOfNothing() string { return `write a text, such as ""` }
func (v variable) String() string           { return "[hidden]" }
func (v variable) schema() map[string]any {
	return map[string]any{"type": []string{"string", "number", "boolean"}}
}

func notEmpty(s string) error {
	if s == "" {
		return errors.New("is empty: write a name")
	}
	return nil
}

// argumentPath accepts the name of an argument, or names joined by dots.
func argumentPath(s string) error {
	if s == "" || slices.Contains(strings.Split(s, "."), "") {
		return fmt.Errorf("%q has an empty name in it: write the argument's name, or a path such as options.workspace", s)
	}
	return nil
}

// globs is a list of patterns for the names of tools, at least one.
func globs(to *[]string) words {
	return words{to: to, check: globSyntax, empty: `name a tool, or write ["*"] for all`}
}

// globSyntax accepts the patterns that package arguments understands.
func globSyntax(s string) error {
	if strings.ContainsAny(s, `[]{}\`) {
		return fmt.Errorf(`%q: a pattern has only * for any characters and ? for one: write a pattern for each name`, s)
	}
	return nil
}

// maybe is true, false or not said.
type maybe struct{ to **bool }

func (v maybe) set(s, base string) error {
	var b bool
	err := boolean{&b}.set(s, base)
	if err == nil {
		*v.to = &b
	}
	return err
}

func (v maybe) String() string {
	if *v.to == nil {
		return ""
	}
	return boolean{*v.to}.String()
}

func (v maybe) schema() map[string]any { return boolean{}.schema() }

// CheckPrefix says what is wrong with a prefix of variables' names.
func CheckPrefix(s string) error { return words{check: CheckVariableName}.accept(s) }
