package filesource

import (
	"slices"
	"strings"
)

// crossCheck finds what is wrong between files that are each right in themselves.
// The files are in lexical order, so the same directory always gives the same
// problems.
func crossCheck(files []file) []Problem {
	var problems []Problem
	scopes := make(map[string]*file)
	for i := range files {
		f := &files[i]
		if first, twice := scopes[f.scope.Name]; twice {
			problems = append(problems, problemAt(f.path, f.scopeAt, "scope %s is also in %s, line %d: rename one or make them one file",
				quote(f.scope.Name), first.path, first.scopeAt.Position.Line))
			continue
		}
		scopes[f.scope.Name] = f
	}
	for i := range files {
		f := &files[i]
		if parent := f.scope.Parent; parent != "" && scopes[parent] == nil {
			problems = append(problems, unknownParent(f, scopes))
		}
	}
	problems = append(problems, cycles(files, scopes)...)
	return append(problems, uselessDrops(files, scopes)...)
}

func unknownParent(f *file, scopes map[string]*file) Problem {
	var names []string
	for name := range scopes {
		if name != f.scope.Name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	hint := "add its file or correct the name"
	if near := nearest(f.scope.Parent, names); near != "" {
		hint = "add its file or write " + quote(near)
	}
	return problemAt(f.path, f.parentAt, "parent %s is no scope here: %s", quote(f.scope.Parent), hint)
}

// cycles reports each circle of parents once, at its member that comes first.
// Every scope is passed once, however the chains run together.
func cycles(files []file, scopes map[string]*file) []Problem {
	var problems []Problem
	passed := make(map[*file]bool)
	for i := range files {
		var path []*file
		at := &files[i]
		for at != nil && !passed[at] {
			passed[at] = true
			path = append(path, at)
			at = scopes[at.scope.Parent]
		}
		if start := slices.Index(path, at); at != nil && start >= 0 {
			problems = append(problems, cycle(path[start:]))
		}
	}
	return problems
}

// cycle is the problem of a circle of parents.
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

// uselessDrops warns of names to drop that nothing inherited has. They do no
// harm, but are often a slip.
func uselessDrops(files []file, scopes map[string]*file) []Problem {
	var problems []Problem
	for i := range files {
		f := &files[i]
		if len(f.scope.Drop) == 0 {
			continue
		}
		inherited := make(map[string]bool)
		passed := map[*file]bool{f: true}
		for at := scopes[f.scope.Parent]; at != nil && !passed[at]; at = scopes[at.scope.Parent] {
			passed[at] = true
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
