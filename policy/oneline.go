package policy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// oneLine returns text from a file or a server as one line for the block. Any white space,
// line breaks included, becomes single spaces. Invisible characters are removed, because a
// reviewer must be able to read all that a model reads. Look-alikes of the frame are
// replaced.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	last := rune(0) // the character before: 0 at the start; a space is not yet written
	for i := 0; i < len(s); {
		if n := escapeLen(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch r = visible(r, last); {
		case r == 0, r == frameRune && last == frameRune, r == ' ' && last == 0:
			continue
		case r != ' ' && last == ' ':
			b.WriteByte(' ')
			fallthrough
		case r != ' ':
			b.WriteRune(r)
		}
		last = r
	}
	return defuse(b.String())
}

// Escape returns text with each invisible character that a block leaves out, or turns into
// a blank, written as <U+XXXX>, and the number of these characters. Line breaks and tabs
// stay. It shows a reviewer what a text hides.
func Escape(text string) (shown string, hidden int) {
	var b strings.Builder
	last := rune(0)
	for _, r := range text {
		v := visible(r, last)
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case v == 0, v == ' ' && r != ' ':
			fmt.Fprintf(&b, "<U+%04X>", r)
			hidden++
			continue // last stays, as in oneLine
		default:
			b.WriteRune(r)
		}
		last = v
	}
	return b.String(), hidden
}

// frameRune replaces every run of characters that a frame can be drawn with.
const frameRune = '–'

// visible returns what to write for r after the character last: r itself, a space,
// frameRune, or 0 for nothing.
func visible(r, last rune) rune {
	switch {
	case ' ' <= r && r <= '~': // nearly all there is
		return r
	case unicode.IsSpace(r), isBlank(r):
		return ' '
	case unicode.IsControl(r):
		return 0
	case r >= 0x2500 && r <= 0x257F, strings.ContainsRune("＝꞊᐀゠⹀〓≡≣⩶―⸺⸻", r):
		return frameRune
	case isJoiner(r), isSelector(r):
		if !takesModifier(last, r) {
			return 0
		}
	case unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		// Bidi overrides and isolates, zero-width characters, tag characters.
		return 0
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Noncharacter_Code_Point, r),
		unicode.Is(unicode.Co, r), r == 0x16FE4:
		return 0 // what a character for private use looks like depends on the font
	}
	return r
}

// isBlank reports whether r is a letter or symbol that is drawn as a blank.
func isBlank(r rune) bool {
	switch r {
	case 0x115F, 0x1160, 0x180E, 0x2800, 0x3164, 0xFFA0, 0x1D159:
		return true
	}
	return false
}

// isJoiner reports whether r is the zero-width joiner or non-joiner.
func isJoiner(r rune) bool { return r == 0x200C || r == 0x200D }

// isSelector reports whether r is a variation selector. A text can be hidden in them.
func isSelector(r rune) bool { return unicode.Is(unicode.Variation_Selector, r) }

// takesModifier reports whether the invisible character r may follow last. Emoji, Persian,
// Indic scripts and Mongolian need joiners or selectors, Latin text does not: there they
// would only hide something, such as a look-alike of the frame's words.
func takesModifier(last, r rune) bool {
	switch {
	case isJoiner(last):
		return false
	case unicode.Is(unicode.Mongolian, last):
		return isJoiner(r) || r < 0xFE00
	case isSelector(r):
		// Keycap emoji are a digit, a selector and a mark. One emoji is a letter.
		symbol := last >= utf8.RuneSelf && (unicode.IsSymbol(last) || unicode.IsPunct(last) || last == 'ℹ')
		return (r == 0xFE0E || r == 0xFE0F) && !isSelector(last) && (symbol || strings.ContainsRune("0123456789#*", last))
	}
	return last >= utf8.RuneSelf && !unicode.In(last, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han)
}

// escapeLen returns the length of the terminal escape that s begins with, 0 if it begins
// with none. An incomplete escape has length 0, so that it does not swallow the text after
// it; its control character is removed like any other.
func escapeLen(s string) int {
	const esc = 0x1B
	if len(s) < 2 {
		return 0
	}
	kind := s[1]
	switch {
	case s[0] == 0xC2 && kind >= 0x80 && kind <= 0x9F:
		kind -= 0x40 // the one-rune form of ESC and a character from @ to _
	case s[0] != esc:
		return 0
	}
	switch kind {
	case '[': // CSI
		return spanLen(s, 2, 0x20, 0x3F, 0x40, 0x7E)
	case ']', 'P', 'X', '^', '_': // OSC and the like: a string and its end
		return stringLen(s, 2)
	}
	if s[0] != esc {
		return 0
	}
	return spanLen(s, 1, 0x20, 0x2F, 0x30, 0x7E)
}

// spanLen returns the length of s up to and with a final byte between lowest and
// highest, when nothing but bytes between from and to stand between it and start;
// 0 otherwise.
func spanLen(s string, start int, from, to, lowest, highest byte) int {
	end := start
	for end < len(s) && s[end] >= from && s[end] <= to {
		end++
	}
	if end < len(s) && s[end] >= lowest && s[end] <= highest {
		return end + 1
	}
	return 0
}

// stringLen returns the length of s up to and with the end of a terminal's
// control string (BEL, or ST in either form), 0 if it has none after start. Any
// other control character ends the search, so that a text of many beginnings does not
// take quadratic time.
func stringLen(s string, start int) int {
	for end := start; end < len(s); end++ {
		rest := s[end:]
		switch {
		case rest[0] == 0x07:
			return end + 1
		case strings.HasPrefix(rest, "\x1b\\"), strings.HasPrefix(rest, "\u009c"):
			return end + 2
		case rest[0] < 0x20, rest[0] == 0xC2 && rest[1] <= 0x9F:
			return 0
		}
	}
	return 0
}

// defuse replaces the words in s by which the block names itself, so that no item can
// imitate the first line of the frame.
func defuse(s string) string {
	const words, instead = "(auto-injected)", "(quoted)"
	var b strings.Builder
	done := 0
	for i := 0; i+len(words) <= len(s); i++ {
		if s[i] == '(' && strings.EqualFold(s[i:i+len(words)], words) {
			b.WriteString(s[done:i])
			b.WriteString(instead)
			done = i + len(words)
		}
	}
	if done == 0 {
		return s
	}
	return b.String() + s[done:]
}
