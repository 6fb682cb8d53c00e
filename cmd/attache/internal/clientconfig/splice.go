package clientconfig

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// A span is a range of bytes in the document.
type span struct{ from, to int }

type literal struct {
	span
	value string
}

type splice struct {
	span
	text string
}

// apply returns data with the splices applied. They are sorted and do not overlap.
func apply(data []byte, splices []splice) []byte {
	return applyIn(data, span{0, len(data)}, splices)
}

// applyIn returns a part of data with the splices that are inside it applied.
func applyIn(data []byte, part span, splices []splice) []byte {
	size := part.to - part.from
	for _, s := range splices {
		size += len(s.text)
	}
	out := make([]byte, 0, size)
	at := part.from
	for _, s := range splices {
		if s.from < part.from || s.to > part.to {
			continue
		}
		out = append(out, data[at:s.from]...)
		out = append(out, s.text...)
		at = s.to
	}
	return append(out, data[at:part.to]...)
}

// comments returns the comments in part, a part of a list that is removed with its items, and the
// white space around them.
func comments(data []byte, part span, items []literal) string {
	var found strings.Builder
	at := part.from
	for _, item := range append(slices.Clone(items), literal{span: span{part.to, part.to}}) {
		if between := withoutComma(string(data[at:item.from])); strings.TrimSpace(between) != "" {
			found.WriteString(between)
		}
		at = item.to
	}
	return found.String()
}

// withoutComma returns the text between two items without the comma that separates them. It ignores
// commas in comments.
func withoutComma(between string) string {
	for i := 0; i < len(between); i++ {
		switch between[i] {
		case ',':
			return between[:i] + between[i+1:]
		case '/':
			i += max(commentLength([]byte(between[i:]))-1, 0)
		case '#':
			end := strings.IndexByte(between[i:], '\n')
			if end < 0 {
				return between
			}
			i += end
		}
	}
	return between
}

// quote returns s as a JSON string that is also a TOML string.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // cannot fail for a string and a buffer
	text := strings.TrimSuffix(b.String(), "\n")
	return strings.ReplaceAll(text, "\x7f", `\u007f`) // only TOML requires this escape
}

func quoteAll(args []string) []string {
	var quoted []string
	for _, arg := range args {
		quoted = append(quoted, quote(arg))
	}
	return quoted
}
