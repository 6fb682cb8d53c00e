package filesource

import (
	"maps"
	"slices"
	"strings"
)

// crossCheck finds problems between files that are valid on their own. The files are in lexical
// order, so the same directory always has the same problems.
func crossCheck(files []*file) []Problem {
	var problems []Problem
	scopes := make(map[string]*file)
	for _, f := range files {
		if first, twice := scopes[f.scope.Name]; twice {
			problems = append(problems, problemAt(f.path, f.scopeAt, "scope %s is also in %s, line %d: rename one or make them one file",
				quote(f.scope.Name), first.path, first.scopeAt.Position.Line))
			continue
		}
		scopes[f.scope.Name] = f
	}
	for _, f := range files {
		if parent := f.scope.Parent; parent != "" && scopes[parent] == nil {
			problems = append(problems, unknownParent(f, scopes))
		}
	}
	problems = append(problems, cycles(files, scopes)...)
	return append(problems, uselessDrops(files, scopes)...)
}

func unknownParent(f *file, scopes map[string]*file) Problem {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(scopes)), func(name string) bool { return name == f.scope.Name })
	hint := "add its file or correct the name"
	if near := nearest(f.scope.Parent, names); near != "" {
		hint = "add its file or write " + quote(near)
	}
	return problemAt(f.path, f.parentAt, "parent %s is not a scope here: %s", quote(f.scope.Parent), hint)
}

// cycles reports each cycle of parents once. It visits every scope once, even if chains share
// scopes.
func cycles(files []*file, scopes map[string]*file) []Problem {
	var problems []Problem
	visited := make(map[*file]bool)
	for _, at := range files {
		var path []*file
		for at != nil && !visited[at] {
			visited[at] = true
			path = append(path, at)
			at = scopes[at.scope.Parent]
		}
		// A file of an earlier walk leads to no cycle, or to one that was reported.
		if start := slices.Index(path, at); at != nil && start >= 0 {
			problems = append(problems, cycle(path[start:]))
		}
	}
	return problems
}

// cycle returns the problem for a cycle of parents, at the member whose path is first.
func cycle(members []*file) Problem {
	first := slices.MinFunc(members, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	start := slices.Index(members, first)
	var names []string
	for i := range len(members) + 1 {
		names = append(names, quote(members[(start+i)%len(members)].scope.Name))
	}
	const show = 10
	if len(names) > show {
		names = append(names[:show], "...")
	}
	return problemAt(first.path, first.parentAt, "the parents run in a circle (%s): take the parent out of one of them", strings.Join(names, ", "))
}

// uselessDrops warns of names to drop that no inherited policy has. They are harmless, but often
// a mistake.
func uselessDrops(files []*file, scopes map[string]*file) []Problem {
	var problems []Problem
	for _, f := range files {
		if len(f.scope.Drop) == 0 {
			continue
		}
		inherited := make(map[string]bool)
		visited := map[*file]bool{f: true}
		for at := scopes[f.scope.Parent]; at != nil && !visited[at]; at = scopes[at.scope.Parent] {
			visited[at] = true
			for _, p := range at.scope.Policies {
				inherited[p.Name] = true
			}
		}
		for j, name := range f.scope.Drop {
			if !inherited[name] {
				p := problemAt(f.path, f.dropAt[j], "no parent has a policy %s to drop: correct the name or take it out", quote(name))
				p.Warning = true
				problems = append(problems, p)
			}
		}
	}
	return problems
}
