package textfile

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// The parser recurses for each level of nesting: a file of only brackets would exhaust the stack
// and end the process; 60 KB of them took 6 GB. A mapping with very many keys takes minutes.
const (
	maxDepth = 32
	maxKeys  = 1000
)

// guard checks the tokens of a file before the parser reads them. It returns the first token
// that is not allowed, with the reason, or nil if the tokens can be parsed.
func guard(tokens token.Tokens) (*token.Token, string) {
	var open levels
	for i, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.DirectiveType, token.MappingKeyType:
			return t, "anchors, aliases, tags, directives and ? keys are not read: write the value out, in quotes if it is text"
		case token.SequenceStartType, token.MappingStartType:
			open = append(open, level{flow: true})
		case token.SequenceEndType, token.MappingEndType:
			open = open.close()
		case token.SequenceEntryType:
			open = open.at(t.Position.Column)
		case token.MappingValueType:
			column := t.Position.Column
			if i > 0 {
				column = tokens[i-1].Position.Column
			}
			open = open.at(column)
			open[len(open)-1].keys++
		case token.StringType:
			if why := missingComma(t.Value); why != "" && len(open) > 0 && open[len(open)-1].flow {
				return t, why
			}
		}
		if len(open) > maxDepth {
			return t, fmt.Sprintf("is nested more than %d deep: see whether it is the right file", maxDepth)
		}
		if len(open) > 0 && open[len(open)-1].keys > maxKeys {
			return t, fmt.Sprintf("has more than %d keys in one place: see whether it is the right file", maxKeys)
		}
	}
	return nil, ""
}

// missingComma returns the problem of a text without quotes, within brackets, that has a colon and
// a space. YAML does not allow one (1.2.2, 7.3.3), but the lexer makes {a: b c: d} one key, with the
// value "b c: d".
func missingComma(text string) string {
	before, _, found := strings.Cut(text, ": ")
	if !found {
		return ""
	}
	if words := strings.Fields(before); len(words) > 1 {
		return "a comma is missing before " + quoteShort(words[len(words)-1]) + ": write it, or put the text that begins here in quotes"
	}
	return "has a colon within a text: put the text in quotes"
}

// levels are the open collections at a token, outermost first.
type levels []level

// level is a collection in brackets, or one defined by its indentation.
type level struct {
	flow   bool
	column int
	keys   int
}

// at returns the levels at an entry in column. Within brackets columns have no meaning.
func (l levels) at(column int) levels {
	for len(l) > 0 && !l[len(l)-1].flow && l[len(l)-1].column > column {
		l = l[:len(l)-1]
	}
	if top := len(l) - 1; top >= 0 && (l[top].flow || l[top].column == column) {
		return l
	}
	return append(l, level{column: column})
}

// close returns the levels after a closing bracket.
func (l levels) close() levels {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].flow {
			return l[:i]
		}
	}
	return l
}
