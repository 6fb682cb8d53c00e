package audit

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of arguments that are recorded in clear: jq 1.6 reads 256 levels.
const maxDepth = 128

// portable reports whether jq and other common programs can read raw, which must be valid JSON. Some
// stop at half a surrogate pair, others at deep nesting, and then read none of the records that follow.
func portable(raw []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\':
			n := escape(raw[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}

// escape returns the length of the escape at the beginning of in, or 0 if it is a lone surrogate.
func escape(in []byte) int {
	first, ok := unit(in)
	switch {
	case !ok:
		return 2
	case !utf16.IsSurrogate(first):
		return 6
	}
	second, ok := unit(in[6:])
	if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
		return 0
	}
	return 12
}

// unit returns the UTF-16 code unit that the escape at the beginning of in, such as \ud83d, stands for.
func unit(in []byte) (rune, bool) {
	if len(in) < 6 || in[0] != '\\' || in[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(in[2:6]), 16, 16)
	return rune(n), err == nil
}
