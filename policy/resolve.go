package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Resolve returns the policies and objectives that apply to the scope called name: its own
// and those of its parents. The keys of the map are the names of scopes.
//
// If name is not in the map, the error is [ErrUnknownScope]. It is [ErrInvalid] if the chain has
// a cycle, a parent that is not in the map, two policies with the same name in a scope, or a
// policy without a name, without a text or with an unknown position. Resolve does not check
// scopes outside the chain.
func Resolve(scopes map[string]Scope, name string) (Effective, error) {
	chain, err := chainOf(scopes, name)
	if err != nil {
		return Effective{}, err
	}
	// Innermost first: the first scope that has or drops a policy of a name decides about that
	// name. Within a scope names are unique, see check.
	decided := make(map[string]bool)
	var prepends, appends [][]Policy
	for i, s := range chain {
		var before, after []Policy
		for _, p := range s.Policies {
			if decided[p.Name] {
				continue
			}
			p.Inherited = i > 0
			if p.Position == Prepend {
				before = append(before, p)
			} else {
				after = append(after, p)
			}
			decided[p.Name] = true
		}
		prepends, appends = append(prepends, before), append(appends, after)
		for _, dropped := range s.Drop {
			decided[dropped] = true
		}
	}
	slices.Reverse(prepends)
	return Effective{
		Policies:   slices.Concat(append(prepends, appends...)...),
		Objectives: objectivesOf(chain),
	}, nil
}

// objectivesOf returns the objectives of a chain, outermost first.
func objectivesOf(chain []Scope) []string {
	var all []string
	seen := make(map[string]bool)
	for _, s := range slices.Backward(chain) {
		for _, o := range s.Objectives {
			if key := strings.TrimSpace(o); key != "" && !seen[key] {
				seen[key] = true
				all = append(all, o)
			}
		}
	}
	return all
}

// chainOf returns the scope called name and its parents, innermost first.
func chainOf(scopes map[string]Scope, name string) ([]Scope, error) {
	var chain []Scope
	var names []string
	for next := name; next != "" || len(chain) == 0; next = chain[len(chain)-1].Parent {
		if slices.Contains(names, next) {
			return nil, fmt.Errorf("%w: scope %q is its own ancestor (%s): take the parent out of one of them",
				ErrInvalid, next, strings.Join(append(names, next), " < "))
		}
		s, ok := scopes[next]
		if !ok && len(chain) == 0 {
			return nil, unknownScope(scopes, name)
		}
		if !ok {
			return nil, fmt.Errorf("%w: scope %q has the parent %q, which does not exist: add it or correct the name",
				ErrInvalid, names[len(names)-1], next)
		}
		if err := s.check(next); err != nil {
			return nil, err
		}
		chain, names = append(chain, s), append(names, next)
	}
	return chain, nil
}

// check returns an error if a policy of the scope called name is invalid.
func (s Scope) check(name string) error {
	seen := make(map[string]bool)
	for i, p := range s.Policies {
		fault := ""
		switch {
		case strings.TrimSpace(p.Name) == "":
			fault = "has no name: give it one"
		case strings.TrimSpace(p.Text) == "":
			fault = "has no text: write one or take the policy out"
		case !p.Position.Valid():
			fault = fmt.Sprintf("has the position %q: make it prepend or append", string(p.Position))
		case seen[p.Name]:
			fault = "appears twice: rename one or take it out"
		}
		if fault != "" {
			return fmt.Errorf("%w: policy %d (%q) of scope %q %s", ErrInvalid, i+1, p.Name, name, fault)
		}
		seen[p.Name] = true
	}
	return nil
}

// unknownScope returns the error for a scope that does not exist. It lists some existing scopes,
// because most such errors are misspelt names.
func unknownScope(scopes map[string]Scope, name string) error {
	const show = 8
	known := slices.Sorted(maps.Keys(scopes))
	hint := "there are none: write one"
	if len(known) > 0 {
		hint = "the scopes are " + strings.Join(known[:min(show, len(known))], ", ")
		if len(known) > show {
			hint += fmt.Sprintf(" and %d more", len(known)-show)
		}
		hint += ": choose one of them"
	}
	if name == "" {
		return fmt.Errorf("%w: no scope was named; %s", ErrUnknownScope, hint)
	}
	return fmt.Errorf("%w: %q; %s", ErrUnknownScope, name, hint)
}
