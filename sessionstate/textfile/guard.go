package textfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// MaxQuoted is how many bytes of a file of secrets an error may quote: too few for a key or token.
const MaxQuoted = 15

// The parser recurses for each level of nesting: a file of only brackets would exhaust the stack
// and end the process; 60 KB of them took 6 GB. A mapping with very many keys takes minutes. The lexer does
// not recurse, so the check of its tokens is safe.
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
		case token.AliasType:
			return t, `begins with "*", so that YAML takes it for an alias, which is not read: put a text in quotes, as in "*", or write the value out`
		case token.AnchorType, token.TagType, token.MergeKeyType, token.DirectiveType, token.MappingKeyType:
			return t, "anchors, aliases, tags, directives and ? keys are not read: write the value out, in quotes if it is text"
		case token.SequenceStartType, token.MappingStartType:
			open = append(open, level{flow: true})
		case token.SequenceEndType, token.MappingEndType:
			open = open.close()
		case token.SequenceEntryType:
			open = open.at(t.Position.Column)
		case token.MappingValueType:
			// The token is the colon. The key before it has the column of the mapping.
			column := t.Position.Column
			if i > 0 {
				column = tokens[i-1].Position.Column
			}
			open = open.at(column)
			open[len(open)-1].keys++
		case token.StringType:
			if why := plainProblem(t.Value, len(open) > 0 && open[len(open)-1].flow); why != "" && !isBlockText(tokens[:i]) {
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

const secondDocument = "a second document begins here: write one document a file"

// afterEmpty returns the first token of a document after an empty one, or nil. The parser ignores everything after
// two --- with nothing between them, so it would read a file with rules as a file without rules.
func afterEmpty(tokens token.Tokens) *token.Token {
	headers := 0
	for _, t := range tokens {
		switch {
		case t.Type == token.CommentType:
		case t.Type == token.DocumentHeaderType:
			headers++
		case headers > 1:
			return t
		default:
			headers = 0
		}
	}
	return nil
}

// isBlockText reports whether the token after before is the text that a | or > introduces.
func isBlockText(before token.Tokens) bool {
	for i := len(before) - 1; i >= 0; i-- {
		if t := before[i].Type; t != token.CommentType {
			return t == token.LiteralType || t == token.FoldedType
		}
	}
	return false
}

// plainProblem returns the problem of a text without quotes that YAML does not allow, but the lexer
// accepts (1.2.2, 7.3.3). It makes {a: b c: d} one key, with the value "b c: d", {a: b]} the value
// "b]", and a line with a dash that is indented too far a part of the text above it.
func plainProblem(text string, flow bool) string {
	if strings.IndexAny(text, ",[]{}%") == 0 {
		return "begins with " + quoteShort(text[:1]) + ": take it out, or put the text in quotes"
	}
	if at := strings.IndexAny(text, "[]{}"); flow && at >= 0 {
		return "has " + quoteShort(text[at:at+1]) + " within a text: take it out, write the other bracket, or put the text in quotes"
	}
	if text = strings.ReplaceAll(text, "\n", " "); flow {
		text += " " // no text ends in a colon; outside of brackets a:: is the key a:
	}
	before, after, found := strings.Cut(text, ": ")
	words := strings.Fields(before)
	switch {
	case !found:
		return ""
	case !flow:
		return "has a colon within a text of several lines: put the text in quotes, or correct the indentation of its lines"
	case len(words) > 1 && after != "":
		return "a comma is missing before " + quoteShort(words[len(words)-1]) + ": write it, or put the text that begins here in quotes"
	}
	return "has a colon within a text: put the text in quotes"
}

// levels are the open collections at a token, outermost first.
type levels []level

// level is a collection in brackets, or one defined by its indentation.
type level struct {
	flow   bool // in brackets
	column int  // of its entries; 0 in brackets
	keys   int  // how many keys it has so far
}

// at returns the levels at an entry in column. Collections that are indented more have ended. Within brackets
// columns have no meaning.
func (l levels) at(column int) levels {
	for len(l) > 0 && !l[len(l)-1].flow && l[len(l)-1].column > column {
		l = l[:len(l)-1]
	}
	if top := len(l) - 1; top >= 0 && (l[top].flow || l[top].column == column) {
		return l
	}
	return append(l, level{column: column})
}

// close returns the levels after a closing bracket. It also closes the collections within the brackets. A
// bracket that was never opened is left to the parser.
func (l levels) close() levels {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].flow {
			return l[:i]
		}
	}
	return l
}

// quoteShort quotes s if it is no longer than [MaxQuoted], and else returns "this".
func quoteShort(s string) string {
	if q := strconv.Quote(s); len(q) <= len(`""`)+MaxQuoted {
		return q
	}
	return "this"
}
