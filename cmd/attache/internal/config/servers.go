package config

import (
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/servername"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/glob"
)

// A Server is an entry of servers: how a server is recognised, and settings for that server
// alone. Its rules come before those of the rest of the file, and its other values replace
// them.
type Server struct {
	Name  string
	Match Match
	From  setting.Origin

	reader    *setting.Reader
	fields    []setting.Field // what holds, without match
	variables []string        // see RemoteVariables
}

// A Match names servers by globs. A server matches if one of them does. An entry without globs
// is for the server of its name.
type Match struct {
	Package []string // the npm or PyPI package, or the image, that the command runs
	Command []string // the program: its name, or its path where the glob has a slash
	URL     []string // the address of a remote server
}

// matchOptions returns what can be said in match.
func matchOptions(m *Match) []setting.Option {
	return []setting.Option{
		{Key: "package", Help: "globs of the package or image that the command runs", Value: patterns(&m.Package)},
		{Key: "command", Help: "globs of the program's name, or of its path if they have a slash", Value: patterns(&m.Command)},
		{Key: "url", Help: "globs of the server's address", Value: patterns(&m.URL)},
	}
}

// serverKeys are the keys, or the beginnings of keys, that an entry may have.
var serverKeys = []string{"server.env", "server.command", "server.url", "server.headers", "server.bearer_env", "server.oauth", "server.tls", "server.timeouts", "session.workspace", "session.workspace_id", "arguments", "rewrite", "access", "briefing"}

// serverOptions returns the options that an entry may set, bound to s.
func serverOptions(s *Settings) []setting.Option {
	return slices.DeleteFunc(Options(s), func(o setting.Option) bool {
		return o.Key == "" || !slices.ContainsFunc(serverKeys, func(key string) bool { return Below(o.Key, key) })
	})
}

// readServers reads the section of that name. Every entry is checked, also those for
// servers that do not run.
func readServers(r *setting.Reader, f setting.Field) []Server {
	if f.Empty() {
		return nil
	}
	fields, _ := r.Fields(f.Value, "servers")
	var all []Server
	for _, entry := range fields {
		if entry.Name == "" {
			r.Problems.Add(entry.At, "servers: an entry has an empty name: write one")
		}
		key := "servers." + entry.Name
		inner, ok := r.Fields(entry.Value, key)
		if !ok {
			continue
		}
		server := Server{Name: entry.Name, From: entry.At, reader: r}
		for _, field := range inner {
			switch field.Name {
			case "match":
				setting.Object{Options: matchOptions(&server.Match)}.Read(r, key+".match", field.Value)
			case "servers":
				r.Problems.Add(field.At, "servers: an entry of servers cannot have servers: remove it")
			default:
				server.fields = append(server.fields, field)
			}
		}
		scratch := DefaultSettings("")
		r.Problems = append(r.Problems, readServer(&server, scratch)...)
		server.variables = scratch.Server.Remote.variables()
		all = append(all, server)
	}
	return all
}

// readServer reads what holds for the server into s, over what s has.
func readServer(e *Server, s *Settings) setting.Problems {
	options := serverOptions(s)
	for _, o := range matchOptions(&Match{}) { // the caller has read match: these are for suggestions alone
		options = append(options, setting.Option{Key: "match." + o.Key, Value: o.Value})
	}
	r := &setting.Reader{
		File: e.reader.File, Base: e.reader.Base, EntryPrefix: e.reader.EntryPrefix, Prefix: "servers." + e.Name + ".",
		Options: options, Origins: s.origins, Warnings: &s.Warnings,
	}
	s.readOver(r, e.fields)
	return r.Problems
}

// sets reports whether the entry says something of key.
func sets(e *Server, key string) bool {
	scratch := DefaultSettings("")
	readServer(e, scratch)
	return !scratch.Origin(key).Default()
}

// is reports whether the entry is for the server that command starts, whose name is
// name; without a command the entry's own name counts.
func (e *Server) is(command []string, name string) bool {
	m := &e.Match
	if len(command) == 0 || m.Package == nil && m.Command == nil && m.URL == nil {
		return e.Name == name
	}
	matches := func(patterns []string, text string) bool {
		ok, err := glob.Match(patterns, text)
		return ok && err == nil && text != ""
	}
	program, bare := command[0], servername.Program(command[0])
	return matches(m.Package, servername.Package(command)) ||
		matches(m.URL, program) && strings.Contains(program, "://") ||
		slices.ContainsFunc(m.Command, func(pattern string) bool {
			return matches([]string{pattern}, bare) || strings.ContainsAny(pattern, `/\`) && matches([]string{pattern}, program)
		})
}

// Unmatched returns the entries that recognise their server by its package, if none holds for the
// command and its words do not say which package it runs.
func (s *Settings) Unmatched(command []string) (entries []Server) {
	if len(command) == 0 || strings.Contains(command[0], "://") || len(s.Applied) > 0 || servername.Package(command) != "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Servers), func(e Server) bool { return e.Match.Package == nil })
}

// String returns the match as the configuration writes it.
func (m *Match) String() string { return setting.Object{Options: matchOptions(m)}.String() }

// patterns is one glob or a list of them.
func patterns(to *[]string) setting.Words {
	return setting.Words{To: to, Check: setting.NotEmpty, Empty: "name one, or remove the key", Single: true}
}

// serverSchema returns the JSON Schema of the section servers.
func serverSchema() map[string]any {
	entry := setting.Section("what holds for one server", serverOptions(DefaultSettings(""))...)
	entry["properties"].(map[string]any)["match"] = setting.Section("how the server is recognised; without it, by its name", matchOptions(&Match{})...)
	return map[string]any{
		"description":          "what holds for one server; the rest of the file holds for all",
		"type":                 []string{"object", "null"},
		"additionalProperties": entry,
	}
}
