// Package headertext encodes and decodes texts of messages that requests repeat in headers,
// such as the name of a tool (revision 2026-07-28, basic/transports/streamable-http).
package headertext

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// A text that is not valid in a header is encoded as Base64 of its UTF-8 between these markers.
const begin, end = "=?base64?", "?="

// Encode returns the value of a header for a text.
func Encode(s string) string {
	plain := s != "" && s == strings.Trim(s, " \t") && !(strings.HasPrefix(s, begin) && strings.HasSuffix(s, end))
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' || c > 0x7E {
			plain = false
		}
	}
	if plain {
		return s
	}
	return begin + base64.StdEncoding.EncodeToString([]byte(s)) + end
}

// Decode returns the text of the value of a header. It reports false for a value between the
// markers that is not Base64 of UTF-8.
func Decode(value string) (text string, ok bool) {
	encoded, begins := strings.CutPrefix(value, begin)
	encoded, ends := strings.CutSuffix(encoded, end)
	if !begins || !ends {
		return value, true
	}
	b, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return string(b), err == nil && utf8.Valid(b)
}
