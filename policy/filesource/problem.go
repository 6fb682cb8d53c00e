package filesource

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/policy"
)

// A Problem is one thing that is wrong in a directory of policy files.
type Problem struct {
	// File is the path of the file, below the directory as it was given.
	File string
	// Line and Column count from 1, columns in characters. They are 0 when the
	// problem is with the file as a whole.
	Line, Column int
	// Text says what is wrong and what to do.
	Text string
	// Warning says that the policies can be used all the same.
	Warning bool
}

// String returns the problem in the form that editors and terminals turn into a
// link: "file:line:column: text".
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

// An InvalidError says that policy files were read and cannot be used. It is
// [policy.ErrInvalid] to errors.Is.
type InvalidError struct {
	// Problems are all that were found, without warnings; at least one.
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

// A dirError says that the directory as a whole cannot be read. It is
// [policy.ErrUnavailable] to errors.Is, and whatever the system said.
type dirError struct {
	dir, text string
	cause     error
}

func (e *dirError) Error() string {
	return fmt.Sprintf("%v: %s: %s", policy.ErrUnavailable, e.dir, e.text)
}

func (e *dirError) Unwrap() []error { return []error{policy.ErrUnavailable, e.cause} }
