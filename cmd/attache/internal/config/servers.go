package config

import (
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/servername"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/glob"
)

func (m *Match) options() []setting.Option {
	return []setting.Option{
		{Key: "package", Help: "globs of the package or image that the command runs", Value: patterns(&m.Package)},
		{Key: "command", Help: "globs of the program's name, or of its path if they have a slash", Value: patterns(&m.Command)},
		{Key: "url", Help: "globs of the server's address, also if mcp-remote connects to it", Value: patterns(&m.URL)},
	}
}

// serverKeys lists the keys, or sections, that an entry may have.
var serverKeys = []string{"server", "session.workspace", "session.workspace_id", "arguments", "rewrite", "access", "briefing"}

// serverOptions returns the options that an entry may set, bound to s. The name of an entry is that of its server.
func (s *Settings) serverOptions() []setting.Option {
	return slices.DeleteFunc(Options(s), func(o setting.Option) bool {
		return o.Key == "" || o.Key == "server.name" || !slices.ContainsFunc(serverKeys, func(key string) bool { return Below(o.Key, key) })
	})
}

// readServers reads the section servers. It checks every entry, even for a server that does not
// run.
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
				setting.Object{Options: server.Match.options()}.Read(r, key+".match", field.Value)
			case "servers":
				r.Problems.Add(field.At, "servers: an entry of servers cannot have servers: remove it")
			default:
				server.fields = append(server.fields, field)
			}
		}
		scratch := DefaultSettings("")
		r.Problems = append(r.Problems, readServer(&server, scratch)...)
		server.variables = scratch.Server.Remote.variables()
		server.served = !scratch.Origin("server.command").Default() || !scratch.Origin("server.url").Default()
		all = append(all, server)
	}
	return all
}

// readServer reads the settings of an entry into s, see readOver.
func readServer(e *Server, s *Settings) setting.Problems {
	options := s.serverOptions()
	for _, o := range e.Match.options() { // readServers has read match, but not keys such as match.package
		options = append(options, setting.Option{Key: "match." + o.Key, Value: o.Value})
	}
	r := &setting.Reader{
		File: e.reader.File, Base: e.reader.Base, EntryPrefix: e.reader.EntryPrefix, Prefix: "servers." + e.Name + ".",
		Options: options, Origins: s.origins, Warnings: &s.Warnings,
	}
	s.readOver(r, e.fields)
	return r.Problems
}

// is reports whether the entry is for the server that command starts, whose name is name. Without a
// command, only the name is compared.
func (e *Server) is(command []string, name string) bool {
	m := &e.Match
	if len(command) == 0 || m.String() == "" {
		return e.Name == name
	}
	matches := func(patterns []string, text string) bool {
		ok, err := glob.Match(patterns, text)
		return ok && err == nil && text != ""
	}
	program, bare := command[0], servername.Program(command[0])
	return matches(m.Package, servername.Package(command)) ||
		matches(m.URL, servername.Address(command)) ||
		slices.ContainsFunc(m.Command, func(pattern string) bool {
			return matches([]string{pattern}, bare) || strings.ContainsAny(pattern, `/\`) && matches([]string{pattern}, program)
		})
}

// Unmatched returns the entries that may be meant for the server that command starts, if none applies:
// those for a server of their name, and if the command does not show which package it runs, those that
// recognise their server by its package.
func (s *Settings) Unmatched(command []string) (entries []Server) {
	if len(command) == 0 || len(s.Applied) > 0 {
		return nil
	}
	byPackage := !strings.Contains(command[0], "://") && !servername.NamesPackage(command)
	return slices.DeleteFunc(slices.Clone(s.Servers), func(e Server) bool {
		return !(e.ByName() || byPackage && e.Match.Package != nil)
	})
}

// ByName reports whether the entry has neither a match nor a server of its own. It is then for the server of
// its name, which a client starts.
func (e *Server) ByName() bool {
	return e.Match.String() == "" && !e.served
}

// String returns the match as the configuration writes it, "" without globs.
func (m *Match) String() string {
	if m.Package == nil && m.Command == nil && m.URL == nil {
		return ""
	}
	return setting.Object{Options: m.options()}.String()
}

// patterns returns a value that is one glob or a list of globs.
func patterns(to *[]string) setting.Words {
	return setting.Words{To: to, Check: setting.NotEmpty, Empty: "name one, or remove the key", Single: true}
}
