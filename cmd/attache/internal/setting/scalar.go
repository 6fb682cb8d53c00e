package setting

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// textScalar is a string that all checks accept.
type textScalar struct {
	to     *string
	checks []func(string) error
}

// Text returns a value of one line that all checks accept.
func Text(to *string, checks ...func(string) error) Scalar { return textScalar{to, checks} }

func (v textScalar) Set(s, _ string) error {
	if strings.ContainsAny(s, "\x00\r\n") {
		return errors.New("has a line break or a NUL in it: write one line")
	}
	for _, check := range v.checks {
		if err := check(s); err != nil {
			return err
		}
	}
	*v.to = s
	return nil
}

func (v textScalar) String() string         { return *v.to }
func (v textScalar) Schema() map[string]any { return map[string]any{"type": "string"} }

// NotEmpty returns an error if s is empty.
func NotEmpty(s string) error {
	if s == "" {
		return errors.New("is empty: write a name")
	}
	return nil
}

// pathScalar is the path of a file or directory.
type pathScalar struct{ to *string }

// Path returns a value that is the path of a file or directory. It is kept absolute.
func Path(to *string) Scalar { return pathScalar{to} }

func (v pathScalar) Set(s, base string) error {
	path, err := Absolute(s, base)
	if err == nil {
		*v.to = path
	}
	return err
}

func (v pathScalar) String() string         { return *v.to }
func (v pathScalar) Schema() map[string]any { return map[string]any{"type": "string"} }

// Absolute returns the path s, which is relative to base, as an absolute path. Without
// a base it is relative to the working directory. The empty string stays empty.
func Absolute(s, base string) (string, error) {
	switch {
	case s == "" || filepath.IsAbs(s):
		return s, nil
	case strings.ContainsRune(s, 0):
		return "", errors.New("has a NUL in it: write a path")
	case s == "~" || strings.HasPrefix(s, "~/"):
		return "", fmt.Errorf("%q: ~ is not expanded here: write the home directory out", s)
	case strings.Contains(s, "${"):
		return "", fmt.Errorf("%q was not expanded by whoever started attache: write the path out", s)
	case base == "":
		return filepath.Abs(s)
	}
	return filepath.Join(base, s), nil
}

// choice is one of a few words.
type choice struct {
	to    *string
	words []string
}

// Choice returns a value that is one of words.
func Choice(to *string, words ...string) Scalar { return choice{to, words} }

func (v choice) Set(s, _ string) error {
	if slices.Contains(v.words, s) {
		*v.to = s
		return nil
	}
	if near := cli.Nearest(s, v.words); near != "" {
		return fmt.Errorf("unknown word %q: did you mean %q? there are %s", s, near, cli.Quoted(v.words))
	}
	return fmt.Errorf("unknown word %q: write %s", s, cli.Quoted(v.words))
}

func (v choice) String() string         { return *v.to }
func (v choice) Schema() map[string]any { return map[string]any{"type": "string", "enum": v.words} }

// OneOf returns the one of words that s is.
func OneOf(s string, words []string) (word string, err error) {
	err = choice{&word, words}.Set(s, "")
	return word, err
}

// boolean is true or false.
type boolean struct{ to *bool }

// Bool returns a value that is true or false.
func Bool(to *bool) Scalar { return boolean{to} }

func (v boolean) Set(s, _ string) error {
	switch s {
	case "true", "1":
		*v.to = true
	case "false", "0":
		*v.to = false
	default:
		return fmt.Errorf("%q is neither true nor false: write one of the two", s)
	}
	return nil
}

func (v boolean) String() string         { return strconv.FormatBool(*v.to) }
func (v boolean) Schema() map[string]any { return map[string]any{"type": "boolean"} }

func (v boolean) Written(n ast.Node) (string, bool) {
	return "true or false", n.Type() == ast.BoolType
}

// optionalBool is true, false or not set.
type optionalBool struct {
	boolean // for its syntax
	to      **bool
}

// OptionalBool returns a value that is true, false, or nil if it is not set.
func OptionalBool(to **bool) Scalar { return optionalBool{to: to} }

func (v optionalBool) Set(s, base string) error {
	var b bool
	err := boolean{&b}.Set(s, base)
	if err == nil {
		*v.to = &b
	}
	return err
}

func (v optionalBool) String() string {
	if *v.to == nil {
		return ""
	}
	return boolean{*v.to}.String()
}

// count is a whole number from min to max.
type count struct {
	to       *int
	min, max int
}

// Count returns a value that is a whole number from least to most.
func Count(to *int, least, most int) Scalar { return count{to, least, most} }

func (v count) Set(s, _ string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is not a whole number: write one from %d to %d", s, v.min, v.max)
	}
	if n < v.min || n > v.max {
		return fmt.Errorf("%d is out of range: write a number from %d to %d", n, v.min, v.max)
	}
	*v.to = n
	return nil
}

func (v count) String() string { return strconv.Itoa(*v.to) }

func (v count) Schema() map[string]any {
	return map[string]any{"type": "integer", "minimum": v.min, "maximum": v.max}
}

func (v count) Written(n ast.Node) (string, bool) {
	return "a whole number", n.Type() == ast.IntegerType
}
