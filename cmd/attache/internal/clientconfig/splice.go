package clientconfig

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// A splice puts text in the place of what stands in a span.
type splice struct {
	span
	text string
}

// apply returns data with the splices, which are in order and do not overlap.
func apply(data []byte, splices []splice) []byte {
	size := len(data)
	for _, s := range splices {
		size += len(s.text) - (s.to - s.from)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, s := range splices {
		out = append(out, data[at:s.from]...)
		out = append(out, s.text...)
		at = s.to
	}
	return append(out, data[at:]...)
}

// comments returns the comments in a part of a list that is taken out, with the
// white space around them, so that none is lost. gone are the items in it.
func comments(data []byte, part span, gone []literal) string {
	var kept strings.Builder
	at := part.from
	for _, item := range append(slices.Clone(gone), literal{span: span{part.to, part.to}}) {
		if between := withoutComma(string(data[at:item.from])); strings.TrimSpace(between) != "" {
			kept.WriteString(between)
		}
		at = item.to
	}
	return kept.String()
}

// withoutComma returns what stands between two items without the comma, which a
// comment may hold too.
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

// quote returns s as a text of JSON, which is one of TOML too: both have the same
// escapes.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string cannot fail, and a buffer neither
	text := strings.TrimSuffix(b.String(), "\n")
	return strings.ReplaceAll(text, "\x7f", `\u007f`) // TOML alone wants it escaped
}
