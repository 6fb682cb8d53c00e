package session

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/middleware/glob"
)

// A Reloader reads the configuration, the keys and the policies again, on request or when a file
// changes, and applies them to all connections. An invalid version is logged and changes nothing.
type Reloader struct {
	load  func() (*config.Settings, error)
	state string // the FileState of the first settings
	log   *slog.Logger

	mu       sync.Mutex       // held during a reload
	shared   *assembly.Shared // the current one
	problem  string           // the error of the last version
	deferred []string         // the keys of the last version that do not take effect

	watching sync.Mutex // guards the fields below
	watcher  *watcher   // nil while no files are watched
	closed   bool
}

// NewReloader returns a Reloader for shared, whose settings load reads again. state is the
// [FileState] of the settings of shared.
func NewReloader(shared *assembly.Shared, load func() (*config.Settings, error), state string, log *slog.Logger) *Reloader {
	return &Reloader{load: load, state: state, log: log, shared: shared}
}

// FileState returns a text that identifies the state of the files that s depends on. Call it
// immediately after s was loaded, so that [Reloader.Watch] notices later changes.
func FileState(s *config.Settings) string { return fingerprint(watched(s)) }

// Reload reads everything again, as the operator asks. A problem is logged even if it was logged
// before: otherwise it would look as if the files were valid.
func (r *Reloader) Reload() { r.reload(fingerprint(r.files()), true) }

// reload reads everything again, if the files are still in the state before.
func (r *Reloader) reload(before string, asked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := stillThere(r.shared.Settings().File)
	if err == nil {
		err = r.readAgain(before)
	}
	if errors.Is(err, errWritten) {
		return // the watcher calls again
	}
	if err != nil {
		r.refuse(err, asked)
		return
	}
	if r.problem != "" {
		r.log.Info("the configuration is valid again, and in force")
	}
	r.problem = ""
	r.shared.Refresh(asked)
}

// stillThere returns an error if the configuration file is missing or empty. That happens for a
// moment while an editor saves it, and lasts if the disk is full, and must not remove the rules. It
// does not open a file that is not regular, because that may block.
func stillThere(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w: write {} into it to go on without rules", path, cli.Reason(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no longer a file: put a file in its place", path)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty: write {} into it to go on without rules", path)
	}
	return nil
}

// errWritten is returned if the files changed while they were read.
var errWritten = errors.New("the files changed while they were read")

// readAgain reads the configuration and applies it, if the files are still in the state before.
func (r *Reloader) readAgain(before string) error {
	s, err := r.load()
	if FileState(r.shared.Settings()) != before {
		return errWritten
	}
	if err != nil {
		return err
	}
	return r.replace(s)
}

// replace applies s. An error leaves everything as it was.
func (r *Reloader) replace(s *config.Settings) error {
	was := r.shared.Settings()
	changed := slices.DeleteFunc(config.ChangedKeys(was, s), func(key string) bool {
		// "attache inject" alone reads the keys of inject, each time it runs.
		return config.Below(key, "inject") || config.SessionFileLost(was, s, key)
	})
	now, later := config.SplitReloadable(changed)
	s = was.Reloaded(s)
	shared, err := r.shared.Reload(s)
	if err != nil {
		return err
	}
	ignored := r.shared.IgnoresIdentity()
	r.shared = shared
	switch {
	case shared.IgnoresIdentity():
		now, later = identityLater(now, later)
	case ignored:
		now, _ = identityLater(now, nil) // what was removed was never in force
	}
	r.logDeferred(later)
	if !slices.Equal(s.Warnings, was.Warnings) {
		warnSettings(s, r.log)
	}
	if len(now) > 0 {
		r.log.Info("the configuration was changed and is in force", "keys", strings.Join(now, ", "))
	}
	if s.DryRun && was.DryRun {
		return nil // what is listed has not changed
	}
	shared.Announce(func(a *announce.Announce) []announce.List { return changedLists(now, was, s, a) })
	return nil
}

// logDeferred logs which keys take effect only in the next session, if one was not logged before.
func (r *Reloader) logDeferred(keys []string) {
	if slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(r.deferred, key) }) {
		r.log.Warn("the configuration was changed; this takes effect when attache is started again", "keys", strings.Join(keys, ", "))
	}
	r.deferred = keys
}

// refuse logs why a version is not applied, once for the same error unless the operator asked.
func (r *Reloader) refuse(err error, asked bool) {
	if r.problem == err.Error() && !asked {
		return
	}
	r.problem = err.Error()
	problems := []string{err.Error()}
	if mistakes, ok := errors.AsType[setting.Problems](err); ok {
		problems = problems[:0]
		for _, m := range mistakes {
			problems = append(problems, m.String())
		}
	}
	for _, problem := range problems {
		r.log.Error("the configuration was changed and cannot be applied; the one before stays in force", "problem", problem)
	}
}

// files returns the files that are read again when they change.
func (r *Reloader) files() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return watched(r.shared.Settings())
}

// watched returns the files that s depends on.
func watched(s *config.Settings) []string {
	all := append(slices.Clone(s.Included), s.File, s.Identity.KeysFile, s.Policy.Dir, s.Operator.SessionFile, s.APIKeyFile)
	return slices.DeleteFunc(all, func(path string) bool { return path == "" })
}

// identityLater moves the keys of identity from now to later: a session that began without an
// identity source cannot get one.
func identityLater(now, later []string) (rest, all []string) {
	for _, key := range now {
		if config.Below(key, "identity") {
			later = append(later, key)
		} else {
			rest = append(rest, key)
		}
	}
	return rest, later
}

// changedLists returns the lists that change for the client of a when these keys change.
func changedLists(keys []string, was, now *config.Settings, a *announce.Announce) (lists []announce.List) {
	has := func(above ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool {
			return slices.ContainsFunc(above, func(a string) bool { return config.Below(k, a) })
		})
	}
	if has("dry_run") {
		return []announce.List{announce.Tools, announce.Prompts, announce.Resources}
	}
	if has("rewrite", "arguments", "access") {
		lists = append(lists, announce.Tools)
	}
	if !has("rewrite") {
		return lists
	}
	for _, l := range []announce.List{announce.Prompts, announce.Resources} {
		if a.Shows(l, func(name string) bool { return hidesOther(was, now, l, name) }) {
			lists = append(lists, l)
		}
	}
	return lists
}

// hidesOther reports whether the hidden prompts or resources may have changed for a client that
// knows the one of that name: a rule that hides was removed, or a new rule may hide this one.
func hidesOther(was, now *config.Settings, l announce.List, name string) bool {
	before, after := hiding(was), hiding(now)
	for rule := range before {
		if _, still := after[rule]; !still {
			return true
		}
	}
	for rule, tools := range after {
		if _, old := before[rule]; old {
			continue
		}
		matches, err := glob.Match(tools, name)
		uri := l == announce.Resources && slices.ContainsFunc(tools, func(t string) bool { return strings.Contains(t, ":") })
		if matches || err != nil || uri { // a URI matches in a normal form, which is not known here
			return true
		}
	}
	return false
}

// hiding returns the patterns of the rules that hide, by a text that identifies the rule.
func hiding(s *config.Settings) map[string][]string {
	rules := map[string][]string{}
	for _, r := range s.Rewrite {
		if r.Hide {
			rules[fmt.Sprintf("%q when %v", r.Tools, r.When)] = r.Tools
		}
	}
	return rules
}

// Watch starts to watch the files, if there are any. It reloads whenever one of them changes, and
// immediately if one has changed since the first settings were loaded.
func (r *Reloader) Watch() {
	if len(r.files()) == 0 {
		return
	}
	w, err := watch(r.files, r.state, func(state string) { r.reload(state, false) })
	if err != nil {
		r.log.Info("attache cannot watch the configuration for changes here; send SIGHUP to have it read again", "why", err)
		if fingerprint(r.files()) != r.state {
			r.Reload()
		}
		return
	}
	r.watching.Lock()
	defer r.watching.Unlock()
	if r.closed {
		w.close()
		return
	}
	r.watcher = w
}

// Close stops the watch, even if it is about to start.
func (r *Reloader) Close() {
	r.watching.Lock()
	defer r.watching.Unlock()
	if r.closed = true; r.watcher != nil {
		r.watcher.close()
	}
}

// warnSettings logs settings that are valid but probably a mistake.
func warnSettings(s *config.Settings, log *slog.Logger) {
	for _, w := range s.Warnings {
		log.Warn(w.String())
	}
}
