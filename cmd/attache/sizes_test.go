package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The limits for lines of code, without tests.
const (
	mostLinesOfPackage  = 3000
	mostLinesOfMain     = 2500
	mostLinesOfFile     = 400
	mostLinesOfFunction = 60
)

// TestSizes checks that a person can read a package in a day, a file at once and a
// function on one screen.
func TestSizes(t *testing.T) {
	for _, p := range packages(t) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go")) // those of other systems too
		check(t, err)
		name, total := strings.TrimPrefix(p.ImportPath, module+"/"), 0
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				total += checkFileSize(t, file)
			}
		}
		most := mostLinesOfPackage
		if name == "cmd/attache" {
			most = mostLinesOfMain
		}
		if total > most {
			t.Errorf("%s has %d lines, more than %d: move a part that stands alone to a package of its own", name, total, most)
		}
	}
}

// checkFileSize checks a file and its functions, and returns its number of lines.
func checkFileSize(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	lines := bytes.Count(text, []byte("\n"))
	if lines > mostLinesOfFile {
		t.Errorf("%s has %d lines, more than %d: split it", path, lines, mostLinesOfFile)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	check(t, err)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		from, to := fset.Position(fn.Pos()), fset.Position(fn.End())
		if n := to.Line - from.Line + 1; n > mostLinesOfFunction {
			t.Errorf("%s: %s has %d lines, more than %d: split it", from, fn.Name.Name, n, mostLinesOfFunction)
		}
	}
	return lines
}
