package record

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bytes shown on each side of the place where two lines begin to differ.
const (
	diffBefore = 48
	diffAfter  = 72
)

// Diff says, for a person, where two lines begin to differ; "" if they are
// equal. The text has three lines: what was wanted, what came, and a mark below
// the first byte that differs.
func Diff(want, got []byte) string {
	at := common(want, got)
	if at == len(want) && at == len(got) {
		return ""
	}
	w, column := window(want, at)
	g, _ := window(got, at)
	return fmt.Sprintf("  want %s\n  got  %s\n       %s^ byte %d of %d and %d",
		w, g, strings.Repeat(" ", column), at, len(want), len(got))
}

// common returns the length of the longest common beginning, which is never
// inside a UTF-8 sequence of both.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for back := n; back > 0 && n-back < utf8.UTFMax && n < len(a) && !utf8.RuneStart(a[n]); back-- {
		if utf8.RuneStart(a[back-1]) {
			return back - 1
		}
	}
	return n
}

// window returns the bytes around offset at, printable, and how many characters
// stand before it.
func window(b []byte, at int) (text string, column int) {
	from, to := max(0, at-diffBefore), min(len(b), at+diffAfter)
	for from > 0 && !utf8.RuneStart(b[from]) {
		from--
	}
	for to < len(b) && !utf8.RuneStart(b[to]) {
		to++
	}
	before, after := Printable(b[from:at]), Printable(b[at:to])
	if from > 0 {
		before = "…" + before
	}
	if to < len(b) {
		after += "…"
	}
	return before + after, utf8.RuneCountInString(before)
}

// Printable shows line ends, control bytes and bytes that are not UTF-8 as Go
// escapes, and leaves quotes and backslashes as they are: JSON is full of them.
func Printable(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, b[0])
		case strconv.IsPrint(r):
			out.WriteRune(r)
		default:
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		b = b[n:]
	}
	return out.String()
}
