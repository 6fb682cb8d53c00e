package glob

import (
	"slices"
	"testing"
	"unicode/utf8"
)

func TestOverlap(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"", "*", true},
		{"", "?", false},
		{"get", "get", true},
		{"get", "set", false},
		{"get", "get_", false},
		{"get_*", "get_x", true},
		{"get_*", "get", false},
		{"get_*", "*_x", true},
		{"get_*", "set_*", false},
		{"*a", "*b", false},
		{"*a*", "*b*", true},
		{"a?c", "?bc", true},
		{"a?c", "?bd", false},
		{"?", "é", true},
		{"??", "é", false},
		{`a\*`, "ab", false},
		{`a\*`, "a?", true},
		{"a**", "*?*b", true},
	} {
		if Overlap(test.a, test.b) != test.want || Overlap(test.b, test.a) != test.want {
			t.Errorf("%q and %q overlap: want %v", test.a, test.b, test.want)
		}
	}
}

// FuzzOverlap checks that two patterns overlap exactly if a name matches both. It also makes short patterns of a
// few letters from the bytes, so that it can try all names that may match both.
func FuzzOverlap(f *testing.F) {
	f.Add("get_*", "*_x", "get_x")
	f.Add("a?c", "*", "abc")
	f.Add("\x02\x00\x02", "\x03\x01", "") // *a* and ?b
	names := shortNames(6)
	f.Fuzz(func(t *testing.T, a, b, name string) {
		if len(a)+len(b) > 200 {
			return
		}
		// The patterns of a configuration are UTF-8. A prefix that ends within a character matches by bytes.
		if utf8.ValidString(a) && utf8.ValidString(b) && both(a, b, name) && !Overlap(a, b) {
			t.Errorf("%q matches %q and %q, which do not overlap", name, a, b)
		}
		a, b = shortPattern(a), shortPattern(b)
		match := slices.ContainsFunc(names, func(name string) bool { return both(a, b, name) })
		if Overlap(a, b) != match {
			t.Errorf("%q and %q overlap: %v, want %v", a, b, !match, match)
		}
	})
}

// both reports whether a name matches two patterns.
func both(a, b, name string) bool {
	if ok, err := Match([]string{a}, name); !ok || err != nil {
		return false
	}
	ok, err := Match([]string{b}, name)
	return ok && err == nil
}

// shortPattern makes a pattern with at most three letters, and stars between them.
func shortPattern(text string) (pattern string) {
	letters := 0
	for _, c := range []byte(text) {
		part := [...]string{"a", "b", "*", "?", `\*`}[c%5]
		if part != "*" {
			letters++
		}
		if letters > 3 || len(pattern) > 8 {
			break
		}
		pattern += part
	}
	return pattern
}

// shortNames returns all names of at most n letters. If two patterns overlap, a name that is not longer than both
// together matches both.
func shortNames(n int) []string {
	names := []string{""}
	for from := 0; n > 0; n-- {
		end := len(names)
		for _, name := range names[from:end] {
			names = append(names, name+"a", name+"b", name+"*")
		}
		from = end
	}
	return names
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		pattern, other string
		want           bool
	}{
		{"*", "a?b*", true},
		{"a", "a", true},
		{"git_*", "git_status", true},
		{"git_*", "git_s*", true},
		{"git_s*", "git_*", false},
		{"git_*", "git", false},
		{"a?", "ab", false}, // not certain without a match
		{`a\*`, `a\*b`, false},
		{`a\*`, `a\*`, true},
		{"A*", "ab", false},
	} {
		if got := Covers(test.pattern, test.other); got != test.want {
			t.Errorf("Covers(%q, %q) is %v", test.pattern, test.other, got)
		}
	}
}
