package textfile

import (
	"regexp"
	"strings"

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
	lines := strings.SplitAfter(data, "\n")
	for _, t := range tokens {
		line, column := t.Position.Line-1, t.Position.Column-1
		if t.Type != token.DoubleQuoteType || line < 0 || line >= len(lines) {
			continue
		}
		first := []rune(lines[line])
		if column < 0 || column >= len(first) {
			continue
		}
		// Look at two lines only: a longer text is prose, and to look at all of it would take quadratic time.
		text := string(first[column:]) + strings.Join(lines[line+1:min(line+2, len(lines))], "")
		if found := textWithEscapes.FindStringSubmatch(text); found != nil && found[1] != "" {
			return t
		}
	}
	return nil
}
