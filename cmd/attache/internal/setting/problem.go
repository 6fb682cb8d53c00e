package setting

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// An Origin is where a value came from. The zero Origin is attache's default.
type Origin struct {
	// Name is a flag ("--trust") or a variable ("ATTACHE_TRUST"); empty for a file.
	Name string
	// File, Line and Column are a place in the configuration file.
	File         string
	Line, Column int
}

// Default reports whether nobody set the value.
func (o Origin) Default() bool { return o == Origin{} }

// String returns the origin in words a person can look up.
func (o Origin) String() string {
	switch {
	case o.Name != "":
		return o.Name
	case o.File != "":
		return o.File + ":" + strconv.Itoa(o.Line)
	}
	return "default"
}

// A Problem is one mistake in the configuration: where it is, what is wrong and what to
// do about it.
type Problem struct {
	// At is the place. Its zero value is no place in particular.
	At   Origin
	Text string
}

// String returns the problem in the form that editors make a link of,
// "file:line:column: text".
func (p Problem) String() string {
	switch {
	case p.At.Name != "":
		return p.At.Name + ": " + p.Text
	case p.At.Line > 0:
		return p.At.File + ":" + strconv.Itoa(p.At.Line) + ":" + strconv.Itoa(p.At.Column) + ": " + p.Text
	case p.At.File != "":
		return p.At.File + ": " + p.Text
	}
	return p.Text
}

// Problems are all mistakes that were found. They are an error whose exit status is 2.
type Problems []Problem

// Error returns one problem a line.
func (p Problems) Error() string {
	lines := make([]string, 0, len(p))
	for _, one := range p {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n")
}

// Add appends a problem.
func (p *Problems) Add(at Origin, format string, args ...any) {
	*p = append(*p, Problem{at, cli.Elided(fmt.Sprintf(format, args...))})
}

// Concern reports whether one of the problems is about the value of key.
func (p Problems) Concern(key string) bool {
	return slices.ContainsFunc(p, func(one Problem) bool { return strings.HasPrefix(one.Text, key+": ") })
}

// Err returns the problems as an error, nil if there are none. Those of a file
// come in the order of its lines.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	return p
}
