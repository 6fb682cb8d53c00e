package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/proxy"
)

// A reloader reads the configuration, the keys and the policies again while a
// session runs. A version that is not valid is told of and changes nothing.
type reloader struct {
	p       process
	load    func() (*Settings, error)
	log     *slog.Logger
	control *proxy.Control

	mu     sync.Mutex // one reading at a time
	s      *Settings  // in force
	layers *layers
	told   string // what was wrong with the last version
	later  string // the keys of the last version that do not take effect
}

// reloadable are the keys, or the beginnings of keys, that take effect in a
// running session. The others say what the session is, and hold until it is over.
// [Settings.taking] is in step with it.
var reloadable = []string{
	"arguments", "rewrite", "access", "policy", "briefing",
	"dry_run", "identity.keys_file", "identity.jwt", "identity.token_file", "identity.api_key_file",
}

// reload reads everything again.
func (r *reloader) reload() {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := fingerprint(r.filesLocked())
	err := stillThere(r.s.File)
	if err == nil {
		err = r.readAgain(before)
	}
	if errors.Is(err, errWritten) {
		return // the watcher calls again
	}
	if err != nil {
		r.refuse(err)
		return
	}
	if r.told != "" {
		r.log.Info("the configuration is valid again, and in force")
	}
	r.told = ""
	r.layers.refresh()
}

// stillThere returns an error if the configuration file is gone or empty: so it is
// for a moment while an editor saves it, and so it stays where the disk is full.
// That is not how rules are taken back. To open what is no file may take for ever.
func stillThere(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w: write {} into it to go on without rules", path, reason(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file any more: put a file in its place", path)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty: write {} into it to go on without rules", path)
	}
	return nil
}

// errWritten is returned for files that changed while they were read.
var errWritten = errors.New("the files changed while they were read")

// readAgain reads the configuration and puts it in force, if the files are still what
// they were before.
func (r *reloader) readAgain(before string) error {
	s, err := r.load()
	if fingerprint(r.filesLocked()) != before {
		return errWritten
	}
	if err != nil {
		return err
	}
	return r.replace(s)
}

// replace puts s in force. An error leaves everything as it was.
func (r *reloader) replace(s *Settings) error {
	was := r.s
	changed := slices.DeleteFunc(changedKeys(was, s), func(key string) bool { return unread(was, s, key) })
	now, later := splitKeys(changed)
	s = was.taking(s)
	l, err := r.layers.build(r.p, s, r.log)
	if err != nil {
		return err
	}
	if l.nobody && l.caller.identifies() {
		now, later = identityLater(now, later)
	}
	l.adopt(l.caller, s)
	r.control.Replace(l.rules())
	r.s, r.layers = s, l
	r.tellLater(strings.Join(later, ", "))
	if !slices.Equal(s.Warnings, was.Warnings) {
		warnOfSettings(s, r.log)
	}
	if len(now) > 0 {
		r.log.Info("the configuration was changed and is in force", "keys", strings.Join(now, ", "))
	}
	if s.DryRun && was.DryRun {
		return nil // what is listed has not changed
	}
	for _, m := range l.announce.Changed(changedLists(now)...) {
		r.control.Notify(m)
	}
	return nil
}

// tellLater tells once which keys will take effect later.
func (r *reloader) tellLater(keys string) {
	if keys != "" && keys != r.later {
		r.log.Warn("the configuration was changed; this takes effect when attache is started again", "keys", keys)
	}
	r.later = keys
}

// taking returns the settings of a session that began with was and goes on with
// what of s is [reloadable]. All else stays as it was, for the layers that are made
// anew as well: otherwise half of an audit that is no longer required would be
// gone, and half of it there.
func (was *Settings) taking(s *Settings) *Settings {
	out := *was
	out.Arguments, out.Rewrite, out.Access = s.Arguments, s.Rewrite, s.Access
	out.Policy, out.Briefing, out.DryRun = s.Policy, s.Briefing, s.DryRun
	out.Identity.KeysFile, out.Identity.JWT, out.Identity.TokenFile = s.Identity.KeysFile, s.Identity.JWT, s.Identity.TokenFile
	out.APIKeyFile, out.File, out.Warnings = s.APIKeyFile, s.File, s.Warnings
	out.origins = maps.Clone(was.origins)
	for _, o := range options(s) {
		if now, _ := splitKeys([]string{o.key}); len(now) == 0 {
			continue
		}
		delete(out.origins, o.key)
		if from, set := s.origins[o.key]; set {
			out.origins[o.key] = from
		}
	}
	return &out
}

// refuse tells once what is wrong with a version that is not put in force.
func (r *reloader) refuse(err error) {
	if r.told == err.Error() {
		return
	}
	r.told = err.Error()
	problems := []string{err.Error()}
	var mistakes Problems
	if errors.As(err, &mistakes) {
		problems = problems[:0]
		for _, m := range mistakes {
			problems = append(problems, m.String())
		}
	}
	for _, problem := range problems {
		r.log.Error("the configuration was changed and is not valid; the one before stays in force", "problem", problem)
	}
}

// files are what is read again when it has changed.
func (r *reloader) files() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.filesLocked()
}

func (r *reloader) filesLocked() []string {
	s := r.s
	all := []string{s.File, s.Identity.KeysFile, s.Policy.Dir, s.Operator.SessionFile, s.APIKeyFile}
	return slices.DeleteFunc(all, func(path string) bool { return path == "" })
}

// values returns what every key is set to.
func (s *Settings) values() map[string]string {
	all := map[string]string{}
	for _, o := range options(s) {
		if o.key != "" {
			all[o.key] = o.value.String()
		}
	}
	return all
}

// changedKeys returns the keys whose values differ, in order.
func changedKeys(before, after *Settings) []string {
	var changed []string
	was := before.values()
	for key, value := range after.values() {
		if was[key] != value {
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	return changed
}

// unread reports whether key differs only because the session file that said it can
// no longer be read, which is told where the session is identified.
func unread(before, after *Settings, key string) bool {
	return after.Operator.FileErr != nil && after.Origin(key).Default() && before.Origin(key) == before.Operator.origin()
}

// sameValues reports whether nothing at or below key differs.
func sameValues(before, after *Settings, key string) bool {
	return !slices.ContainsFunc(changedKeys(before, after), func(k string) bool { return below(k, key) })
}

func below(key, above string) bool {
	return key == above || strings.HasPrefix(key, above+".")
}

// splitKeys parts the keys that take effect now from those that do later.
func splitKeys(changed []string) (now, later []string) {
	for _, key := range changed {
		if slices.ContainsFunc(reloadable, func(r string) bool { return below(key, r) }) {
			now = append(now, key)
		} else {
			later = append(later, key)
		}
	}
	return now, later
}

// identityLater has the keys of identity take effect later: a session that began
// with nothing to identify anybody by identifies nobody.
func identityLater(now, later []string) (rest, all []string) {
	for _, key := range now {
		if below(key, "identity") {
			later = append(later, key)
		} else {
			rest = append(rest, key)
		}
	}
	return rest, later
}

// changedLists returns the lists that keys have a say in.
func changedLists(keys []string) []announce.List {
	has := func(above ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool {
			return slices.ContainsFunc(above, func(a string) bool { return below(k, a) })
		})
	}
	switch {
	case has("rewrite", "dry_run"):
		return []announce.List{announce.Tools, announce.Prompts, announce.Resources}
	case has("arguments", "access"):
		return []announce.List{announce.Tools}
	}
	return nil
}

// rules are the part of the relay's options that can be replaced.
func (l *layers) rules() proxy.Rules {
	return proxy.Rules{Layers: l.list, DryRun: l.dryRun}
}
