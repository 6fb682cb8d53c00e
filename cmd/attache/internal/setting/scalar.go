package setting

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate/expression"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// scalar is a [Scalar] made of functions.
type scalar struct {
	set    func(s, base string) error
	text   func() string
	schema map[string]any
	// kind describes the YAML nodes for which accepts returns true. A nil accepts stands for
	// text nodes.
	kind    string
	accepts func(ast.Node) bool
}

func (v scalar) Set(s, base string) error { return v.set(s, base) }
func (v scalar) String() string           { return v.text() }
func (v scalar) Schema() map[string]any   { return maps.Clone(v.schema) }

func (v scalar) Written(n ast.Node) (want string, ok bool) {
	if v.accepts == nil {
		return writtenText(n)
	}
	return v.kind, v.accepts(n)
}

// Text returns a value that is one line of text. All checks must accept it.
func Text(to *string, checks ...func(string) error) Scalar {
	return scalar{
		set: func(s, _ string) error {
			if strings.ContainsAny(s, "\x00\r\n") {
				return errors.New("has a line break or a NUL in it: write one line")
			}
			for _, check := range checks {
				if err := check(s); err != nil {
					return err
				}
			}
			*to = s
			return nil
		},
		text: func() string { return *to }, schema: map[string]any{"type": "string"},
	}
}

// NotEmpty returns an error if s is empty.
func NotEmpty(s string) error {
	if s == "" {
		return errors.New("is empty: write a name")
	}
	return nil
}

// NotBlank returns a check that returns an error with this text if a value is blank.
func NotBlank(text string) func(string) error {
	return func(s string) error {
		if strings.TrimSpace(s) == "" {
			return errors.New(text)
		}
		return nil
	}
}

// Path returns a value that is the path of a file or directory. The checks see the path as it was
// written; it is stored as an absolute path.
func Path(to *string, checks ...func(string) error) Scalar {
	return scalar{
		set: func(s, base string) error {
			for _, check := range checks {
				if err := check(s); err != nil {
					return err
				}
			}
			path, err := Absolute(s, base)
			if err == nil {
				*to = path
			}
			return err
		},
		text: func() string { return *to }, schema: map[string]any{"type": "string"},
	}
}

// Absolute returns s as an absolute path. A relative s is relative to base, or to the working
// directory if base is empty. An empty s stays empty.
func Absolute(s, base string) (string, error) {
	switch {
	case strings.ContainsFunc(s, unicode.IsControl): // "C:\temp" in double quotes has a tab
		return "", errors.New("has a control character in it: write a path without it, and a path of Windows in single quotes")
	case s == "" || filepath.IsAbs(s):
		return s, nil
	case s == "~" || strings.HasPrefix(s, "~/") || strings.HasPrefix(s, `~\`):
		return "", fmt.Errorf("%q: ~ is not expanded here: write the home directory out", s)
	case strings.Contains(s, "${"), strings.HasPrefix(s, "$"), strings.HasPrefix(s, "%"): // %NAME% on Windows
		return "", fmt.Errorf("%q was not expanded by whoever started attache: write the path out", s)
	case base == "":
		return filepath.Abs(s)
	}
	return filepath.Join(base, s), nil
}

// Choice returns a value that is one of words.
func Choice(to *string, words ...string) Scalar {
	return scalar{
		set: func(s, _ string) (err error) {
			word, err := OneOf(s, words)
			if err == nil {
				*to = word
			}
			return err
		},
		text: func() string { return *to }, schema: map[string]any{"type": "string", "enum": words},
	}
}

// OneOf returns s, or an error if s is not one of words.
func OneOf(s string, words []string) (word string, err error) {
	if slices.Contains(words, s) {
		return s, nil
	}
	if near := cli.Nearest(s, words); near != "" {
		return "", fmt.Errorf("unknown word %q: did you mean %q? write %s", s, near, cli.Quoted(words))
	}
	return "", fmt.Errorf("unknown word %q: write %s", s, cli.Quoted(words))
}

// Bool returns a value that is true or false.
func Bool(to *bool) Scalar {
	return boolean(func(b bool) { *to = b }, func() string { return strconv.FormatBool(*to) })
}

// OptionalBool returns a value that is true or false, and nil while it is not set.
func OptionalBool(to **bool) Scalar {
	return boolean(func(b bool) { *to = &b }, func() string {
		if *to == nil {
			return ""
		}
		return strconv.FormatBool(**to)
	})
}

func boolean(set func(bool), text func() string) Scalar {
	return scalar{
		set: func(s, _ string) error {
			switch s {
			case "true", "1":
				set(true)
			case "false", "0":
				set(false)
			default:
				return fmt.Errorf("%q is neither true nor false: write one of the two", s)
			}
			return nil
		},
		text: text, schema: map[string]any{"type": "boolean"},
		kind: "true or false", accepts: func(n ast.Node) bool { return n.Type() == ast.BoolType },
	}
}

// Count returns a value that is a whole number between least and most.
func Count(to *int, least, most int) Scalar {
	return scalar{
		set: func(s, _ string) error {
			n, err := strconv.Atoi(s)
			if err != nil {
				return fmt.Errorf("%q is not a whole number: write one from %d to %d", s, least, most)
			}
			if n < least || n > most {
				return fmt.Errorf("%d is out of range: write a number from %d to %d", n, least, most)
			}
			*to = n
			return nil
		},
		text: func() string { return strconv.Itoa(*to) }, schema: map[string]any{"type": "integer", "minimum": least, "maximum": most},
		kind: "a whole number", accepts: isNumber,
	}
}

func isNumber(n ast.Node) bool { return n.Type() == ast.IntegerType }

func isTextOrNumber(n ast.Node) bool { return textfile.IsText(n) || isNumber(n) }

// Expression returns a value that is a CEL expression of type want. It is compiled when it is read,
// so that mistakes are reported before anything runs.
func Expression(to **expression.Program, want expression.Type) Scalar {
	return scalar{
		set: func(s, _ string) error {
			p, err := expression.Compile(s, want)
			if err == nil {
				*to = p
			}
			return err
		},
		text: func() string {
			if *to == nil {
				return ""
			}
			return (*to).String()
		},
		schema: map[string]any{"type": "string", "minLength": 1, "description": "an expression that yields " + want.String()},
	}
}
