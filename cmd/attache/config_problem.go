package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
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
		return p.At.File + ":" + itoa(p.At.Line) + ":" + itoa(p.At.Column) + ": " + p.Text
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

// add appends a problem.
func (p *Problems) add(at Origin, format string, args ...any) {
	*p = append(*p, Problem{at, elided(fmt.Sprintf(format, args...))})
}

// name reports whether one of the problems is with the value of key.
func (p Problems) name(key string) bool {
	return slices.ContainsFunc(p, func(one Problem) bool { return strings.HasPrefix(one.Text, key+": ") })
}

// elided returns s in one line of printable characters, and without its middle if
// it is very long, as when a whole file was taken for one word. The end says what
// to do.
func elided(s string) string {
	const keep = 300
	s = strings.Map(printable, s)
	if len(s) <= 3*keep {
		return s
	}
	return strings.ToValidUTF8(s[:keep], "") + " ... " + strings.ToValidUTF8(s[len(s)-keep:], "")
}

// printable keeps what a file holds from moving the cursor or splitting a line.
func printable(c rune) rune {
	if unicode.IsPrint(c) {
		return c
	}
	return '\uFFFD'
}

// err returns the problems as an error, nil if there are none. Those of a file
// come in the order of its lines.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	return p
}

func itoa(n int) string { return strconv.Itoa(n) }

// nearest returns the word that given was probably meant to be, empty if none is
// near enough to say so.
func nearest(given string, words []string) string {
	best, limit := "", min(3, max(1, len(given)/4))
	for _, w := range words {
		if d := distance(strings.ToLower(given), strings.ToLower(w)); d <= limit {
			best, limit = w, d-1
		}
	}
	return best
}

// distance returns how many characters have to be inserted, removed, replaced or
// swapped with their neighbour to make b of a.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			replace := row[j]
			if a[i] != b[j] {
				replace++
			}
			next[j+1] = min(replace, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// quoted lists words as people write them: "a", "b" or "c".
func quoted(words []string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(w))
	}
	return b.String()
}
