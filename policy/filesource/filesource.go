// Package filesource reads policies from a directory of YAML files, one scope a
// file:
//
//	scope: acme/platform
//	parent: acme
//	policies:
//	  - {name: security-review, position: append, text: "Flag any credential handling for review."}
//	drop: [legacy-style]
//	objectives:
//	  - Reduce deployment time to under 5 minutes
//
// It reads every *.yaml and *.yml file below the directory, but not names that begin with
// a dot, and it does not follow links to directories. The file's content names the scope;
// the file's own name and folder have no meaning.
//
// Reading is strict, because a missing policy that nobody notices is worse than an error:
// an unknown key, a scope that exists twice, an unknown parent, or anything but plain text
// where text is expected is a [Problem] with its file, line and column. One problem makes
// the whole directory unusable. YAML's anchors, aliases, tags and merge keys are not
// accepted, so that a policy can be read in its place.
//
// A Source made with [Keeping] returns the policies that it read last while a directory
// that was valid has problems.
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

// A Source answers from a directory of policy files. It looks at them for each question,
// so an edit takes effect with the next session.
type Source struct {
	dir     string
	invalid func(error) // nil without Keeping

	mu       sync.Mutex
	last     map[string]policy.Scope // nil without Keeping
	read     state                   // of the directory when last was read
	reported string                  // the problems that invalid was called with
}

var _ policy.Source = (*Source)(nil)

// New returns a Source that reads dir, for the first time with the first call of
// Effective.
func New(dir string) *Source { return &Source{dir: dir} }

// Keeping is New for a program that runs while people edit. When a directory that was read
// before has problems, the source returns the policies of before and calls invalid, once
// for each set of problems. A directory that was removed is an error. Files whose size and
// time are unchanged are not read again.
func Keeping(dir string, invalid func(error)) *Source { return &Source{dir: dir, invalid: invalid} }

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

// Dir returns the directory that is read.
func (s *Source) Dir() string { return s.dir }

// Refresh reads the directory now, so that a caller who knows of a change learns of
// problems before a session does. The error is that of Effective.
func (s *Source) Refresh(ctx context.Context) error {
	_, err := s.scopes(ctx)
	return err
}

func (s *Source) scopes(ctx context.Context) (map[string]policy.Scope, error) {
	if s.invalid == nil {
		return load(ctx, s.dir)
	}
	s.mu.Lock() // also while it is read, so that last is the latest
	defer s.mu.Unlock()
	paths, problems, err := findFiles(ctx, s.dir)
	if err != nil {
		return nil, err
	}
	now := stateOf(paths)
	if s.last != nil && len(problems) == 0 && now.same(s.read) {
		return s.last, nil
	}
	scopes, err := loadFiles(ctx, s.dir, paths, problems)
	var problem *InvalidError
	switch {
	case err == nil:
		s.last, s.read, s.reported = scopes, now, ""
	case errors.As(err, &problem) && s.last != nil:
		if s.reported != err.Error() {
			s.reported = err.Error()
			s.invalid(err)
		}
		return s.last, nil
	}
	return scopes, err
}

// Load reads every scope below dir, by name. Its errors are those of
// [Source.Effective]. A directory without policy files has no scopes.
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

// loadFiles reads the scopes of the files that were found, with problems, in dir.
func loadFiles(ctx context.Context, dir string, paths []string, problems []Problem) (map[string]policy.Scope, error) {
	files, more, err := readFiles(ctx, dir, paths)
	if err != nil {
		return nil, err
	}
	problems = slices.Concat(problems, more, crossCheck(files))
	problems = slices.DeleteFunc(problems, func(p Problem) bool { return p.Warning })
	if len(problems) > 0 {
		slices.SortFunc(problems, Problem.compare)
		return nil, &InvalidError{Problems: problems}
	}
	scopes := make(map[string]policy.Scope, len(files))
	for _, f := range files {
		scopes[f.scope.Name] = f.scope
	}
	return scopes, nil
}

// Check reads every policy file below dir and returns all that is wrong with
// them, warnings included, in the order of files and lines. A directory that
// cannot be read is a problem of its own.
func Check(dir string) []Problem {
	paths, problems, err := findFiles(context.Background(), dir)
	var files []file
	if err == nil {
		var more []Problem
		files, more, err = readFiles(context.Background(), dir, paths)
		problems = append(problems, more...)
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
	problems = append(problems, crossCheck(files)...)
	slices.SortFunc(problems, Problem.compare)
	return problems
}
