package expression

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common"
)

// An Error is an error in an expression, with a remedy.
type Error struct {
	// Line and Column count from 1, columns in characters.
	Line, Column int
	Problem      string
	Remedy       string
}

// Error implements error.
func (e *Error) Error() string {
	at := fmt.Sprintf("column %d", e.Column)
	if e.Line > 1 {
		at = fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	}
	return at + ": " + e.Problem + ": " + e.Remedy
}

// mismatch returns the error for an expression of another type than want. Its place is the first character
// of src that is not a space: a block in YAML may begin with empty lines.
func mismatch(src, yields string, want Type) *Error {
	e := &Error{Line: 1, Column: 1, Problem: fmt.Sprintf("the expression yields %s, not %s", yields, want)}
	lead := src[:len(src)-len(strings.TrimLeft(src, " \t\r\n"))]
	e.Line += strings.Count(lead, "\n")
	e.Column += len(lead) - strings.LastIndexByte(lead, '\n') - 1
	e.Remedy = "write a string, number, list, map, true, false or null"
	if want == Bool {
		e.Remedy = `write a condition, such as session.trust == "direct" or "admin" in principal.roles`
	}
	return e
}

const aString = "a string"

// notPattern begins the error for an invalid pattern of matches.
const notPattern = "the pattern is not a regular expression: "

// compileError returns an Error for the first problem in the text that CEL reports. CEL counts lines from 1
// and columns from 0. A problem without a place is at line -1, column -1.
func compileError(src string, issues []*common.Error) *Error {
	first := slices.MinFunc(issues, func(a, b *common.Error) int {
		return cmp.Or(a.Location.Line()-b.Location.Line(), a.Location.Column()-b.Location.Column())
	})
	e := &Error{Line: max(1, first.Location.Line()), Column: max(1, first.Location.Column()+1), Problem: strings.TrimSpace(first.Message)}
	e.Problem = strings.ReplaceAll(e.Problem, " (in container '')", "")
	before, after := around(src, e.Line, e.Column)
	e.Remedy = remedy(e.Problem, before, after)
	return e
}

// around returns the parts of a line of src before column and from it on.
func around(src string, line, column int) (before, after string) {
	lines := strings.Split(src, "\n")
	if line > len(lines) {
		return src, ""
	}
	text := []rune(lines[line-1])
	at := min(len(text), column-1)
	return string(text[:at]), string(text[at:])
}

// remedy returns what to write instead. CEL's errors have no codes, so their texts tell the kind of the problem.
// before and after are the parts of the line before its place and from it on. The place differs by kind:
//
//	principal.tenat == "x"           before `principal`, after `.tenat == "x"`
//	arguments.resource-group == "x"  before `arguments.resource-`, after `group == "x"`
func remedy(problem, before, after string) string {
	switch {
	case strings.HasPrefix(problem, "undefined field"):
		object := before[strings.LastIndexFunc(before, endsPath)+1:]
		if fields := fieldNames(strings.Trim(object, ".")); fields != "" {
			return strings.Trim(object, ".") + " has " + fields
		}
		return vocabulary
	case strings.HasPrefix(problem, "undeclared reference"):
		return undeclared(before, after)
	case strings.Contains(problem, typePrefix):
		return compareField(problem)
	case strings.Contains(problem, "no matching overload"):
		return "both sides have to be of a type the operation knows; the types of arguments are not known, so convert them with string(...), int(...) or double(...)"
	case strings.HasPrefix(problem, notPattern), strings.HasPrefix(problem, "the pattern contains a backspace"):
		return `write it in the syntax of RE2, which has no look-around and no back references; in quotes, a backslash is written twice; after r it is not: r"\b"`
	case strings.HasPrefix(problem, "Syntax error") && strings.Contains(problem, `\`):
		return `in quotes, a backslash is written twice; after r it is not: r"\b"`
	case strings.HasPrefix(problem, "Syntax error"):
		return `write CEL: equal is ==, and is &&, or is ||, not is !; a text stands in quotes within those of YAML, as in '"acme"'`
	}
	return "see the package documentation of expressions, and https://cel.dev for the language"
}

// undeclared returns the remedy for an unknown name.
func undeclared(before, after string) string {
	if strings.HasPrefix(after, "(") {
		return "only the standard functions of CEL are known, such as contains, startsWith, endsWith, matches and size"
	}
	argument := before[strings.LastIndexByte(before, ' ')+1:]
	if start, ok := strings.CutSuffix(argument, "-"); ok && strings.Contains(start, "arguments.") {
		return `a name with a dash stands in brackets, as in arguments["resource-group"]`
	}
	return vocabulary
}

// endsPath reports whether r is not part of a path of names of this package, which have no digits.
func endsPath(r rune) bool { return r != '.' && r != '_' && (r >= 0x80 || !isLetter(byte(r))) }

// compareField returns the remedy for an object in place of a value, as in server == "x". CEL names the type in
// the problem: found no matching overload for '_==_' applied to '(attache.server, string)'.
func compareField(problem string) string {
	_, object, _ := strings.Cut(problem, typePrefix)
	if end := strings.IndexFunc(object, endsPath); end >= 0 {
		object = strings.TrimSuffix(object[:end], ".")
	}
	fields := fieldNames(object)
	if strings.HasSuffix(fields, "name") {
		return "compare " + object + ".name"
	}
	return "compare a field of it: " + object + " has " + fields
}

const vocabulary = "an expression reads session, principal, tool, arguments and server; a text stands in quotes"

// Errors of evaluation. They contain no values, so they may be logged.
var (
	// ErrMissing means that the expression reads a member or element that does not exist.
	ErrMissing = errors.New("a member is read that is not there; test for it with has()")
	// ErrType means that a value has a type that the expression cannot use.
	ErrType = errors.New("a value is not of the type the expression needs")
	// ErrUnknown means that a value is made of a fact that is not known in the session.
	ErrUnknown = errors.New("a fact that the value is made of is not known in this session")
	// ErrCost means that evaluation was stopped because it cost too much or took too long.
	ErrCost = errors.New("evaluation takes too long for these arguments")
	// ErrArguments means that the arguments or annotations are not an object, have too many
	// values, or have a number out of range.
	ErrArguments = errors.New("the JSON of the call cannot be read by an expression")
	// ErrUnidentified is returned by [Program.Identified].
	ErrUnidentified = errors.New("the caller's credential was refused or could not be looked up")
	// ErrEvaluation is any other error, such as a division by zero.
	ErrEvaluation = errors.New("the expression cannot be evaluated")
)

// evalError returns the error of this package for err, without the values in CEL's errors. Most errors of CEL
// are only texts, so their constant parts tell them apart.
func evalError(err error) error {
	for _, known := range []error{ErrArguments, ErrType, ErrMissing} {
		if errors.Is(err, known) {
			return known
		}
	}
	text := err.Error()
	for _, class := range []struct {
		in  string
		err error
	}{
		{ErrArguments.Error(), ErrArguments}, // CEL does not always wrap
		{"no such key", ErrMissing},
		{"no such field", ErrMissing},
		{"index out of bounds", ErrMissing},
		{"no such overload", ErrType},
		{"no matching overload", ErrType},
		{"unsupported type", ErrType},
		{"type conversion", ErrType},
		{"limit exceeded", ErrCost},
		{"interrupted", ErrCost},
	} {
		if strings.Contains(text, class.in) {
			return class.err
		}
	}
	return ErrEvaluation
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
