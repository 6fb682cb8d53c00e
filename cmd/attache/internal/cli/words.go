package cli

import (
	"strconv"
	"strings"
	"unicode"
)

// PrintableOrTab keeps tabs too, by which files are indented.
func PrintableOrTab(c rune) rune {
	if c == '\t' {
		return c
	}
	return Printable(c)
}

// Elided returns s in one line of printable characters, and without its middle if
// it is very long, as when a whole file was taken for one word. The end says what
// to do.
func Elided(s string) string {
	const keep = 300
	s = strings.Map(Printable, s)
	if len(s) <= 3*keep {
		return s
	}
	return strings.ToValidUTF8(s[:keep], "") + " ... " + strings.ToValidUTF8(s[len(s)-keep:], "")
}

// Printable keeps what a file holds from moving the cursor or splitting a line.
func Printable(c rune) rune {
	if unicode.IsPrint(c) {
		return c
	}
	return '\uFFFD'
}

func Itoa(n int) string { return strconv.Itoa(n) }

// Nearest returns the word that given was probably meant to be, empty if none is
// near enough to say so.
func Nearest(given string, words []string) string {
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

// Quoted lists words as people write them: "a", "b" or "c".
func Quoted(words []string) string {
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

// MaxShown is how much of a value is told, in bytes.
const MaxShown = 200

func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Itoa(n) + " " + what + "s"
}
