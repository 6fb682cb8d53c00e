package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// words is a list of words: those that are known, or, if known is nil, those that
// check accepts.
type words struct {
	to    *[]string
	known []string
	check func(string) error
	empty string // what to do about an empty list; "" if there may be one
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
	return s
}

// metaPaths are the places in _meta that are looked at, the first that has
// something counts.
type metaPaths struct{ to *[]MetaPath }

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

// variables are names and values for an environment. The values are often
// secrets, so they are not shown.
type variables struct{ to *map[string]string }

func (v variables) String() string {
	var names []string
	for name := range *v.to {
		names = append(names, name+": [hidden]")
	}
	slices.Sort(names)
	return "{" + strings.Join(names, ", ") + "}"
}

func (v variables) schema() map[string]any {
	return map[string]any{
		"type":                 "object",
		"propertyNames":        map[string]any{"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
		"additionalProperties": map[string]any{"type": []string{"string", "number", "boolean"}},
	}
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
type globs struct{ to *[]string }

func (v globs) words() words {
	return words{to: v.to, check: globSyntax, empty: `name a tool, or write ["*"] for all`}
}

func (v globs) String() string         { return v.words().String() }
func (v globs) schema() map[string]any { return v.words().schema() }

// globSyntax accepts the patterns that package arguments understands.
func globSyntax(s string) error {
	switch {
	case s == "":
		return errors.New(`is empty: write a tool's name or a pattern such as "git_*"`)
	case strings.ContainsAny(s, `[]{}\`):
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
