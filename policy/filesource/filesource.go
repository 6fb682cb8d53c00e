// Package filesource reads policies from a directory of YAML files, one scope per file:
//
//	scope: acme/platform
//	parent: acme
//	policies:
//	  - {name: security-review, position: append, text: "Flag any credential handling for review."}
//	drop: [legacy-style]
//	objectives:
//	  - Reduce deployment time to under 5 minutes
//
// It reads every *.yaml and *.yml file below the directory, except names that begin with
// a dot, and does not follow links to directories. The content of a file names the scope; the
// name and folder of the file have no meaning.
//
// Reading is strict, because a missing policy that nobody notices is worse than an error: an
// unknown key, a duplicate scope, an unknown parent, or anything but plain text in place of text
// is a [Problem] with its file, line and column. One problem makes the whole directory unusable.
// YAML's anchors, aliases, tags and merge keys are refused, so that the text of a policy is
// always in its place.
//
// If a directory that was valid has problems, a Source made with [Keeping] returns the last
// valid policies.
//
// The package does not watch the directory, and writes nothing.
package filesource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/attache-mcp/attache/policy"
)

// A Source reads policies from a directory of files. It checks the files in each call, so an
// edit takes effect with the next session.
type Source struct {
	dir    string
	report func(error) // nil without Keeping

	mu       sync.Mutex
	last     map[string]policy.Scope // nil without Keeping
	read     state                   // of the directory when last was read
	reported string                  // the problems that report was called with
	repeat   bool                    // report problems even if they are the same
}

var _ policy.Source = (*Source)(nil)

// New returns a Source that reads dir. The first call of Effective reads it for the first time.
func New(dir string) *Source { return &Source{dir: dir} }

// Keeping is like New, for programs that run while people edit the files. If the directory was valid
// and now has problems or cannot be read, the source returns the last valid policies. It calls report
// once for each set of problems, and with nil when the directory is valid again. It reads files again
// only if one was replaced, or its size or time has changed.
func Keeping(dir string, report func(error)) *Source { return &Source{dir: dir, report: report} }

// Effective implements [policy.Source]. A directory that cannot be read is
// [policy.ErrUnavailable]; problems in it are an [*InvalidError].
func (s *Source) Effective(ctx context.Context, q policy.Query) (policy.Effective, error) {
	scopes, err := s.scopes(ctx)
	if err != nil {
		return policy.Effective{}, err
	}
	effective, err := policy.Resolve(scopes, q.Scope)
	if err != nil {
		return policy.Effective{}, fmt.Errorf("%s: %w", s.dir, err)
	}
	return effective, nil
}

// Dir returns the directory.
func (s *Source) Dir() string { return s.dir }

// Refresh reads the directory immediately, so that problems are reported before the next
// session. If repeat is set, problems are reported again. The error is that of Effective.
func (s *Source) Refresh(ctx context.Context, repeat bool) error {
	s.mu.Lock()
	s.repeat = s.repeat || repeat
	s.mu.Unlock()
	_, err := s.scopes(ctx)
	return err
}

func (s *Source) scopes(ctx context.Context) (map[string]policy.Scope, error) {
	if s.report == nil {
		return load(ctx, s.dir)
	}
	s.mu.Lock() // also during the read, so that last is never overwritten with an older state
	defer s.mu.Unlock()
	scopes, now, err := s.readChanged(ctx)
	switch {
	case err == nil:
		if s.reported != "" {
			s.report(nil)
		}
		s.last, s.read, s.reported, s.repeat = scopes, now, "", false
	case s.last != nil && ctx.Err() == nil: // a caller that gave up says nothing about the directory
		if s.reported != err.Error() || s.repeat {
			s.reported, s.repeat = err.Error(), false
			s.report(err)
		}
		return s.last, nil
	}
	return scopes, err
}

// readChanged reads the files if they have changed since s.last was read, and else returns s.last.
func (s *Source) readChanged(ctx context.Context) (map[string]policy.Scope, state, error) {
	paths, problems, err := findFiles(ctx, s.dir)
	if err != nil {
		return nil, state{}, err
	}
	now := stateOf(paths) // before the files are read, so that a change meanwhile is found next time
	if s.last != nil && len(problems) == 0 && now.same(s.read) {
		return s.last, now, nil
	}
	scopes, err := loadFiles(ctx, s.dir, paths, problems)
	return scopes, now, err
}

// Load returns all scopes below dir by name. Its errors are those of [Source.Effective]. A
// directory without policy files has no scopes.
func Load(dir string) (map[string]policy.Scope, error) {
	return load(context.Background(), dir)
}

func load(ctx context.Context, dir string) (map[string]policy.Scope, error) {
	paths, problems, err := findFiles(ctx, dir)
	if err != nil {
		return nil, err
	}
	return loadFiles(ctx, dir, paths, problems)
}

// loadFiles reads the scopes of the files at paths in dir. problems are from finding the files.
func loadFiles(ctx context.Context, dir string, paths []string, problems []Problem) (map[string]policy.Scope, error) {
	files, problems, err := readFiles(ctx, dir, paths, problems)
	if err != nil {
		return nil, err
	}
	problems = slices.DeleteFunc(problems, func(p Problem) bool { return p.Warning })
	if len(problems) > 0 {
		return nil, &InvalidError{Problems: problems}
	}
	scopes := make(map[string]policy.Scope, len(files))
	for _, f := range files {
		scopes[f.scope.Name] = f.scope
	}
	return scopes, nil
}

// Check reads every policy file below dir and returns all problems, including warnings, in the
// order of files and lines. A directory that cannot be read is also a problem.
func Check(dir string) []Problem {
	paths, problems, err := findFiles(context.Background(), dir)
	var files []*file
	if err == nil {
		files, problems, err = readFiles(context.Background(), dir, paths, problems)
	}
	switch {
	case err != nil:
		text := err.Error()
		if down, ok := errors.AsType[*dirError](err); ok {
			text = down.text
		}
		return []Problem{{File: dir, Text: text}}
	case len(files) == 0 && len(problems) == 0:
		return []Problem{{File: dir, Text: "there is no policy file (*.yaml) here: write one", Warning: true}}
	}
	return problems
}
