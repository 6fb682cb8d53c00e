package config

import (
	"context"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/include"
)

// A document is one configuration file that was parsed: the user's own, or one that
// it includes.
type document struct {
	reader  *reader
	fields  []field
	servers []Server
}

// documents parses the user's file and what it includes, in that order: what comes
// first holds over what follows.
func (l *loader) documents(path string, data []byte, s *Settings) []*document {
	own, includes := l.document(path, directory(path), "", data)
	if own == nil {
		return nil
	}
	all := []*document{own}
	for _, f := range includes {
		all = append(all, l.included(own.reader, f, s)...)
	}
	return all
}

// document parses one file. within begins the names of its rules. The include key, if
// there is one, is returned apart.
func (l *loader) document(file, base, within string, data []byte) (d *document, includes []field) {
	r := &reader{file: file, base: base, within: within}
	d = &document{reader: r}
	if body, ok := r.parse(data); ok && body != nil {
		fields, _ := r.fields(body, "the configuration")
		for _, f := range fields {
			switch f.name {
			case "include":
				includes = append(includes, f)
			case "servers":
				d.servers = r.servers(f)
			default:
				d.fields = append(d.fields, f)
			}
		}
	}
	l.take(r)
	return d, includes
}

// take moves the mistakes that r found to l.
func (l *loader) take(r *reader) {
	l.problems = append(l.problems, r.problems...)
	r.problems = nil
}

// included reads the files that an include key of r names.
func (l *loader) included(r *reader, f field, s *Settings) (all []*document) {
	defer l.take(r)
	if f.value == nil || f.value.Type() == ast.NullType {
		return nil
	}
	items, ok := f.value.(*ast.SequenceNode)
	if !ok {
		r.problem(f.value, "include: wants a list of files, such as [team.yaml], not %s", kindOf(f.value))
		return nil
	}
	for i, item := range items.Values {
		key := fmt.Sprintf("include[%d]", i)
		name, base, data, ok := l.readIncluded(r, key, item, s)
		if !ok {
			continue
		}
		d, nested := l.document(name, base, key+".", data)
		for _, n := range nested {
			l.problems.Add(n.at, "an included file cannot include others: name them in the file of your own")
		}
		all = append(all, d)
	}
	return all
}

// readIncluded returns the content of one included file, what problems in it are
// reported under, and the directory that its relative paths are relative to.
func (l *loader) readIncluded(r *reader, key string, n ast.Node, s *Settings) (name, base string, data []byte, ok bool) {
	if isText(n) {
		path, err := absolute(textOf(n), r.base)
		if strings.Contains(textOf(n), "://") {
			err = fmt.Errorf("an address needs something that vouches for it: write {url: %s, digest: sha256:...}, or key", textOf(n))
		}
		if path == "" && err == nil {
			err = notEmpty(path)
		}
		if err != nil {
			r.problem(n, "%s: %v", key, err)
			return "", "", nil, false
		}
		s.Included = append(s.Included, path)
		data, ok = l.readFile(path, r.place(n))
		return path, directory(path), data, ok
	}
	if n.Type() != ast.MappingType && n.Type() != ast.MappingValueType {
		r.problem(n, "%s: wants the path of a file, or {url: https://..., digest: sha256:...} with a digest or a key, not %s", key, kindOf(n))
		return "", "", nil, false
	}
	var source include.Source
	before := len(r.problems)
	object{options: []option{
		{Key: "url", value: text{&source.URL, notEmpty}}, {Key: "digest", value: text{&source.Digest, notEmpty}}, {Key: "key", value: text{&source.Key, notEmpty}},
	}}.read(r, key, n)
	if len(r.problems) > before {
		return "", "", nil, false
	}
	fetcher := include.Fetcher{}
	if l.StateDir != "" {
		fetcher.Dir = l.StateDir + "/attache/includes"
	}
	data, note, err := fetcher.Read(context.Background(), source)
	if err != nil {
		r.problem(n, "%s: %v", key, err)
	}
	if note != "" {
		s.Warnings.Add(r.place(n), "%s: %s", key, note)
	}
	return source.URL, r.base, data, err == nil
}

// over reads fields over what the settings have: lists of rules stand in front of
// those that are there, all other values in their place.
func (r *reader) over(fields []field) {
	s := r.settings
	arguments, rewrite, rules, rates := s.Arguments, s.Rewrite, s.Access.Rules, s.Access.Rates
	dir, url := s.Policy.Dir, s.Policy.URL
	s.Arguments, s.Rewrite, s.Access.Rules, s.Access.Rates = nil, nil, nil, nil
	s.Policy.Dir, s.Policy.URL = "", ""
	r.section("", fields)
	if s.Policy.Dir != "" && s.Policy.URL != "" {
		r.problems.Add(s.Origin("policy.url"), "policy.url: there is a policy.dir too: keep one of the two")
	}
	if s.Policy.Dir == "" && s.Policy.URL == "" {
		s.Policy.Dir, s.Policy.URL = dir, url
	}
	s.Arguments = join(s.Arguments, arguments)
	s.Rewrite, s.Access.Rules, s.Access.Rates = join(s.Rewrite, rewrite), join(s.Access.Rules, rules), join(s.Access.Rates, rates)
}

// join returns the two lists as one, nil if nobody set either.
func join[T any](first, then []T) []T {
	switch {
	case then == nil:
		return first
	case first == nil:
		return then
	}
	return append(first[:len(first):len(first)], then...)
}

// includeSchema returns the JSON Schema of the key include.
func includeSchema() map[string]any {
	word := map[string]any{"type": "string", "minLength": 1}
	return map[string]any{
		"description": "files whose rules hold too, behind those of this file: a path, or an https address with the digest of its content or the public key (minisign) that signs it",
		"type":        "array",
		"items": map[string]any{"anyOf": []any{word, map[string]any{
			"type":                 "object",
			"properties":           map[string]any{"url": word, "digest": word, "key": word},
			"required":             []string{"url"},
			"additionalProperties": false,
		}}},
	}
}
