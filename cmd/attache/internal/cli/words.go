package cli

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// Elided returns s in one line of printable characters, and without its middle if
// it is very long, as when a whole file was taken for one word. The end says what
// to do.
func Elided(s string) string {
	const keep = 300
	s = Printable(s)
	if len(s) <= 3*keep {
		return s
	}
	return strings.ToValidUTF8(s[:keep], "") + " ... " + strings.ToValidUTF8(s[len(s)-keep:], "")
}

// Printable replaces characters that would move the cursor or split a line, other than keep.
func Printable(text string, keep ...rune) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) || slices.Contains(keep, c) {
			return c
		}
		return '\uFFFD'
	}, text)
}

// Nearest returns the one of words that word was probably meant to be, empty if none is
// near enough to say so.
func Nearest(word string, words []string) string {
	return textfile.Nearest(word, words, min(3, max(1, len(word)/4)))
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

// MaxShown is how much of a value is shown, in bytes.
const MaxShown = 200

// Plural returns n and what in the singular or plural: "1 file", "2 files".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
