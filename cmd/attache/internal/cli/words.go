package cli

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// Elided returns s on one line and with printable characters only. If s is very long, for example because
// it quotes a whole file, it omits the middle. It keeps the end, where messages say what to do.
func Elided(s string) string {
	const part = 300
	s = Printable(s)
	if len(s) <= 3*part {
		return s
	}
	return strings.ToValidUTF8(s[:part], "") + " ... " + strings.ToValidUTF8(s[len(s)-part:], "")
}

// Cut returns text or, if it is longer than limit bytes, its beginning and an ellipsis.
func Cut[T string | []byte](text T, limit int) string {
	if len(text) > limit {
		return strings.ToValidUTF8(string(text[:limit]), "") + "…"
	}
	return string(text)
}

// Printable replaces characters that are not printable, except for those in keep.
func Printable(text string, keep ...rune) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) || slices.Contains(keep, c) {
			return c
		}
		return '\uFFFD'
	}, text)
}

// Nearest returns the element of words that is most similar to word, or "" if none is similar enough for a
// suggestion.
func Nearest(word string, words []string) string {
	return textfile.Nearest(word, words, min(3, max(1, len(word)/4)))
}

// Quoted lists words in the form: "a", "b" or "c".
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

// MaxShown is the maximum length of a value in a message, in bytes.
const MaxShown = 200

// Plural returns n and a noun in the singular or plural: "1 file", "2 files".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
