package glob

import "strings"

// Overlap reports whether some name matches both patterns. Its time grows with the product
// of their lengths.
func Overlap(a, b string) bool {
	p, q := parse(a), parse(b)
	// after[j] reports whether p[i+1:] and q[j:] overlap.
	after := make([]bool, len(q)+1)
	for i := len(p); i >= 0; i-- {
		row := make([]bool, len(q)+1)
		for j := len(q); j >= 0; j-- {
			switch {
			case i == len(p) && j == len(q):
				row[j] = true
			case i < len(p) && p[i].star:
				row[j] = after[j] || j < len(q) && row[j+1]
			case j < len(q) && q[j].star:
				row[j] = row[j+1] || i < len(p) && after[j]
			case i < len(p) && j < len(q):
				row[j] = after[j+1] && (p[i].any || q[j].any || p[i].char == q[j].char)
			}
		}
		after = row
	}
	return after[0]
}

// Covers reports whether a pattern certainly matches every name that other matches.
func Covers(pattern, other string) bool {
	if pattern == other {
		return true
	}
	head, open := strings.CutSuffix(pattern, "*")
	return open && !strings.ContainsAny(head, `*?\`) && strings.HasPrefix(other, head)
}

// A part is one element of a pattern: a character, ? (any) or * (star).
type part struct {
	char      rune
	any, star bool
}

func parse(pattern string) []part {
	var parts []part
	escaped := false
	for _, c := range pattern {
		switch {
		case escaped:
			parts, escaped = append(parts, part{char: c}), false
		case c == '\\':
			escaped = true
		default:
			parts = append(parts, part{char: c, any: c == '?', star: c == '*'})
		}
	}
	return parts
}
