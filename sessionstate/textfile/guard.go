package textfile

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// The parser calls itself for each level of nesting: a file of brackets alone would
// exhaust the stack, which ends the process, and 60 KB of them took 6 GB. A mapping
// of very many keys takes minutes.
const (
	maxDepth = 32
	maxKeys  = 1000
)

// guard looks at the tokens of a file before the parser does. It returns the token
// at which the file must not be parsed, and why; nil if it may be.
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

// levels are the collections that are open at a token, outermost first.
type levels []level

// level is a collection in brackets, or one told by its column.
type level struct {
	flow   bool
	column int
	keys   int
}

// at returns the levels at an entry in column. Within brackets columns mean
// nothing.
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
