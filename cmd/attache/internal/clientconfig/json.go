package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// maxNesting is how deep values may be nested. The parser is recursive, so a file of brackets would
// overflow the stack.
const maxNesting = 1000

// parseJSON parses data. The offsets in the value are those in data.
func parseJSON(data []byte) (hujson.Value, error) {
	start := 0
	if bytes.HasPrefix(data, []byte(mark)) {
		start = len(mark)
	}
	if offset := tooDeep(data[start:]); offset >= 0 {
		return hujson.Value{}, fmt.Errorf("line %d: nested more than %d deep, which no configuration needs: correct it there", lineAt(data, start+offset), maxNesting)
	}
	// Replace the mark by spaces, so that the offsets stay the same. End the last line: clients
	// accept a comment there without a line break, and the parser does not.
	text := slices.Concat(bytes.Repeat([]byte(" "), start), data[start:], []byte("\n"))
	v, err := hujson.Parse(text)
	if err != nil {
		return v, jsonProblem(err)
	}
	return v, nil
}

// jsonProblem returns the parser's error without the text that it quotes, which may be a secret.
func jsonProblem(err error) error {
	at, problem, _ := strings.Cut(strings.TrimPrefix(err.Error(), "hujson: "), ": ")
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is not valid JSON: it ends too early: was it written to the end?")
	case strings.HasPrefix(problem, "invalid literal"):
		problem = "a value that JSON does not have"
	}
	return fmt.Errorf("it is not valid JSON: %s: %s: correct it there", at, problem)
}

// tooDeep returns the offset at which data is nested deeper than maxNesting, or -1.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '[', '{':
			if depth++; depth > maxNesting {
				return i
			}
		case ']', '}':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			i += max(commentLength(data[i:])-1, 0)
		}
	}
	return -1
}

// commentLength returns the length of the comment at the start of b, or 0 if there is none.
func commentLength(b []byte) int {
	for _, kind := range [][2]string{{"//", "\n"}, {"/*", "*/"}} {
		if !bytes.HasPrefix(b, []byte(kind[0])) {
			continue
		}
		if end := bytes.Index(b[2:], []byte(kind[1])); end >= 0 {
			return 2 + end + len(kind[1])
		}
		return len(b)
	}
	return 0
}

func nameOf(m hujson.ObjectMember) string { return textOf(m.Name) }

// textOf returns the string v, unescaped, or "" if v is not a string.
func textOf(v hujson.Value) string {
	l, ok := v.Value.(hujson.Literal)
	switch {
	case !ok || l.Kind() != '"':
		return ""
	case bytes.IndexByte(l, '\\') < 0:
		return string(l[1 : len(l)-1]) // the usual case; unescaping takes ten times as long
	}
	return l.String()
}

func isNull(v hujson.Value) bool { return v.Value.Kind() == 'n' }

// memberNamed returns the first member of object with the given name, or nil.
func memberNamed(object *hujson.Object, name string) *hujson.ObjectMember {
	if object == nil {
		return nil
	}
	i := slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool { return nameOf(m) == name })
	if i < 0 {
		return nil
	}
	return &object.Members[i]
}

// gap returns the white space to write before another member, with the same spacing as m. The first
// member of an object on one line often has no space before it, but one after its colon.
func gap(m hujson.ObjectMember) string {
	if space := whiteSpace(m.Name.BeforeExtra); space != "" {
		return space
	}
	if bytes.Contains(m.Value.BeforeExtra, []byte(" ")) {
		return " "
	}
	return ""
}

// whiteSpace returns extra if it is only white space, and one space otherwise.
func whiteSpace(extra hujson.Extra) string {
	if extra.IsStandard() {
		return string(extra)
	}
	return " "
}
