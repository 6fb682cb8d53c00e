// Package jsonstring reads and writes the strings of JSON, and compares names as the
// most lenient readers in the field do.
package jsonstring

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Is reports whether the quoted JSON string raw stands for s. It is called for nearly every name of
// an object that is searched, so the cheap tests come first.
func Is(raw []byte, s string) bool {
	in := raw[1 : len(raw)-1]
	switch {
	case len(in) < len(s):
		return false // an escape is longer than what it stands for
	case len(in) > 6*len(s):
		return false // and at most six times as long
	case len(in) > 0 && in[0] != s[0] && in[0] != '\\':
		return false // most of what it is compared with
	case len(in) == len(s):
		return string(in) == s && bytes.IndexByte(in, '\\') < 0 // with an escape it stands for something shorter
	case bytes.IndexByte(in, '\\') < 0:
		return false
	}
	return string(AppendUnescaped(make([]byte, 0, 128), in)) == s // on the stack, unless it is long
}

// Unquote returns what the quoted JSON string raw stands for. The result shares no memory with raw.
func Unquote(raw []byte) string {
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	return string(AppendUnescaped(make([]byte, 0, len(in)), in))
}

// AppendUnescaped appends the text of in, the inside of a JSON string, to dst. Where in is not JSON, as
// in a server's frame that was not scanned as a whole, a wrong escape stands for its second byte or for
// U+FFFD. So does a lone surrogate, which JSON allows and UTF-8 does not have.
func AppendUnescaped(dst, in []byte) []byte {
	for i := 0; i < len(in); {
		c := in[i]
		if c != '\\' || i+1 == len(in) { // a backslash at the end stands for itself
			dst = append(dst, c)
			i++
			continue
		}
		i += 2
		switch c = in[i-1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, n := UnescapeRune(in[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// UnescapeRune reads the four hex digits behind \u, and a second escape if the
// two make a surrogate pair. n is how many bytes were read.
func UnescapeRune(in []byte) (r rune, n int) {
	r, ok := Hex4(in)
	if !ok {
		return utf8.RuneError, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	// Without its second half, a surrogate alone is replaced, and what follows is read for itself.
	if len(in) >= 10 && in[4] == '\\' && in[5] == 'u' {
		if low, ok := Hex4(in[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 10
			}
		}
	}
	return utf8.RuneError, 4
}

// Hex4 returns the number that the four hex digits at the beginning of in stand for.
func Hex4(in []byte) (rune, bool) {
	if len(in) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range in[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// AppendQuoted implements wire.AppendQuote. encoding/json would also escape <, >, & and U+2028, so a text
// would be hard to read in a recording.
func AppendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	clear := plainText(s)
	dst = append(dst, s[:clear]...)
	for _, r := range s[clear:] { // yields U+FFFD for each byte that is not UTF-8
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// plainText returns how many bytes at the beginning of s are ASCII that stands in a
// JSON string as it is.
func plainText(s string) int {
	i := 0
	for i < len(s) && s[i] >= 0x20 && s[i] < 0x80 && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}
