package filesource

import "github.com/goccy/go-yaml/token"

// The parser calls itself for each level of nesting and compares each key of a
// mapping with all others: a file of brackets alone would exhaust the stack, which
// ends the process. A policy file has three levels and five keys.
const (
	maxDepth = 32
	maxKeys  = 1000
)

// guard looks at the tokens of a file before the parser does. It returns the
// token at which the file is no policy file, and why; nil if it may be parsed.
func guard(tokens token.Tokens) (*token.Token, string) {
	var open levels
	for i, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.DirectiveType, token.MappingKeyType:
			return t, "anchors, aliases, tags, directives and ? keys are not for policy files: write the value out, in quotes if it is text"
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
			return t, "is nested too deep for a policy file: see how one is written"
		}
		if len(open) > 0 && open[len(open)-1].keys > maxKeys {
			return t, "has too many keys for a policy file: see how one is written"
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
