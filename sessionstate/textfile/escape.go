package textfile

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// textWithEscapes matches a text in double quotes, up to the closing quote or to the first \x, \u or \U that lacks digits,
// which is the group. The lexer reads any characters as these digits, and its token does not keep them.
var textWithEscapes = regexp.MustCompile(`(?s)^"(?:[^"\\]|\\x[[:xdigit:]]{2}|\\u[[:xdigit:]]{4}|\\U[[:xdigit:]]{8}|\\[^xuU])*(\\[xuU])?`)

// badEscape returns the first text in double quotes with a \x, \u or \U that lacks digits, such as "C:\Users", nil if
// there is none.
func badEscape(data string, tokens token.Tokens) *token.Token {
	if !strings.Contains(data, `\`) {
		return nil
	}
	line, column := 1, 1 // of the first character of data, which is cut at each token
	for _, t := range tokens {
		if t.Type != token.DoubleQuoteType {
			continue
		}
		for ; line < t.Position.Line; line++ {
			_, data, _ = strings.Cut(data, "\n")
			column = 1
		}
		for ; column < t.Position.Column; column++ {
			_, size := utf8.DecodeRuneInString(data)
			data = data[size:]
		}
		if found := textWithEscapes.FindStringSubmatch(data); found != nil && found[1] != "" {
			return t
		}
	}
	return nil
}
