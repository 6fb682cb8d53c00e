package config

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/servername"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/sessionstate"
)

// maxConfigFile is how large a configuration file may be. It keeps a wrong path
// (a device, a log) from filling the memory, and the parser from a nesting so deep
// that its stack ends.
const maxConfigFile = 256 << 10

// Load returns the settings for the server that command starts: flags before environment
// before file before defaults. Without a command, as for `config check`, no entry of servers
// applies. The error is [setting.Problems].
func Load(p cli.Process, flags setting.Flags, command []string) (*Settings, error) {
	return (&loader{Process: p, flags: flags}).load(command)
}

// LoadServed is [Load] for a server by its name: that of an entry of servers, whatever its
// match, or the name in a recording ([Settings.RecordedName]).
func LoadServed(p cli.Process, flags setting.Flags, name string) (*Settings, error) {
	return (&loader{Process: p, flags: flags, entry: name}).load(nil)
}

// RecordedName returns the name of the server in a recording: that of the first entry of
// servers that applies, or else the server's own.
func (s *Settings) RecordedName() string {
	if len(s.Applied) > 0 {
		return s.Applied[0].Name
	}
	return s.Server.Name
}

func (l *loader) load(command []string) (*Settings, error) {
	path, origin := l.configFile()
	s := DefaultSettings(directory(path))
	all := Options(s)
	if data, ok := l.readFile(path, origin); ok {
		s.File = path
		l.read(l.documents(path, data, s), s, command)
	} else {
		s.target(command)
	}
	command = s.CommandOr(command)
	if s.Server.Name == "" {
		s.Server.Name = cmp.Or(l.entry, servername.Of(command))
	}
	for _, o := range all {
		if o.Flag != "" || o.Injected != "" {
			l.fromEnvironment(s, o)
			l.fromFlag(s, o)
		}
	}
	l.identity(s)
	if at := s.Origin("policy.scope"); !at.Default() && s.Policy.Dir == "" && s.Policy.URL == "" {
		s.Warnings.Add(at, "policy.scope has no effect: say where policies come from with --policy, or policy.dir")
	}
	return s, l.problems.Err()
}

// read reads the documents into s, the last one first, and then what they have for the
// server that command starts. Where no server is known it looks at each entry beside the
// rest for mistakes.
func (l *loader) read(documents []*document, s *Settings, command []string) {
	l.problems = append(l.problems, common(documents, s)...)
	for _, d := range documents {
		s.Servers = append(s.Servers, d.servers...)
	}
	s.target(command)
	command = s.CommandOr(command)
	known := true
	switch {
	case l.entry != "":
		apply(s, documents, nil, l.entry)
	case len(command) > 0 && command[0] != "":
		apply(s, documents, command, cmp.Or(s.Server.Name, servername.Of(command)))
	default:
		known = false
	}
	if len(l.problems) > 0 {
		return
	}
	l.problems = s.misfits()
	for i := 0; !known && l.problems == nil && i < len(s.Servers); i++ {
		one := DefaultSettings("")
		common(documents, one)
		apply(one, documents, nil, s.Servers[i].Name)
		l.problems = one.misfits()
	}
}

// common reads into s what the documents have for all servers.
func common(documents []*document, s *Settings) (problems setting.Problems) {
	for _, d := range slices.Backward(documents) {
		r := *d.reader
		r.Options, r.Origins, r.Warnings = Options(s), s.origins, &s.Warnings
		s.readOver(&r, d.fields)
		problems = append(problems, r.Problems...)
	}
	return problems
}

// apply reads into s, over what it has, the first entry of each document that is for the
// server of that command and name. The first of all names the server, also for the
// documents behind it. Mistakes were found when the document was parsed.
func apply(s *Settings, documents []*document, command []string, name string) {
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
		outside := s.Server.Remote
		readServer(&e, s)
		s.keepApart(outside)
	}
}

// misfits returns what is wrong with rules from several places beside each other.
func (s *Settings) misfits() (problems setting.Problems) {
	add := func(rule string, err error) {
		if err != nil {
			problems.Add(s.Origin(rule), "%s: %v", rule, err)
		}
	}
	for i, r := range s.Access.Rules {
		add(r.Name, access.CheckOrder(s.Access.Rules, i))
	}
	for i, r := range s.Rewrite {
		add(r.Name, rewrite.Collision(s.Rewrite, i))
	}
	return problems
}

// Path returns the path of the configuration file that flags and variables name. The file need
// not exist. The error says that the user has no place for one.
func Path(p cli.Process, flags setting.Flags) (string, error) {
	l := &loader{Process: p, flags: flags}
	path, _ := l.configFile()
	if err := l.problems.Err(); err != nil {
		return "", err
	}
	if path == "" {
		return "", errors.New("it is not known where the user's configuration belongs: name a file with --config")
	}
	return path, nil
}

// Check returns the mistakes in content as the configuration file at path. An error is
// [Problems].
func Check(p cli.Process, path string, content []byte) error {
	l := &loader{Process: p}
	s := DefaultSettings(directory(path))
	l.read(l.documents(path, content, s), s, nil)
	return l.problems.Err()
}

// A loader gathers the settings and the mistakes in them.
type loader struct {
	cli.Process
	flags    setting.Flags
	entry    string // of servers, which applies whatever the command; "" for the one that fits it
	offline  bool   // files that are included from an address are left out
	problems setting.Problems
}

// configFile returns the path of the configuration file, empty for none, and who
// named it; nobody did if the origin is the default.
func (l *loader) configFile() (string, setting.Origin) {
	const variable = setting.Prefix + "_CONFIG"
	named, err := l.flags.Get("config")
	origin := setting.Origin{Name: "--config"}
	if err != nil {
		l.problems.Add(origin, "%v", err)
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

// directory is the directory of path, empty if path is.
func directory(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Dir(path)
}

// readFile returns the content of the configuration file, or of one that it includes at
// named. The bool is false if there is none, or none that can be read.
func (l *loader) readFile(path string, named setting.Origin) ([]byte, bool) {
	if path == "" {
		return nil, false
	}
	data, err := cli.ReadAtMost(path, maxConfigFile)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	without, other := ", or leave it out to go without a configuration file", "name another file with --config"
	if named.File != "" {
		without, other = "", "name another file under include"
	}
	switch {
	case err == nil:
		return data, true
	case missing && named.Default():
	case missing:
		l.problems.Add(named, "there is no file %s: correct the path%s", path, without)
	case errors.Is(err, fs.ErrPermission):
		l.problems.Add(setting.Origin{File: path}, "may not be read by this user: change its permissions (chmod u+r), or %s", other)
	default:
		l.problems.Add(setting.Origin{File: path}, "cannot be read: %v: %s", cli.Reason(err), other)
	}
	return nil, false
}

// fromEnvironment sets o from its variables: the flag's own, then the name that
// attache injects, under its own prefix and each configured one. The first that is
// not empty counts.
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
	for _, prefix := range append([]string{setting.Prefix}, s.Session.EnvPrefixes...) {
		name := prefix + "_" + o.Injected
		if text := l.Getenv(name); text != "" {
			l.setInjected(s, o, text, setting.Origin{Name: name})
			return
		}
	}
}

// setInjected sets o from a variable that another program, or another attache,
// made for servers to read. Its words are that program's: a path stays as it is,
// and a level of trust that we do not know means sandboxed.
func (l *loader) setInjected(s *Settings, o setting.Option, text string, from setting.Origin) {
	if at, ok := o.Value.(place); ok {
		o.Value = setting.Text(at.to)
	}
	if o.Key == "session.trust" {
		text = sessionstate.NormalizeTrust(text)
	}
	l.set(s, o, text, from)
}

// fromFlag sets o from its flag. An empty value counts as not given: it is what a
// client makes of a variable that is not set.
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
		// Without the value the default would hold, which trusts more.
		l.problems.Add(origin, "is empty: write \"direct\" or \"sandboxed\"; was it a variable that is not set?")
	}
}

// set sets o to text and remembers where it came from.
func (l *loader) set(s *Settings, o setting.Option, text string, from setting.Origin) {
	v, ok := o.Value.(setting.Scalar)
	if !ok {
		return
	}
	if err := v.Set(text, ""); err != nil {
		l.problems.Add(from, "%v", err)
		return
	}
	key := o.Key
	if key == "" {
		key = policyKey(&s.Policy) // --policy is the one flag without a key
	}
	s.origins[key] = from
}
