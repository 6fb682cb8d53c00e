package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostFilePairs is how many pairs of files need each other: lower it when you have separated one.
const mostFilePairs = 121

// TestFilePairs checks that no more pairs of files need each other: a person who reads one of them has
// to read the other one too. A file needs another one if it uses a function, variable, constant or
// type of it. A file of methods does not need the file of their type for that.
func TestFilePairs(t *testing.T) {
	var pairs []string
	for _, p := range packages(t) {
		needs := fileNeeds(t, p.Dir, p.GoFiles)
		for file, others := range needs {
			for other := range others {
				if file < other && needs[other][file] {
					pairs = append(pairs, strings.TrimPrefix(p.ImportPath, module+"/")+": "+file+" and "+other)
				}
			}
		}
	}
	if len(pairs) > mostFilePairs {
		slices.Sort(pairs)
		t.Errorf("%d pairs of files need each other, more than %d: move what one of them needs\n%s", len(pairs), mostFilePairs, strings.Join(pairs, "\n"))
	} else if len(pairs) < mostFilePairs {
		t.Logf("%d pairs of files need each other: lower mostFilePairs", len(pairs))
	}
}

// fileNeeds returns, for each file of a package, the files that it needs.
func fileNeeds(t *testing.T, dir string, files []string) map[string]map[string]bool {
	t.Helper()
	home := map[string]string{} // the file of each name
	parsed := map[string]*ast.File{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed[name] = f
		for declared := range f.Scope.Objects {
			home[declared] = name
		}
	}
	needs := map[string]map[string]bool{}
	for name, f := range parsed {
		needs[name] = map[string]bool{}
		own := receivers(f)
		for _, used := range f.Unresolved { // the names that the file does not declare
			if other := home[used.Name]; other != "" && !own[used.Name] {
				needs[name][other] = true
			}
		}
	}
	return needs
}

// receivers returns the types that have methods in a file.
func receivers(f *ast.File) map[string]bool {
	types := map[string]bool{}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
			ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					types[id.Name] = true
				}
				return true
			})
		}
	}
	return types
}
