package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// A Problem is one mistake in the configuration: where it is, and what is wrong
// and to be done.
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

// Problems are all mistakes found, in the order of their places. They are an
// error whose exit status is 2.
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

// name reports whether one of the problems is with the value of key.
func (p Problems) name(key string) bool {
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
