package teams_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every statement has a condition for the tenant. The exceptions, which run with AllTenants, are
// counted here.
func TestStatementsNameTheTenant(t *testing.T) {
	forAll := map[string]int{
		"keystore.go": 5, // look-ups of keys, and attache key for the operator
		"sweep.go":    4, // a sweep covers all tenants
		"list.go":     1, // attache agents, for the operator
		"run.go":      1, // its callers add the condition
	}
	statement := regexp.MustCompile(`^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH RECURSIVE)\s`)
	named := regexp.MustCompile(`tenant = \?\d|\(tenant, `)
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	seen, without := 0, map[string]int{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		check(t, err)
		constants := map[string]ast.Expr{}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
				constants[v.Names[0].Name] = v.Values[0]
			}
			return true
		})
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, isText := text(e, constants)
			if !isText || !statement.MatchString(text) {
				return !isText
			}
			if strings.Contains(text, "attache_schema") || text == "SELECT 1" || strings.Contains(text, "pg_") || strings.Contains(text, "set_config") || strings.Contains(text, "current_setting") {
				return false // a table without tenants
			}
			if seen++; !named.MatchString(text) {
				without[filepath.Base(file)]++
				if without[filepath.Base(file)] > forAll[filepath.Base(file)] {
					t.Errorf("%s: a statement has no condition for the tenant: %.200s", file, text)
				}
			}
			return false
		})
	}
	if seen < 40 {
		t.Errorf("only %d statements were found", seen)
	}
}

// text returns the constant parts of a string expression, and whether e is one.
func text(e ast.Expr, constants map[string]ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.Ident:
		if value, ok := constants[e.Name]; ok {
			return text(value, constants)
		}
	case *ast.BinaryExpr:
		left, isLeft := text(e.X, constants)
		right, isRight := text(e.Y, constants)
		return left + right, e.Op == token.ADD && (isLeft || isRight)
	}
	return "", false
}
