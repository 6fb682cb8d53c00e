package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilePairs checks that no two files need each other: a person who reads one of them would have
// to read the other one too. A file needs another one if it uses a function, variable, constant or
// type of it. A file of methods does not need the file of their type for that.
func TestFilePairs(t *testing.T) {
	for _, p := range packages(t) {
		needs := fileNeeds(t, p.Dir, p.GoFiles)
		for _, file := range p.GoFiles {
			for other := range needs[file] {
				if file < other && needs[other][file] {
					t.Errorf("%s: %s and %s need each other: move what one of them needs", strings.TrimPrefix(p.ImportPath, module+"/"), file, other)
				}
			}
		}
	}
}

// fileNeeds returns, for each file of a package, the files that it needs.
func fileNeeds(t *testing.T, dir string, files []string) map[string]map[string]bool {
	t.Helper()
	home := map[string]string{} // the file of each name
	parsed := map[string]*ast.File{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		check(t, err)
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
