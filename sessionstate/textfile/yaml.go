package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A SyntaxError is an error in YAML.
type SyntaxError struct {
	// Line and Column count from 1, columns in characters. They are 0 if the place is unknown.
	Line, Column int
	// Text says what is wrong and what to do, in printable characters. It quotes no part of the
	// file that is longer than [MaxQuoted].
	Text string
}

// Error returns the text after its place.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Text)
}

// ParseYAML returns the content of the only document in data, nil if it is empty. It refuses
// anchors, aliases, tags, directives and deep nesting. The caller must check for duplicate
// keys. Errors are of type [*SyntaxError].
func ParseYAML(data []byte) (content ast.Node, err error) {
	defer func() {
		// The parser sometimes panicked on malformed text (its issues 191, 439, 479).
		if recover() != nil {
			content, err = nil, &SyntaxError{Text: "is not YAML that can be read: correct it"}
		}
	}()
	data = TrimMark(data)
	if err := checkText(data); err != nil {
		return nil, err
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) // the lexer counts a comment that ends in \r\n as two lines
	tokens := lexer.Tokenize(string(data))
	if at, why := guard(tokens); at != nil {
		return nil, ErrorAt(at, why)
	}
	if at := badEscape(string(data), tokens); at != nil {
		return nil, ErrorAt(at, `has \x, \u or \U without its 2, 4 or 8 hexadecimal digits: write a path of Windows in single quotes`)
	}
	if at := afterEmpty(tokens); at != nil {
		return nil, ErrorAt(at, secondDocument)
	}
	tree, err := parser.Parse(joinWords(tokens), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxError(err)
	}
	for _, doc := range tree.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case content != nil:
			return nil, ErrorAt(Start(doc.Body), secondDocument)
		default:
			content = doc.Body
		}
	}
	if content != nil && content.Type() == ast.NullType {
		content = nil
	}
	return content, nil
}

// Start returns the first token of n, for the place of an error. In the library, a mapping starts at its first
// colon.
func Start(n ast.Node) *token.Token {
	switch n := n.(type) {
	case *ast.MappingNode:
		if n.IsFlowStyle {
			return n.Start
		}
		if len(n.Values) > 0 {
			return n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return n.GetToken()
}

// IsText reports whether n is a string, be it plain, in quotes or a block.
func IsText(n ast.Node) bool {
	return n.Type() == ast.StringType || n.Type() == ast.LiteralType
}

// IsMapping reports whether n has keys and values.
func IsMapping(n ast.Node) bool {
	return n.Type() == ast.MappingType || n.Type() == ast.MappingValueType
}

// TextOf returns the text of a scalar without its quotes.
func TextOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	return n.GetToken().Value
}

// checkText refuses bytes that are not UTF-8, and control characters.
func checkText(data []byte) error {
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		why := ""
		switch {
		case c == utf8.RuneError && n == 1:
			why = "is not UTF-8 text: save the file as UTF-8"
		case c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f:
			why = fmt.Sprintf("has the control character %q: take it out", c)
		}
		if why != "" {
			line := data[bytes.LastIndexByte(data[:i], '\n')+1 : i]
			return &SyntaxError{Line: 1 + bytes.Count(data[:i], []byte("\n")), Column: 1 + utf8.RuneCount(line), Text: why}
		}
		i += n
	}
	return nil
}

// syntaxError replaces an error of the parser, which quotes the file around the place.
func syntaxError(err error) error {
	var at interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if !errors.As(err, &at) {
		return &SyntaxError{Text: "is not YAML that can be read: correct it"}
	}
	message, t := at.GetMessage(), at.GetToken() // without the lines of the file that Error adds
	switch {
	case strings.Contains(message, "\t"):
		return ErrorAt(t, "a tab is not for indenting in YAML: write spaces")
	case message == "mapping value is not allowed in this context":
		return ErrorAt(t, "has a colon within a value: put a text with a colon in quotes, or correct the indentation here or just after")
	case t != nil && (message == "unexpected key name" || message == "non-map value is specified"):
		// A line without a colon. For the first message the token includes the next line.
		key, _, _ := strings.Cut(strings.TrimSpace(t.Origin), "\n")
		return ErrorAt(t, quoteShort(strings.TrimSpace(key))+" has no colon after it: write one, and its value")
	}
	message = quoted().ReplaceAllStringFunc(message, func(q string) string {
		if text, err := strconv.Unquote(q); err == nil {
			return quoteShort(text)
		}
		return "this"
	})
	return ErrorAt(t, "is not YAML that can be read ("+printable(message)+"): correct it here or just before")
}

// quoted matches the parts of the file that the parser quotes.
var quoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"(?:[^"\\]|\\.)*"`) })

// ErrorAt returns an error at a token, without a place if t is nil.
func ErrorAt(t *token.Token, text string) *SyntaxError {
	e := &SyntaxError{Text: text}
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

// printable replaces the characters of s that a terminal does not print.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, s)
}
