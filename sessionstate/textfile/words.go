package textfile

import (
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// joinWords rejoins words that contain a colon. In a list within braces,
// {require: [records:read]}, the lexer interprets the colon as the end of a key, although no
// space follows it (YAML 1.2.2, 7.3.3).
func joinWords(tokens token.Tokens) token.Tokens {
	var out token.Tokens
	var open []token.Type // brackets
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			open = append(open, t.Type)
		case token.SequenceEndType, token.MappingEndType:
			open = open[:max(0, len(open)-1)]
		}
		if len(open) > 0 && open[len(open)-1] == token.SequenceStartType {
			for i+2 < len(tokens) && oneWord(t, tokens[i+1], tokens[i+2]) {
				t.Type, t.Value, t.Origin = token.StringType, t.Value+":"+tokens[i+2].Value, t.Origin+":"+tokens[i+2].Origin
				i += 2
			}
		}
		out.Add(t)
	}
	return out
}

// oneWord reports whether three tokens are two words with only a colon between them.
func oneWord(left, colon, right *token.Token) bool {
	return isWord(left) && colon.Type == token.MappingValueType && isWord(right) &&
		left.Position.Line == right.Position.Line &&
		left.Position.Column+utf8.RuneCountInString(left.Value) == colon.Position.Column &&
		colon.Position.Column+1 == right.Position.Column
}

// isWord reports whether t is a scalar without quotes.
func isWord(t *token.Token) bool {
	return t.Indicator == token.NotIndicator && t.CharacterType == token.CharacterTypeMiscellaneous
}
