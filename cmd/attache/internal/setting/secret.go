package setting

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A Secret is a secret text, or the variable or file that holds one. At most one field is set.
type Secret struct {
	Text string
	Env  string // the name of a variable
	File string // an absolute path
}

// String returns where the secret is. It does not reveal the secret.
func (s Secret) String() string {
	switch {
	case s.Env != "":
		return "{env: " + s.Env + "}"
	case s.File != "":
		return "{file: " + s.File + "}"
	case s.Text != "":
		return "[hidden]"
	}
	return ""
}

// Value returns the secret. It reads the file each time, because the file may be replaced.
func (s Secret) Value(p cli.Process) (string, error) {
	switch {
	case s.Env != "":
		value := strings.TrimSpace(p.Getenv(s.Env))
		if value == "" {
			return "", fmt.Errorf("the variable %s is not set: set it, or remove what names it", s.Env)
		}
		return value, CheckSecret(value)
	case s.File != "":
		text, _, err := textfile.Read(s.File, textfile.Rules{Max: 64 << 10, Closed: 0o077})
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.File, cli.Unreadable(err))
		}
		value := strings.TrimSpace(string(textfile.TrimMark(text)))
		return value, CheckSecret(value)
	}
	return s.Text, nil
}

// CheckSecret returns an error if s is blank or not one line. The error does not contain s.
func CheckSecret(s string) error {
	if strings.ContainsFunc(s, func(c rune) bool { return c < 0x20 && c != '\t' || c == 0x7F }) {
		return errors.New("has a control character in it: write one line")
	}
	if strings.TrimSpace(s) == "" {
		return errors.New("is empty: write a value, or remove the key")
	}
	return nil
}

// secretValue reads a [Secret].
type secretValue struct {
	to    *Secret
	empty bool // "" is allowed
}

// SecretValue returns a value that is a text, {env: VARIABLE} or {file: FILE}.
func SecretValue(to *Secret) Value { return secretValue{to, false} }

// SecretOrNone is [SecretValue], but "" stands for none.
func SecretOrNone(to *Secret) Value { return secretValue{to, true} }

func (v secretValue) String() string { return v.to.String() }

func (v secretValue) Schema() map[string]any {
	name := map[string]any{"type": "string", "minLength": 1}
	from := func(key string) map[string]any {
		return map[string]any{"type": "object", "properties": map[string]any{key: name}, "required": []string{key}, "additionalProperties": false}
	}
	text := name
	if v.empty {
		text = map[string]any{"type": "string"}
	}
	return map[string]any{"anyOf": []any{text, from("env"), from("file")}}
}

func (v secretValue) Read(r *Reader, key string, n ast.Node) {
	*v.to = Secret{}
	if !textfile.IsMapping(n) {
		r.readScalar(key, Text(&v.to.Text, v.check), n)
		return
	}
	const forms = "write a text, {env: VARIABLE} or {file: FILE}"
	fields, ok := r.Fields(n, key)
	if !ok {
		return
	}
	if len(fields) != 1 {
		r.AddProblem(n, "%s: %s", key, forms)
		return
	}
	switch f := fields[0]; f.Name {
	case "env":
		r.readValue(key+".env", Text(&v.to.Env, NotBlank("is empty: name the variable"), TokenVariable), f)
	case "file":
		r.readValue(key+".file", Path(&v.to.File, NotBlank("is empty: name the file")), f)
	default:
		r.Problems.Add(f.At, "%s: unknown key %q: %s", key, f.Name, forms)
	}
}

func (v secretValue) check(s string) error {
	if s == "" && v.empty {
		return nil
	}
	return CheckSecret(s)
}

// TokenVariable returns an error if s is not the name of a variable, or is probably a token: the characters of API
// keys and of many other tokens are those of names. The error does not contain s.
func TokenVariable(s string) error {
	// Long names consist of words. Random characters have digits between letters.
	random := len(s) >= 30 && strings.ContainsFunc(s, unicode.IsLower) && slices.ContainsFunc(strings.Split(s, "_"), func(part string) bool {
		return len(part) >= 20 && twoNumbers.MatchString(part)
	})
	if random || VariableName(s) != nil {
		return errors.New("write the name of the variable that holds the token, not the token")
	}
	return nil
}

var twoNumbers = regexp.MustCompile("[0-9][A-Za-z]+[0-9]")

// VariableName returns an error if s is not the name of an environment variable. It accepts "".
func VariableName(s string) error {
	for i, c := range []byte(s) {
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("%q is not the name of a variable: write letters, digits and _, such as MY_TOKEN", s)
		}
	}
	return nil
}
