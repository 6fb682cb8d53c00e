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
// Every *.yaml and *.yml file below the directory is read; names that begin with a
// dot are passed over, and links to directories are not followed. The scope is
// what the file says, its name and folder mean nothing.
//
// Reading is strict, for a policy that is silently not there is worse than one
// that is loudly wrong: an unknown key, a scope that is there twice, a parent that
// is not, anything that is not plain text where text is expected is a [Problem]
// with its file, line and column. One problem anywhere makes the directory
// unusable. YAML's anchors, aliases, tags and merge keys are not accepted: a policy
// is to be read where it stands.
//
// A Source made with [Keeping] answers from what it read last while a directory
// that was well has problems.
//
// What the package does not do: it does not watch the directory, and it writes
// nothing.
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
	dir  string
	kept func(error)

	mu   sync.Mutex
	last map[string]policy.Scope // nil without Keeping
	read state                   // of the directory when last was read
	told string
}

var _ policy.Source = (*Source)(nil)

// New returns a Source that reads dir. The directory is not looked at before the
// first question.
func New(dir string) *Source { return &Source{dir: dir} }

// Keeping is New for a program that runs while people edit: when a directory that
// was read before has problems, the source goes on with what it had, and tells
// kept, once for each set of problems. A directory that is gone is not kept. Files whose
// size and time are the same as before are not read again.
func Keeping(dir string, kept func(error)) *Source { return &Source{dir: dir, kept: kept} }

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

// Refresh reads the directory now, for who knows that it has changed and wants to
// hear of problems before a session does. The error is that of Effective.
func (s *Source) Refresh(ctx context.Context) error {
	_, err := s.scopes(ctx)
	return err
}

func (s *Source) scopes(ctx context.Context) (map[string]policy.Scope, error) {
	if s.kept == nil {
		return load(ctx, s.dir)
	}
	s.mu.Lock() // while it is read, too: the last that was read is to be the latest
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
	var invalid *InvalidError
	switch {
	case err == nil:
		s.last, s.read, s.told = scopes, now, ""
	case errors.As(err, &invalid) && s.last != nil:
		if s.told != err.Error() {
			s.told = err.Error()
			s.kept(err)
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
		var down *dirError
		text := err.Error()
		if errors.As(err, &down) {
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
