package expression

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A simpleExpression is an expression that needs no CEL engine: one path or string, or
// comparisons joined by && or by ||. These cannot fail, so their order does not matter, as in
// CEL. This is the grammar. All operators between comparisons are && or all are ||:
//
//	expression = path | string | comparison { ("&&" | "||") comparison } .
//	comparison = plain | "!" "(" plain ")" .
//	plain      = path ("==" | "!=") string | string "in" path .
//
// It is a part of CEL, with the same meaning. Any other expression is left to the engine.
type simpleExpression struct {
	terms []term
	or    bool
}

type term struct {
	op   op
	path string
	text string
	is   bool // false if the comparison is negated
}

type op uint8

const (
	opPath    op = iota + 1 // the value at path
	opLiteral               // text
	opEqual                 // path == text
	opMember                // text in path
)

// parseSimple returns nil if an expression is not simple or not valid. Then it is compiled by CEL.
func parseSimple(src string) *simpleExpression {
	r := reader{rest: src}
	var s simpleExpression
	joint := ""
	for {
		t, ok := r.term()
		if !ok || t.op == opEqual && t.path == trustPath && !isTrust(t.text) {
			return nil // the engine's checkTrust returns the error
		}
		s.terms = append(s.terms, t)
		if r.space(); r.rest == "" {
			break
		}
		found := r.oneOf("&&", "||")
		if found == "" || joint != "" && found != joint {
			return nil
		}
		joint = found
	}
	s.or = joint == "||"
	if len(s.terms) > 1 && slices.ContainsFunc(s.terms, func(t term) bool { return t.op == opPath || t.op == opLiteral }) {
		return nil
	}
	return &s
}

// A reader reads tokens from the beginning of an expression.
type reader struct{ rest string }

func (r *reader) space() { r.rest = strings.TrimLeft(r.rest, " \t\r\n") }

func (r *reader) oneOf(tokens ...string) string {
	r.space()
	for _, t := range tokens {
		if rest, ok := strings.CutPrefix(r.rest, t); ok {
			r.rest = rest
			return t
		}
	}
	return ""
}

// term reads a term. It refuses nested negations: the engine bounds their depth.
func (r *reader) term() (term, bool) {
	if r.oneOf("!") == "" {
		return r.plain()
	}
	if r.oneOf("(") == "" {
		return term{}, false
	}
	t, ok := r.plain()
	if !ok || t.op != opMember && t.op != opEqual || r.oneOf(")") == "" {
		return term{}, false
	}
	t.is = !t.is
	return t, true
}

// plain reads a term without negation. A path must be known, and be a list after "in" and a text
// before "==". So all mistakes in names and types reach CEL, which describes them.
func (r *reader) plain() (term, bool) {
	if text, ok := r.literal(); ok {
		if r.oneOf("in ", "in\t", "in\n") == "" {
			return term{op: opLiteral, text: text}, true
		}
		path := r.path()
		return term{op: opMember, path: path, text: text, is: true}, isListPath(path)
	}
	path := r.path()
	if !isTextPath(path) && !isListPath(path) {
		return term{}, false
	}
	compare := r.oneOf("==", "!=")
	if compare == "" {
		return term{op: opPath, path: path}, true
	}
	text, ok := r.literal()
	return term{op: opEqual, path: path, text: text, is: compare == "=="}, ok && isTextPath(path)
}

func (r *reader) path() string {
	r.space()
	n := 0
	for n < len(r.rest) && (r.rest[n] == '.' || r.rest[n] == '_' || isLetter(r.rest[n]) || n > 0 && isDigit(r.rest[n])) {
		n++
	}
	path := r.rest[:n]
	r.rest = r.rest[n:]
	return path
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// literal reads a string without escapes and line breaks. The prefixes r and b, as in r"\b", are read as
// the beginning of a path that is not known, so such strings are left to CEL.
func (r *reader) literal() (string, bool) {
	r.space()
	if r.rest == "" || r.rest[0] != '"' && r.rest[0] != '\'' {
		return "", false
	}
	n := strings.IndexByte(r.rest[1:], r.rest[0])
	if n < 0 || strings.ContainsAny(r.rest[1:1+n], "\\\r\n") {
		return "", false
	}
	text, rest := r.rest[1:1+n], r.rest[n+2:]
	if n == 0 && rest != "" && rest[0] == r.rest[0] {
		return "", false // the beginning of a triple-quoted string
	}
	r.rest = rest
	return text, true
}

// check returns an error unless the result of the expression can have the type want.
func (s *simpleExpression) check(src string, want Type) error {
	t := s.terms[0]
	switch {
	case want == Any, t.op != opPath && t.op != opLiteral:
		return nil
	case isListPath(t.path):
		return mismatch(src, "a list of strings", want)
	}
	return mismatch(src, aString, want)
}

// path returns the path if the expression is only a path. No other simple expression contains a term
// with opPath.
func (s *simpleExpression) path() string {
	if t := s.terms[0]; t.op == opPath {
		return t.path
	}
	return ""
}

func (s *simpleExpression) uses() uses {
	var u uses
	for _, t := range s.terms {
		if t.op != opLiteral {
			u |= usesOf(t.path)
		}
	}
	return u
}

// eval returns the value of the expression as JSON.
func (s *simpleExpression) eval(in *Inputs) Value {
	switch t := &s.terms[0]; {
	case t.op == opLiteral:
		return encoded(t.text)
	case t.op != opPath:
		return encoded(s.holds(in))
	case isListPath(t.path):
		return encoded(append([]string{}, in.list(t.path)...)) // [] and not null if it is unknown
	default:
		return encoded(in.text(t.path))
	}
}

// holds evaluates comparisons. The first term that is true decides ||, the first that is false &&.
func (s *simpleExpression) holds(in *Inputs) bool {
	for i := range s.terms {
		if s.terms[i].holds(in) == s.or {
			return s.or
		}
	}
	return !s.or
}

func (t *term) holds(in *Inputs) bool {
	if t.op == opMember {
		return slices.Contains(in.list(t.path), t.text) == t.is
	}
	return in.text(t.path) == t.text == t.is
}

// encoded returns a bool, a string or a list of strings as JSON.
func encoded(v any) Value {
	text, _ := encode(v) // fails only for numbers
	return Value{JSON: text}
}

// literals matches values that are the same in CEL and in JSON: strings without escapes, lists,
// and integers that both represent exactly, up to 15 digits. Maps are excluded, because they may have
// duplicate keys. It checks no syntax, which json.Valid does. It matches ["agent", 1] and null, but not
// 1.0 (CEL would write 1), -0, or "a\n".
var literals = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:"[^"\\\x00-\x1f]*"|(?:-?[1-9][0-9]{0,14}|0|true|false|null)\b|[\[\],\s])*$`)
})

// parseLiteral returns the JSON of an expression that is a literal and so needs no engine.
func parseLiteral(src string) ([]byte, bool) {
	if !json.Valid([]byte(src)) || !literals().MatchString(src) {
		return nil, false
	}
	var out bytes.Buffer
	err := json.Compact(&out, []byte(src))
	return out.Bytes(), err == nil
}
