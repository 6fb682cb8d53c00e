package config

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/include"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A document is a configuration file that was parsed: the user's file, or a file that it
// includes.
type document struct {
	reader  *setting.Reader
	fields  []setting.Field
	servers []Server
}

// documents parses the user's file and the files that it includes, in that order. A document takes
// precedence over those after it.
func (l *loader) documents(path string, data []byte, s *Settings) []*document {
	own, includes := l.document(path, filepath.Dir(path), "", data)
	if own == nil {
		return nil
	}
	all := []*document{own}
	for _, f := range includes {
		all = append(all, l.included(own.reader, f, s)...)
	}
	return all
}

// document parses one file. entryPrefix begins the names of its rules. The include key is returned
// separately, if there is one.
func (l *loader) document(file, base, entryPrefix string, data []byte) (d *document, includes []setting.Field) {
	r := &setting.Reader{File: file, Base: base, EntryPrefix: entryPrefix}
	d = &document{reader: r}
	if body, ok := r.Parse(data); ok && body != nil {
		fields, _ := r.Fields(body, "the configuration")
		for _, f := range fields {
			switch f.Name {
			case "include":
				includes = append(includes, f)
			case "servers":
				d.servers = readServers(r, f)
			default:
				d.fields = append(d.fields, f)
			}
		}
	}
	l.moveProblems(r)
	return d, includes
}

func (l *loader) moveProblems(r *setting.Reader) {
	l.problems = append(l.problems, r.Problems...)
	r.Problems = nil
}

// included reads the files that an include key of r names.
func (l *loader) included(r *setting.Reader, f setting.Field, s *Settings) (all []*document) {
	defer l.moveProblems(r)
	if f.Empty() {
		return nil
	}
	items, ok := f.Value.(*ast.SequenceNode)
	if !ok {
		r.AddProblem(f.Value, "include: wants a list of files, such as [team.yaml], not %s", setting.KindOf(f.Value))
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
			l.problems.Add(n.At, "an included file cannot include others: name them in your own configuration file")
		}
		all = append(all, d)
	}
	return all
}

// readIncluded returns the content of one included file, the name of the file in problems, and the
// base of its relative paths.
func (l *loader) readIncluded(r *setting.Reader, key string, n ast.Node, s *Settings) (name, base string, data []byte, ok bool) {
	if textfile.IsText(n) {
		path, err := setting.Absolute(textfile.TextOf(n), r.Base)
		if strings.Contains(textfile.TextOf(n), "://") {
			err = fmt.Errorf("an address needs a digest or a key: write {url: %s, digest: sha256:...}, or key in place of digest", ShownAddress(textfile.TextOf(n)))
		}
		if path == "" && err == nil {
			err = setting.NotEmpty(path)
		}
		if err != nil {
			r.AddProblem(n, "%s: %v", key, err)
			return "", "", nil, false
		}
		s.Included = append(s.Included, path)
		data, ok = l.readFile(path, r.Place(n))
		return path, filepath.Dir(path), data, ok
	}
	if !textfile.IsMapping(n) {
		r.AddProblem(n, "%s: wants the path of a file, or {url: https://..., digest: sha256:...} with a digest or a key, not %s", key, setting.KindOf(n))
		return "", "", nil, false
	}
	var source include.Source
	before := len(r.Problems)
	setting.Object{Options: []setting.Option{
		{Key: "url", Value: setting.Text(&source.URL, setting.NotEmpty)}, {Key: "digest", Value: setting.Text(&source.Digest, setting.NotEmpty)}, {Key: "key", Value: setting.Text(&source.Key, setting.NotEmpty)},
	}}.Read(r, key, n)
	if len(r.Problems) > before || l.offline {
		return "", "", nil, false
	}
	fetcher := include.Fetcher{Dir: l.StatePath("includes")}
	data, note, err := fetcher.Read(context.Background(), source)
	if err != nil {
		r.AddProblem(n, "%s: %v", key, err)
	}
	if note != "" {
		s.Warnings.Add(r.Place(n), "%s: %s", key, note)
	}
	return source.Shown(), r.Base, data, err == nil
}

// readOver reads fields into s. It puts rules in front of the rules that s has; all other values
// replace those of s. policy.dir and policy.url replace each other, and so do server.command and
// server.url; the key that is replaced has the origin of a default.
func (s *Settings) readOver(r *setting.Reader, fields []setting.Field) {
	arguments, rewrite, rules, rates := s.Arguments, s.Rewrite, s.Access.Rules, s.Access.Rates
	dir, url := s.Policy.Dir, s.Policy.URL
	command, address := s.Server.Command, s.Server.Remote.URL
	s.Arguments, s.Rewrite, s.Access.Rules, s.Access.Rates = nil, nil, nil, nil
	s.Policy.Dir, s.Policy.URL = "", ""
	s.Server.Command, s.Server.Remote.URL = nil, ""
	before := s.placed()
	r.ReadSection("", fields)
	s.replaceBearer(before)
	if s.Policy.Dir != "" && s.Policy.URL != "" {
		r.Problems.Add(s.Origin("policy.url"), "policy.url: there is a policy.dir too: keep one of the two")
	}
	if len(s.Server.Command) > 0 && s.Server.Remote.URL != "" {
		r.Problems.Add(s.Origin("server.url"), "%sserver.url: there is a server.command too: keep one of the two", r.Prefix)
	}
	s.warnUnused(r, before)
	switch {
	case s.Policy.Dir == "" && s.Policy.URL == "":
		s.Policy.Dir, s.Policy.URL = dir, url
	case s.Policy.Dir == "":
		delete(s.origins, "policy.dir")
	case s.Policy.URL == "":
		delete(s.origins, "policy.url")
	}
	switch {
	case s.Server.Command == nil && s.Server.Remote.URL == "":
		s.Server.Command, s.Server.Remote.URL = command, address
	case s.Server.Command == nil:
		delete(s.origins, "server.command")
	case s.Server.Remote.URL == "":
		delete(s.origins, "server.url")
	}
	s.Arguments = join(s.Arguments, arguments)
	s.Rewrite, s.Access.Rules, s.Access.Rates = join(s.Rewrite, rewrite), join(s.Access.Rules, rules), join(s.Access.Rates, rates)
}

// warnUnused warns of settings that have no effect: those of a command beside an address, and in an entry those of an
// address beside a command. Outside of servers these may be for another server. r has read the settings; before has
// the places of those that s had.
func (s *Settings) warnUnused(r *setting.Reader, before placedRemote) {
	fresh := func(key string) bool { return s.origins[key] != before.at[key] }
	remote, started := fresh("server.url"), fresh("server.command") && r.Prefix != ""
	for _, u := range []struct {
		key string
		is  bool
		why string
	}{
		{"server.env", remote, "server.url, because attache does not start that server: send values with server.headers"},
		{"server.pass_messaging", remote, "server.url, because attache does not start that server"},
		{"server.headers", started, "server.command, because that server gets no HTTP request: set variables with server.env"},
		{"server.bearer_env", started, "server.command, because that server gets no HTTP request"},
		{"server.tls", started, "server.command, because that server gets no HTTP request"},
		{"server.timeouts", started, "server.command, because that server gets no HTTP request"},
		{"server.oauth", started, "server.command, because that server gets no HTTP request"},
	} {
		if !u.is {
			continue // most starts have none, and need not sort
		}
		for _, key := range slices.Sorted(maps.Keys(s.origins)) {
			if Below(key, u.key) && fresh(key) {
				r.Warnings.Add(s.origins[key], "%s%s has no effect beside %s", r.Prefix, key, u.why)
			}
		}
	}
}

// join returns the two lists as one, nil if neither is set.
func join[T any](first, then []T) []T {
	switch {
	case then == nil:
		return first
	case first == nil:
		return then
	}
	return append(first[:len(first):len(first)], then...)
}
