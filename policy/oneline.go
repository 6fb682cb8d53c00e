package policy

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// oneLine returns text from a file or a server as one line for the block. It replaces white
// space, including line breaks, with single spaces. It removes invisible characters, because a
// reviewer must see everything that a model reads, and replaces look-alikes of the frame.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.ContainsFunc(s, beginsEscape) {
		s = escapes().ReplaceAllString(s, "")
	}
	var b strings.Builder
	last := rune(0) // the previous character, 0 at the start; if it is a space, it is not written yet
	for _, r := range s {
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

// Escape shows a reviewer the invisible characters in text: it replaces each character that a
// block omits, or replaces with a space, with <U+XXXX>, and returns the number of these
// characters. It keeps line breaks and tabs.
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
			continue // keep last, as in oneLine
		default:
			b.WriteRune(r)
		}
		last = v
	}
	return b.String(), hidden
}

// frameRune replaces every run of characters that look like parts of a frame.
const frameRune = '–'

// blanks are letters and symbols that look like spaces.
const blanks = "\u115F\u1160\u180E\u2800\u3164\uFFA0\U0001D159"

// visible returns the character to write for r after the character last: r itself, a space,
// frameRune, or 0 for nothing.
func visible(r, last rune) rune {
	switch {
	case ' ' <= r && r <= '~': // nearly all characters
		return r
	case unicode.IsSpace(r), strings.ContainsRune(blanks, r):
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
		return 0 // the look of a private-use character depends on the font
	}
	return r
}

// isJoiner reports whether r is the zero-width joiner or non-joiner.
func isJoiner(r rune) bool { return r == 0x200C || r == 0x200D }

// isSelector reports whether r is a variation selector. Selectors can hide text.
func isSelector(r rune) bool { return unicode.Is(unicode.Variation_Selector, r) }

// takesModifier reports whether the invisible character r may follow last. Emoji, Persian,
// Indic scripts and Mongolian need joiners or selectors. Latin text does not need them: there
// they could only hide something, such as a look-alike of the frame's words.
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

// escapes matches terminal escapes (ECMA-48): control sequences, control strings up to their end
// (BEL, or ST in either form), and other sequences. It does not match incomplete escapes, which
// would include the text after them; their control character is removed like any other.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:\x1b\[|\x{9b})[ -?]*[@-~]` +
		`|(?:\x1b[]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}])[^\x00-\x1f\x{80}-\x{9f}]*(?:\x07|\x1b\\|\x{9c})` +
		`|\x1b(?:[ -/]+[0-~]|[0-OQ-WYZ\\\x60-~])`)
})

// beginsEscape reports whether an escape may begin with r, which is then ESC or the one-rune form
// of ESC and a character from @ to _.
func beginsEscape(r rune) bool { return r == 0x1B || r >= 0x80 && r <= 0x9F }

// frameWords matches the words that mark the first line of the frame. İ and ı are Turkish letters that a reader
// may take for i.
var frameWords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\(auto-[iİı]njected\)`) })

// defuse replaces frameWords in s, so that no item can imitate the first line of the frame.
func defuse(s string) string {
	if !strings.Contains(s, "(") {
		return s
	}
	return frameWords().ReplaceAllString(s, "(quoted)")
}
