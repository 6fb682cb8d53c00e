package config

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/policy/httpsource"
)

// A value is one of the Settings, as flags, variables and files set it. It is a
// [scalar] or a [structure].
type value interface {
	// String returns the value as the configuration file writes it, or what may
	// be shown of it.
	String() string
	// schema returns the JSON Schema of the value in the configuration file.
	schema() map[string]any
}

// A scalar is a value written as one word.
type scalar interface {
	value
	// set reads text. A relative path is relative to base.
	set(text, base string) error
}

// A structure is a value with parts. It reads itself from the syntax tree.
type structure interface {
	value
	// read reads n, which people know as key.
	read(r *reader, key string, n ast.Node)
}

// A text is a string that check accepts; nil accepts all.
type text struct {
	to    *string
	check func(string) error
}

func (v text) set(s, _ string) error {
	if strings.ContainsAny(s, "\x00\r\n") {
		return errors.New("has a line break or a NUL in it: write one line")
	}
	if v.check != nil {
		if err := v.check(s); err != nil {
			return err
		}
	}
	*v.to = s
	return nil
}

func (v text) String() string         { return *v.to }
func (v text) schema() map[string]any { return map[string]any{"type": "string"} }

// A file is a path of a file or directory. It is kept absolute.
type file struct{ to *string }

func (v file) set(s, base string) error {
	path, err := absolute(s, base)
	if err == nil {
		*v.to = path
	}
	return err
}

func (v file) String() string         { return *v.to }
func (v file) schema() map[string]any { return map[string]any{"type": "string"} }

// absolute returns s as an absolute path. The empty string stays empty.
func absolute(s, base string) (string, error) {
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

// A place is the path of a workspace. It may be on another machine, so what is
// not a relative path is kept as it is.
type place struct{ to *string }

func (v place) set(s, base string) error {
	if strings.Contains(s, "://") {
		return text{to: v.to}.set(s, base)
	}
	if strings.ContainsAny(s, "\x00\r\n") {
		return errors.New("has a line break or a NUL in it: write one path")
	}
	return file(v).set(s, base)
}

func (v place) String() string         { return *v.to }
func (v place) schema() map[string]any { return map[string]any{"type": "string"} }

// A choice is one of a few words.
type choice struct {
	to    *string
	words []string
}

func (v choice) set(s, _ string) error {
	for _, w := range v.words {
		if s == w {
			*v.to = s
			return nil
		}
	}
	if near := cli.Nearest(s, v.words); near != "" {
		return fmt.Errorf("unknown word %q: did you mean %q? there are %s", s, near, cli.Quoted(v.words))
	}
	return fmt.Errorf("unknown word %q: write %s", s, cli.Quoted(v.words))
}

func (v choice) String() string { return *v.to }
func (v choice) schema() map[string]any {
	return map[string]any{"type": "string", "enum": v.words}
}

// A boolean is true or false.
type boolean struct{ to *bool }

func (v boolean) set(s, _ string) error {
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
func (v boolean) schema() map[string]any { return map[string]any{"type": "boolean"} }

// A duration is a span of time of at least min.
type duration struct {
	to  *time.Duration
	min time.Duration
}

func (v duration) set(s, _ string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it with a unit, such as 500ms, 2s or 12h", s)
	}
	if d < v.min {
		return fmt.Errorf("%q is too short: give at least %s", s, v.min)
	}
	*v.to = d
	return nil
}

func (v duration) String() string {
	s := v.to.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (v duration) schema() map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "description": "a duration with its unit, such as 500ms, 2s or 12h"}
}

// A count is a whole number from min to max.
type count struct {
	to       *int
	min, max int
}

func (v count) set(s, _ string) error {
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
func (v count) schema() map[string]any {
	return map[string]any{"type": "integer", "minimum": v.min, "maximum": v.max}
}

// A size is a number of bytes from min to max.
type size struct {
	to       *int64
	min, max int64
}

// sizeUnits are tried in this order, so that "8MiB" is not taken for "8Mi" bytes.
func sizeUnits() []struct {
	name  string
	bytes int64
} {
	return []struct {
		name  string
		bytes int64
	}{
		{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}, {"", 1},
	}
}

func (v size) set(s, _ string) error {
	for _, unit := range sizeUnits() {
		digits, ok := strings.CutSuffix(s, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit.bytes {
			break
		}
		if n *= unit.bytes; n < v.min || n > v.max {
			return fmt.Errorf("%q is out of range: write a size from %s to %s", s, sizeText(v.min), sizeText(v.max))
		}
		*v.to = n
		return nil
	}
	return fmt.Errorf("%q is not a size: write whole bytes or a unit, such as 8388608, 512KiB or 8MiB", s)
}

// sizeText returns n in the largest unit that divides it.
func sizeText(n int64) string {
	for _, unit := range sizeUnits()[:3] {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func (v size) String() string { return sizeText(*v.to) }
func (v size) schema() map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "description": "a size in bytes, or with a unit, such as 512KiB or 8MiB"}
}

// An address is the URL of an HTTP endpoint.
type address struct{ to *string }

func (v address) set(s, _ string) error {
	if s == "" {
		*v.to = ""
		return nil
	}
	if _, err := httpsource.New(httpsource.Options{URL: s}); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "policy.url "))
	}
	*v.to = s
	return nil
}

func (v address) String() string { return *v.to }

// shown leaves out the query, in which some endpoints take a token.
func (v address) shown() string {
	if head, _, ok := strings.Cut(*v.to, "?"); ok {
		return head + "?[hidden]"
	}
	return *v.to
}

func (v address) schema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^(https?://.*)?$"}
}

// source is --policy: a directory or a URL, whichever it looks like. The other is
// taken back, as the flag stands above the file.
type source struct{ policy *PolicySettings }

func (v source) set(s, base string) error {
	if strings.Contains(s, "://") {
		if err := (address{&v.policy.URL}).set(s, base); err != nil {
			return err
		}
		v.policy.Dir = ""
		return nil
	}
	if err := (file{&v.policy.Dir}).set(s, base); err != nil {
		return err
	}
	v.policy.URL = ""
	return nil
}

// key returns the key of the file that the value stands above.
func (v source) key() string {
	if v.policy.URL != "" {
		return "policy.url"
	}
	return "policy.dir"
}

func (v source) String() string         { return v.policy.Dir + v.policy.URL }
func (v source) schema() map[string]any { return nil }

// CheckVariableName accepts the name of an environment variable.
func CheckVariableName(s string) error {
	for i, c := range []byte(s) {
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("%q is no name of a variable: write letters, digits and _, such as MY_TOKEN", s)
		}
	}
	return nil
}

// OneOf returns the one of words that a person means by given.
func OneOf(given string, words []string) (meant string, err error) {
	err = choice{&meant, words}.set(given, "")
	return meant, err
}

// ShownAddress returns an address without the secrets that may be in it.
func ShownAddress(url string) string { return address{&url}.shown() }
