package setting

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// An Origin is where a value came from. The zero Origin is that of a default.
type Origin struct {
	// Name is a flag ("--trust") or a variable ("ATTACHE_TRUST"); empty for a file.
	Name string
	// File, Line and Column are a position in the configuration file.
	File         string
	Line, Column int
}

// Default reports whether the value is the default.
func (o Origin) Default() bool { return o == Origin{} }

// String returns the origin for people, such as "--trust" or "config.yaml:3".
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
	At   Origin // the zero value if the mistake has no place
	Text string
}

// String returns the problem as "file:line:column: text", which editors turn into a link.
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

// Problems are the mistakes that were found. As an error they have the exit status 2.
type Problems []Problem

// Error returns one line for each problem.
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

// AddError appends err, an error about the value of key, unless it is nil.
func (p *Problems) AddError(at Origin, key string, err error) {
	if err != nil {
		p.Add(at, "%s: %v", key, err)
	}
}

// Concern reports whether any of the problems is about the value of key.
func (p Problems) Concern(key string) bool {
	return slices.ContainsFunc(p, func(one Problem) bool { return strings.HasPrefix(one.Text, key+": ") })
}

// Err sorts the problems by file and line and returns them as an error, nil if there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	return p
}
