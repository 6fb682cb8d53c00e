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

// Each statement of the program names the tenant whose rows it is about. Those for all
// tenants are listed here, and run in a scope that says so.
func TestStatementsNameTheTenant(t *testing.T) {
	forAll := map[string]int{
		"keystore.go": 5, // whose a key is, is known when it is found; attache key, for the operator
		"sweep.go":    4, // what is over is forgotten whosever it is
		"list.go":     1, // attache agents, for the operator
		"run.go":      1, // its callers say which messages
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
		if err != nil {
			t.Fatal(err)
		}
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
				return false // no rows of a tenant
			}
			if seen++; !named.MatchString(text) {
				without[filepath.Base(file)]++
				if without[filepath.Base(file)] > forAll[filepath.Base(file)] {
					t.Errorf("%s: a statement does not name the tenant: %.200s", file, text)
				}
			}
			return false
		})
	}
	if seen < 40 {
		t.Errorf("only %d statements were found", seen)
	}
}

// text returns the constant parts of an expression that is a text, and whether it is one.
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
