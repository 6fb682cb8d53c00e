package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// maxConfigFile is how large a configuration file may be. It keeps a wrong path
// (a device, a log) from filling the memory, and the parser from a nesting so deep
// that its stack ends.
const maxConfigFile = 256 << 10

// loadSettings returns what holds: flags before environment before file before
// defaults. An error is [Problems]. Without a file it costs a look for one.
func loadSettings(p process, flags flagValues) (*Settings, error) {
	l := &loader{process: p, flags: flags}
	path, origin := l.configFile()
	s := defaultSettings(directory(path))
	all := options(s)
	if data, ok := l.readFile(path, origin); ok {
		s.File = path
		l.problems = append(l.problems, readYAML(path, data, s, all)...)
	}
	for _, o := range all {
		if o.flag != "" || o.injected != "" {
			l.fromEnvironment(s, o)
			l.fromFlag(s, o)
		}
	}
	l.identity(s)
	if at := s.Origin("policy.scope"); !at.Default() && s.Policy.Dir == "" && s.Policy.URL == "" {
		s.Warnings.add(at, "policy.scope has no effect: say where policies come from with --policy, or policy.dir")
	}
	return s, l.problems.err()
}

// A loader gathers the settings and the mistakes in them.
type loader struct {
	process
	flags    flagValues
	problems Problems
}

// configFile returns the path of the configuration file, empty for none, and who
// named it; nobody did if the origin is the default.
func (l *loader) configFile() (string, Origin) {
	const variable = ownPrefix + "_CONFIG"
	named, err := l.flags.get("config")
	origin := Origin{Name: "--config"}
	if err != nil {
		l.problems.add(origin, "%v", err)
	}
	if named == "" {
		named, origin = l.getenv(variable), Origin{Name: variable}
	}
	if named == "" {
		if l.ConfigDir == "" {
			return "", Origin{}
		}
		return filepath.Join(l.ConfigDir, "attache", "config.yaml"), Origin{}
	}
	path, err := absolute(named, "")
	if err != nil {
		l.problems.add(origin, "%v", err)
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

// readFile returns the content of the configuration file. The bool is false if
// there is none, or none that can be read.
func (l *loader) readFile(path string, named Origin) ([]byte, bool) {
	if path == "" {
		return nil, false
	}
	data, err := readAtMost(path, maxConfigFile)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	switch {
	case err == nil:
		return data, true
	case missing && named.Default():
	case missing:
		l.problems.add(named, "there is no file %s: correct the path, or leave it out to go without a configuration file", path)
	case errors.Is(err, fs.ErrPermission):
		l.problems.add(Origin{File: path}, "may not be read by this user: change its permissions (chmod u+r), or name another file with --config")
	default:
		l.problems.add(Origin{File: path}, "cannot be read: %v: name another file with --config", reason(err))
	}
	return nil, false
}

// readAtMost returns the content of a regular file of at most limit bytes.
func readAtMost(path string, limit int64) ([]byte, error) {
	data, _, err := textfile.Read(path, textfile.Rules{Max: limit})
	return data, err
}

// reason returns err without the path, which the caller names itself.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// unreadable is why a file that a person named could not be read, without its path,
// and what to do.
func unreadable(err error) error {
	err = reason(err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: correct the path", err)
	case errors.Is(err, textfile.ErrDirectory), errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%w: name a file in it", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: let this user read it", err)
	case errors.Is(err, textfile.ErrTooLarge), errors.Is(err, textfile.ErrNotRegular):
		return fmt.Errorf("%w: name another file", err)
	}
	return err
}

// fromEnvironment sets o from its variables: the flag's own, then the name that
// attache injects, under its own prefix and each configured one. The first that is
// not empty counts.
func (l *loader) fromEnvironment(s *Settings, o option) {
	if o.flag != "" {
		if text := l.getenv(o.variable()); text != "" {
			l.set(s, o, text, Origin{Name: o.variable()})
			return
		}
	}
	if o.injected == "" {
		return
	}
	for _, prefix := range append([]string{ownPrefix}, s.Session.EnvPrefixes...) {
		name := prefix + "_" + o.injected
		if text := l.getenv(name); text != "" {
			l.setInjected(s, o, text, Origin{Name: name})
			return
		}
	}
}

// setInjected sets o from a variable that another program, or another attache,
// made for servers to read. Its words are that program's: a path stays as it is,
// and a level of trust that we do not know means sandboxed.
func (l *loader) setInjected(s *Settings, o option, given string, from Origin) {
	if at, ok := o.value.(place); ok {
		o.value = text{to: at.to}
	}
	if o.key == "session.trust" {
		given = sessionstate.NormalizeTrust(given)
	}
	l.set(s, o, given, from)
}

// fromFlag sets o from its flag. An empty value counts as not given: it is what a
// client makes of a variable that is not set.
func (l *loader) fromFlag(s *Settings, o option) {
	if o.flag == "" {
		return
	}
	origin := Origin{Name: "--" + o.flag}
	text, err := l.flags.get(o.flag)
	if err != nil {
		l.problems.add(origin, "%v", err)
		return
	}
	switch {
	case text != "":
		l.set(s, o, text, origin)
	case o.key == "session.trust" && l.flags.has(o.flag):
		// As if it were not there it would be the default, which trusts more.
		l.problems.add(origin, "is empty: write \"direct\" or \"sandboxed\"; was it a variable that is not set?")
	}
}

// set sets o to text and remembers where it came from.
func (l *loader) set(s *Settings, o option, text string, from Origin) {
	v, ok := o.value.(scalar)
	if !ok {
		return
	}
	if err := v.set(text, ""); err != nil {
		l.problems.add(from, "%v", err)
		return
	}
	key := o.key
	if at, ok := v.(source); ok {
		key = at.key()
	}
	s.origins[key] = from
}

// keyPrefix accepts what keys may begin with.
func keyPrefix(s string) error {
	strange := strings.ContainsFunc(s, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if s == "" || len(s) > 32 || strange {
		return fmt.Errorf("%q is no prefix for keys: write at most 32 letters, digits, dashes and underscores, such as atk", s)
	}
	return nil
}
