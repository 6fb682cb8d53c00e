package config

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/include"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/policy/httpsource"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// workspacePath reads the path of a workspace. The workspace may be on another machine, so only a
// relative path is changed.
type workspacePath struct {
	setting.Scalar
	to *string
}

func (v workspacePath) Set(s, base string) error {
	if strings.Contains(s, "://") {
		return setting.Text(v.to).Set(s, base)
	}
	if strings.ContainsAny(s, "\x00\r\n") {
		return errors.New("has a line break or a NUL in it: write one path")
	}
	if err := v.Scalar.Set(s, base); err != nil {
		return err
	}
	if !utf8.ValidString(*v.to) {
		return errors.New("is not UTF-8, so no message can contain it: rename the directory, or use a link to it")
	}
	return nil
}

// address reads the URL of an HTTP endpoint.
type address struct {
	setting.Scalar
	to *string
}

// policyURL returns a value that is the URL of a policy source, or empty.
func policyURL(to *string) setting.Scalar {
	return address{setting.Text(to, func(s string) error {
		if s == "" {
			return nil
		}
		if _, err := httpsource.New(httpsource.Options{URL: s}); err != nil {
			return errors.New(strings.TrimPrefix(err.Error(), "policy.url "))
		}
		return nil
	}), to}
}

func (v address) Shown() string { return ShownAddress(*v.to) }

func (v address) Schema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^(https?://.*)?$"}
}

// ShownAddress returns an address without its query, which may contain a token.
func ShownAddress(url string) string {
	return include.Source{URL: url}.Shown()
}

// variables returns a value that is a map of environment variables.
func variables(to *map[string]string) setting.Value {
	return setting.ByName[string]{
		To: to, Check: CheckVariable, Pattern: "^[A-Za-z_][A-Za-z0-9_]*$",
		Value: func(s *string) setting.Value { return variable{s} },
	}
}

// CheckVariable returns an error if s is not the name of a variable.
func CheckVariable(s string) error { return cmp.Or(setting.NotEmpty(s), setting.VariableName(s)) }

// variable reads the value of an environment variable. Line breaks are allowed, and numbers and
// booleans are stored as they are written. It is often a secret, so it is not shown.
type variable struct{ to *string }

func (v variable) Set(s, _ string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("has a NUL in it: no variable can hold one")
	}
	*v.to = s
	return nil
}

func (v variable) Written(n ast.Node) (string, bool) {
	plain := []ast.NodeType{ast.IntegerType, ast.FloatType, ast.BoolType}
	return `a text, such as ""`, textfile.IsText(n) || slices.Contains(plain, n.Type())
}

func (v variable) EmptyAdvice() string { return `write a text, such as ""` }
func (v variable) String() string      { return "[hidden]" }
func (v variable) Schema() map[string]any {
	return map[string]any{"type": []string{"string", "number", "boolean"}}
}

// TrustLevels returns the levels of trust.
func TrustLevels() []string { return []string{sessionstate.Direct, sessionstate.Sandboxed} }

// isPort reports whether text is a port number, from 0 (any free port) to 65535.
func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}
