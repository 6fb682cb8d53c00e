package glob

import "testing"

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

// FuzzOverlap checks that two patterns overlap if they match the same name.
func FuzzOverlap(f *testing.F) {
	f.Add("get_*", "*_x", "get_x")
	f.Add("a?c", "*", "abc")
	f.Fuzz(func(t *testing.T, a, b, name string) {
		if len(a)+len(b) > 200 {
			return
		}
		one, err1 := Match([]string{a}, name)
		other, err2 := Match([]string{b}, name)
		if err1 == nil && err2 == nil && one && other && !Overlap(a, b) {
			t.Errorf("%q matches %q and %q, which do not overlap", name, a, b)
		}
	})
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
