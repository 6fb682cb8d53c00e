package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// A node is a JSON value, parsed with encoding/json and without the code of this package.
type node struct {
	raw      string
	object   bool
	array    bool
	text     string // of a string
	isString bool
	members  []nodeMember
	elements []*node
}

type nodeMember struct {
	name  string
	value *node
}

// parse reads one value, which must be valid.
func parse(frame []byte) *node {
	d := json.NewDecoder(bytes.NewReader(frame))
	d.UseNumber()
	return parseValue(d, frame)
}

func parseValue(d *json.Decoder, frame []byte) *node {
	start := int(d.InputOffset())
	t, err := d.Token()
	if err != nil {
		panic(err)
	}
	for strings.ContainsRune(" \t\r\n,:", rune(frame[start])) {
		start++
	}
	n := &node{}
	switch t := t.(type) {
	case string:
		n.text, n.isString = t, true
	case json.Delim:
		n.object, n.array = t == '{', t == '['
		for d.More() {
			if n.array {
				n.elements = append(n.elements, parseValue(d, frame))
				continue
			}
			name := parseValue(d, frame).text
			n.members = append(n.members, nodeMember{name, parseValue(d, frame)})
		}
		if _, err := d.Token(); err != nil {
			panic(err)
		}
	}
	n.raw = string(frame[start:d.InputOffset()])
	return n
}

func (n *node) depth() int {
	deepest := 0
	for _, m := range n.members {
		deepest = max(deepest, m.value.depth())
	}
	for _, e := range n.elements {
		deepest = max(deepest, e.depth())
	}
	if n.object || n.array {
		deepest++
	}
	return deepest
}

func (n *node) equalNames() bool {
	seen := map[string]bool{}
	for _, m := range n.members {
		if seen[m.name] || m.value.equalNames() {
			return true
		}
		seen[m.name] = true
	}
	return slices.ContainsFunc(n.elements, (*node).equalNames)
}

// first and last return the value of the first or last member with a name, or nil. Readers
// choose either.
func (n *node) first(name string) *node {
	if n != nil {
		for _, m := range n.members {
			if m.name == name {
				return m.value
			}
		}
	}
	return nil
}

func (n *node) last(name string) (found *node) {
	if n != nil {
		for _, m := range n.members {
			if m.name == name {
				found = m.value
			}
		}
	}
	return found
}

// twins reports whether n has a member whose name SameName takes for a known name.
func (n *node) twins(known ...string) bool {
	if n == nil {
		return false
	}
	for _, m := range n.members {
		for _, k := range known {
			if m.name != k && specFold(m.name) == specFold(k) {
				return true
			}
		}
	}
	return false
}

// invisible matches the characters that some readers trim or drop: blanks, control and format
// characters, the combining dot above, and the other default ignorable characters of Unicode.
var invisible = regexp.MustCompile(`[\p{Z}\p{Cc}\p{Cf}\x{307}\x{34f}\x{115f}\x{1160}\x{17b4}\x{17b5}\x{180b}-\x{180f}\x{2065}\x{3164}\x{fe00}-\x{fe0f}\x{ffa0}\x{fff0}-\x{fff8}\x{e0000}-\x{e0fff}]`)

// specFold returns the form of a name that SameName compares.
func specFold(s string) string {
	s = strings.NewReplacer("ı", "i", "İ", "i").Replace(invisible.ReplaceAllString(s, ""))
	return cases.Fold().String(s)
}

// inherits reports whether n, or a value inside of it, has a member __proto__.
func (n *node) inherits() bool {
	if n == nil {
		return false
	}
	return n.first("__proto__") != nil || slices.ContainsFunc(n.elements, (*node).inherits) ||
		slices.ContainsFunc(n.members, func(m nodeMember) bool { return m.value.inherits() })
}

func (n *node) argumentTwins(names [][]string) bool {
	if n == nil || !n.object || len(names) == 0 {
		return false
	}
	if n.twins(names[0]...) {
		return true
	}
	for _, m := range n.members {
		if m.value.argumentTwins(names[1:]) {
			return true
		}
	}
	return false
}

var escapes = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|\\.|�`)

// clear reports whether n is a string without NUL and lone surrogates. encoding/json decodes a lone
// surrogate to U+FFFD, so clear compares the number of U+FFFD in the text and in the source.
func (n *node) clear() bool {
	if n == nil || !n.isString || strings.Contains(n.text, "\x00") {
		return false
	}
	written := 0
	for _, e := range escapes.FindAllString(n.raw, -1) {
		if e == "�" || strings.EqualFold(e, `\ufffd`) {
			written++
		}
	}
	return strings.Count(n.text, "�") == written
}

var integer = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// specPlain is the specification of Plain: the same result from slow and simple code.
func specPlain(frame []byte) (plain, batch bool) {
	if !utf8.Valid(frame) || bytes.ContainsAny(frame, "\r\n") || !json.Valid(frame) {
		return false, false
	}
	root := parse(frame)
	if root.depth() > MaxDepth || root.equalNames() {
		return false, root.array
	}
	if root.array {
		return true, true
	}
	params := root.first("params")
	if root.first("__proto__") != nil || params.inherits() {
		return false, false
	}
	if params != nil && !params.object {
		params = &node{}
	}
	if !root.object || root.twins("jsonrpc", "id", "method", "params", "result", "error") ||
		params.twins("name", "arguments", "_meta") || params.first("arguments").argumentTwins(argumentNames) {
		return false, false
	}
	id, method, result, failure := root.first("id"), root.first("method"), root.first("result"), root.first("error")
	switch {
	case root.first("jsonrpc") == nil || root.first("jsonrpc").text != "2.0",
		id != nil && !id.isString && !integer.MatchString(id.raw),
		method != nil && !method.clear(),
		method == nil && result == nil && failure == nil,
		method != nil && (result != nil || failure != nil),
		result != nil && (failure != nil || id == nil),
		failure != nil && !failure.object:
		return false, false
	}
	if method != nil && slices.ContainsFunc(methods[:], func(m string) bool { return method.text != m && specFold(method.text) == specFold(m) }) {
		return false, false
	}
	if method != nil && method.text == "tools/call" {
		p, args := root.first("params"), params.first("arguments")
		if p == nil || !p.object || !params.first("name").clear() || args != nil && !args.object {
			return false, false
		}
	}
	return true, false
}

// meaning decodes a frame for reflect.DeepEqual. Numbers keep their spelling.
func meaning(frame []byte) any {
	d := json.NewDecoder(bytes.NewReader(frame))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	if _, err := d.Token(); err != io.EOF {
		panic("more than one value in " + strconv.Quote(string(frame)))
	}
	return v
}
