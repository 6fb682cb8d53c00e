package filesource

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/policy"
)

// A Problem is a problem in a directory of policy files.
type Problem struct {
	// File is the path of the file, which begins with the directory.
	File string
	// Line and Column count from 1, columns in characters. They are 0 if the
	// problem is with the file as a whole.
	Line, Column int
	// Text says what is wrong and what to do.
	Text string
	// Warning means that the policies can still be used.
	Warning bool
}

// String returns the problem as "file:line:column: text", which editors and terminals convert
// to a link.
func (p Problem) String() string {
	text := p.Text
	if p.Warning {
		text = "warning: " + text
	}
	if p.Line == 0 {
		return p.File + ": " + text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, text)
}

func (p Problem) compare(other Problem) int {
	return cmp.Or(
		cmp.Compare(p.File, other.File),
		cmp.Compare(p.Line, other.Line),
		cmp.Compare(p.Column, other.Column),
		strings.Compare(p.Text, other.Text),
	)
}

// An InvalidError is returned if policy files are invalid. It wraps [policy.ErrInvalid].
type InvalidError struct {
	// Problems are all problems except warnings; there is at least one.
	Problems []Problem
}

// Error returns the first problem and the number of others.
func (e *InvalidError) Error() string {
	text := fmt.Sprintf("%v: %v", policy.ErrInvalid, e.Problems[0])
	if more := len(e.Problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more: see attache policy check)", more)
	}
	return text
}

// Unwrap returns [policy.ErrInvalid].
func (e *InvalidError) Unwrap() error { return policy.ErrInvalid }

// A dirError is returned if the directory as a whole cannot be read. It wraps
// [policy.ErrUnavailable] and the cause.
type dirError struct {
	dir, text string
	cause     error
}

func (e *dirError) Error() string {
	return fmt.Sprintf("%v: %s: %s", policy.ErrUnavailable, e.dir, e.text)
}

func (e *dirError) Unwrap() []error { return []error{policy.ErrUnavailable, e.cause} }
