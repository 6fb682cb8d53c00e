package record

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The number of bytes shown before and after the first difference of two lines.
const (
	diffBefore = 48
	diffAfter  = 72
)

// Diff describes the first difference of two lines, and returns "" if they are equal.
// The text has three lines: the part of want, the part of got, and a mark below the
// first byte that differs.
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

// common returns the length of the longest common prefix that does not end within a
// UTF-8 sequence.
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

// window returns the bytes around offset at, printable, and the number of characters
// before it.
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

// Printable returns b with line ends, control bytes and bytes that are not UTF-8 as Go
// escapes. It does not escape quotes and backslashes, of which JSON has many.
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
