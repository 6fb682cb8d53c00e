package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/servername"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
)

// maxConfigFile bounds the size of a configuration file. A wrong path (a device, a log) must not
// fill the memory, and deeply nested content must not overflow the stack of the parser.
const maxConfigFile = 256 << 10

// Load returns the settings for the server that command starts. Flags take precedence over
// variables, variables over the file, and the file over defaults. Without a command, as for
// `config check`, no entry of servers applies. The error is [setting.Problems].
func Load(p cli.Process, flags setting.Flags, command []string) (*Settings, error) {
	return (&loader{Process: p, flags: flags}).load(command)
}

// LoadServed is like [Load] for the server of that name: the name of an entry of servers, whatever
// its match, or the name in a recording ([Settings.RecordedName]).
func LoadServed(p cli.Process, flags setting.Flags, name string) (*Settings, error) {
	s, err := (&loader{Process: p, flags: flags, entry: name}).load(nil)
	s.served = slices.Sorted(slices.Values(ServedServers(s)))
	return s, err
}

// LoadEndpoint is like [LoadServed] for a server that attache serve serves until it ends. It returns an
// error if no entry has that name: the rules of a removed entry must not end before its server.
func LoadEndpoint(p cli.Process, flags setting.Flags, name string) (*Settings, error) {
	s, err := LoadServed(p, flags, name)
	if err == nil && len(s.Applied) == 0 {
		return nil, fmt.Errorf("%s: the entry servers.%s is gone, and its server is served until attache is started again: restart attache, or put the entry back", s.File, name)
	}
	return s, err
}

// LoadNamed is like [Load] if entry is "", and else like [LoadServed] for that entry, as attache serve
// starts its server. It also returns the command of the server. dashed means that the command line has
// one. The settings are nil if the command line is wrong.
func LoadNamed(p cli.Process, flags setting.Flags, entry string, command []string, dashed bool) (*Settings, []string, error) {
	if entry == "" {
		s, err := Load(p, flags, command)
		return s, s.CommandOr(command), err
	}
	if dashed {
		return nil, nil, cli.Usagef("--server and a server after \"--\" are both given: give one of them")
	}
	s, err := LoadServed(p, flags, entry)
	if names := ServedServers(s); err == nil && !slices.Contains(names, entry) {
		return nil, nil, cli.Usagef("--server %s: servers has no entry of that name with a command or URL: write %s", entry, cmp.Or(cli.Quoted(names), "one"))
	}
	return s, slices.Clone(s.CommandOr(s.Server.Command)), err
}

// RecordedName returns the name of the server in a recording: the name of the first entry of
// servers that applies, or else the server's name.
func (s *Settings) RecordedName() string {
	if len(s.Applied) > 0 {
		return s.Applied[0].Name
	}
	return s.Server.Name
}

func (l *loader) load(command []string) (*Settings, error) {
	path, origin := l.configFile()
	dir := ""
	if path != "" {
		dir = filepath.Dir(path)
	}
	s := DefaultSettings(dir)
	all := Options(s)
	if path == "" && l.problems == nil {
		s.Warnings.Add(setting.Origin{}, "no configuration file is looked for, because the user's configuration directory is not known: set HOME, or XDG_CONFIG_HOME to an absolute path (AppData on Windows), or name a file with --config")
	}
	s.sought = path
	if data, ok := l.readFile(path, origin); ok {
		s.File = path
		l.read(l.documents(path, data, s), s, command)
	} else {
		s.setTarget(command)
	}
	command = s.CommandOr(command)
	s.Server.Name = cmp.Or(s.Server.Name, l.entry, servername.Of(command))
	l.Env = s.Session.WithoutOtherClient(l.Env)
	for _, o := range all {
		if o.Flag != "" || o.Injected != "" {
			l.fromEnvironment(s, o)
			l.fromFlag(s, o)
		}
	}
	s.Server.Remote.bearerFirst = l.entry != "" || s.Origin("server.bearer_env").Name != ""
	l.operatorVariables(s)
	l.sessionFile(s)
	l.checkTokens(s)
	l.problems = append(l.problems, s.checkRemote(l.grant)...)
	if text := s.Store.URL.Text; text != "" { // a secret in a variable or a file is checked when it is used
		l.problems.AddError(s.Origin("store.url"), "store.url", database.CheckURL(text))
	}
	if at := s.Origin("policy.scope"); !at.Default() && s.Policy.Dir == "" && s.Policy.URL == "" {
		s.Warnings.Add(at, "policy.scope has no effect: say where policies come from with --policy, or policy.dir")
	}
	if !l.command.Default() {
		s.Warnings.Add(l.command, `server.command has no effect outside of servers: for attache serve write it into an entry, as in servers: {git: {server: {command: [git-server]}}}`)
	}
	return s, l.problems.Err()
}

// read reads into s the settings in documents for all servers, and then those for the server that
// command starts. If the server is not known, it checks the rules of each entry with the others.
func (l *loader) read(documents []*document, s *Settings, command []string) {
	l.problems = append(l.problems, readCommon(documents, s)...)
	l.grant, l.command = s.Origin("server.oauth.grant"), s.Origin("server.command")
	for _, d := range documents {
		s.Servers = append(s.Servers, d.servers...)
	}
	s.setTarget(command)
	named, target, at := len(command) > 0, s.Server.Remote.URL, s.Origin("server.url")
	command = s.CommandOr(command)
	known := true
	switch {
	case l.entry != "":
		applyEntries(s, documents, nil, l.entry)
	case len(command) > 0 && command[0] != "":
		applyEntries(s, documents, command, cmp.Or(s.Server.Name, servername.Of(command)))
	default:
		known = false
	}
	if named { // the address in the entry is for attache serve without a command
		entry := s.placed()
		s.Server.Remote.URL = target
		s.origins["server.url"] = at
		if target != "" { // the credentials beside the entry's address are for that one
			s.dropCredentials(entry)
		}
	}
	if len(l.problems) > 0 {
		return
	}
	l.problems = s.conflicts()
	for i := 0; !known && l.problems == nil && i < len(s.Servers); i++ {
		one := DefaultSettings("")
		readCommon(documents, one)
		applyEntries(one, documents, nil, s.Servers[i].Name)
		l.problems = one.conflicts()
	}
}

// readCommon reads into s the settings for all servers, those of the last document first.
func readCommon(documents []*document, s *Settings) (problems setting.Problems) {
	for _, d := range slices.Backward(documents) {
		r := *d.reader
		r.Options, r.Origins, r.Warnings = Options(s), s.origins, &s.Warnings
		r.Options = append(r.Options, setting.Option{Key: "servers"}, setting.Option{Key: "include"}) // only for suggestions: document has read them
		outside := s.placed()
		s.readOver(&r, d.fields)
		if outside.URL != "" { // otherwise its credentials may be for any address
			s.outside = append(s.outside, outside.variables()...)
			s.dropCredentials(outside)
		}
		problems = append(problems, r.Problems...)
	}
	return problems
}

// applyEntries reads into s the first entry of each document that matches the server of that
// command and name. The first entry found gives the server its name, by which the later documents
// are searched. Mistakes in entries were reported when the documents were parsed.
func applyEntries(s *Settings, documents []*document, command []string, name string) {
	for _, d := range documents {
		i := slices.IndexFunc(d.servers, func(e Server) bool { return e.is(command, name) })
		if i < 0 {
			continue
		}
		if s.Applied == nil && s.Origin("server.name").Default() {
			name = d.servers[i].Name
			s.Server.Name = name
		}
		s.Applied = append(s.Applied, d.servers[i])
	}
	for _, e := range slices.Backward(s.Applied) {
		outside := s.placed()
		readServer(&e, s)
		s.dropCredentials(outside)
	}
}

// conflicts returns the conflicts between rules from different places.
func (s *Settings) conflicts() (problems setting.Problems) {
	for i, r := range s.Access.Rules {
		problems.AddError(s.Origin(r.Name), r.Name, access.CheckOrder(s.Access.Rules, i))
	}
	for i, r := range s.Rewrite {
		problems.AddError(s.Origin(r.Name), r.Name, rewrite.Collision(s.Rewrite, i))
	}
	return problems
}

// Path returns the path of the configuration file, which flags and variables can set. The file need
// not exist. It returns an error if the user has no configuration directory.
func Path(p cli.Process, flags setting.Flags) (string, error) {
	l := &loader{Process: p, flags: flags}
	path, _ := l.configFile()
	if err := l.problems.Err(); err != nil {
		return "", err
	}
	if path == "" {
		return "", cli.Usagef("the user's configuration directory is not known: set HOME, or name a file with --config")
	}
	return path, nil
}

// Check returns the mistakes in content as that of the configuration file at path. The error is
// [setting.Problems].
func Check(p cli.Process, path string, content []byte) error {
	l := &loader{Process: p}
	s := DefaultSettings(filepath.Dir(path))
	l.read(l.documents(path, content, s), s, nil)
	return l.problems.Err()
}

// A loader collects the settings and the mistakes in them.
type loader struct {
	cli.Process
	flags    setting.Flags
	grant    setting.Origin // where server.oauth.grant is set outside of servers
	command  setting.Origin // where server.command is set outside of servers
	entry    string         // the entry of servers that applies; "" for the one that matches the command
	offline  bool           // ignore files that are included from an address
	problems setting.Problems
}

// configFile returns the path of the configuration file, empty for none, and the flag or variable
// that set it.
func (l *loader) configFile() (string, setting.Origin) {
	const variable = setting.Prefix + "_CONFIG"
	named, err := l.flags.Get("config")
	origin := setting.Origin{Name: "--config"}
	switch {
	case err != nil:
		l.problems.Add(origin, "%v", err)
	case named == "" && l.flags.Has("config"):
		// The default must not apply, because it may lack rules that the named file has.
		l.problems.Add(origin, "is empty: name the file; was it a variable that is not set?")
	}
	if named == "" {
		named, origin = l.Getenv(variable), setting.Origin{Name: variable}
	}
	if named == "" {
		if l.ConfigDir == "" {
			return "", setting.Origin{}
		}
		return filepath.Join(l.ConfigDir, "attache", "config.yaml"), setting.Origin{}
	}
	path, err := setting.Absolute(named, "")
	if err != nil {
		l.problems.Add(origin, "%v", err)
		return "", origin
	}
	return path, origin
}

// readFile returns the content of the configuration file at path, or of a file that it includes.
// named is the origin of the path. It returns false if there is no file or it cannot be read.
func (l *loader) readFile(path string, named setting.Origin) ([]byte, bool) {
	if path == "" {
		return nil, false
	}
	data, err := cli.ReadAtMost(path, maxConfigFile)
	missing := cli.IsMissing(err)
	at, file := setting.Origin{File: path}, ""
	without, other := ", or leave it out to go without a configuration file", "name another file with --config"
	if named.File != "" { // it is included
		at, file = named, path+" "
		without, other = "", "name another file under include"
	}
	switch {
	case err == nil:
		return data, true
	case missing && named.Default():
		if link := brokenLink(path); link != "" {
			l.problems.Add(at, "cannot be read: the symbolic link %s leads to nothing: correct it, or remove it to go without a configuration file", link)
		}
	case missing:
		l.problems.Add(named, "there is no file %s: correct the path%s", path, without)
	case errors.Is(err, fs.ErrPermission):
		l.problems.Add(at, "%smay not be read by this user: change its permissions (chmod u+r), or %s", file, other)
	default:
		l.problems.Add(at, "%scannot be read: %v: %s", file, cli.Reason(err), other)
	}
	return nil, false
}

// brokenLink returns the symbolic link, at path or above it, whose target does not exist. It returns ""
// if there is no such link.
func brokenLink(path string) string {
	for ; ; path = filepath.Dir(path) {
		_, err := os.Lstat(path)
		if err == nil {
			if _, err = os.Stat(path); err != nil {
				return path
			}
		}
		if err == nil || path == filepath.Dir(path) {
			return ""
		}
	}
}

// fromEnvironment sets o from the first of its variables that is not empty: that of the flag, then
// those that attache injects, with its prefix and the configured ones.
func (l *loader) fromEnvironment(s *Settings, o setting.Option) {
	if o.Flag != "" {
		if text := l.Getenv(o.Variable()); text != "" {
			l.set(s, o, text, setting.Origin{Name: o.Variable()})
			return
		}
	}
	if o.Injected == "" {
		return
	}
	for _, prefix := range s.Session.Prefixes() {
		name := prefix + "_" + o.Injected
		if text := l.Getenv(name); text != "" {
			l.setInjected(s, o, text, setting.Origin{Name: name})
			return
		}
	}
}

// setInjected sets o from a variable that another program, or another attache, set for servers.
// A path stays unchanged, and an unknown level of trust means sandboxed.
func (l *loader) setInjected(s *Settings, o setting.Option, text string, from setting.Origin) {
	if path, ok := o.Value.(workspacePath); ok {
		o.Value = setting.Text(path.to)
	}
	if o.Key == "session.trust" {
		text = sessionstate.NormalizeTrust(text)
	}
	l.set(s, o, text, from)
}

// fromFlag sets o from its flag. It ignores an empty value, which clients pass if a variable in
// their configuration is not set.
func (l *loader) fromFlag(s *Settings, o setting.Option) {
	if o.Flag == "" {
		return
	}
	origin := setting.Origin{Name: "--" + o.Flag}
	text, err := l.flags.Get(o.Flag)
	if err != nil {
		l.problems.Add(origin, "%v", err)
		return
	}
	switch {
	case text != "":
		l.set(s, o, text, origin)
	case o.Key == "session.trust" && l.flags.Has(o.Flag):
		// The default must not apply, because it trusts more.
		l.problems.Add(origin, "is empty: write \"direct\" or \"sandboxed\"; was it a variable that is not set?")
	}
}

func (l *loader) set(s *Settings, o setting.Option, text string, from setting.Origin) {
	v, ok := o.Value.(setting.Scalar)
	if !ok {
		return
	}
	if err := v.Set(text, ""); err != nil {
		l.problems.Add(from, "%v", err)
		return
	}
	if o.Key == "" { // --policy, the only flag without a key, sets one and clears the other
		s.origins["policy.dir"], s.origins["policy.url"] = from, from
		return
	}
	s.origins[o.Key] = from
}
