package glob

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true},
		{"**", "", true},
		{"*_x", "", false},
		{"?", "", false},
		{"get_*", "get_x", true},
		{"get_*", "get_", true},
		{"get_*", "Get_x", false},
		{"get_*", "xget_x", false},
		{"*_x", "get_x", true},
		{"g?t", "get", true},
		{"g?t", "gt", false},
		{"get", "get", true},
		{"get", "get ", false},
		{"get", "gеt", false},
		{`a\*`, "a*", true},
		{`a\*`, "ab", false},
		{"*a*b*", "xxaxxbxx", true},
	} {
		if got, err := Match([]string{"never", test.pattern}, test.name); got != test.want || err != nil {
			t.Errorf("%q matches %q: %v, %v", test.pattern, test.name, got, err)
		}
	}
}

// A malicious name does not block the session.
func TestTooLong(t *testing.T) {
	for _, n := range []int{maxName - 1, 1 << 20} {
		if _, err := Match([]string{"*a*a*a*a*a*a*b*c"}, strings.Repeat("a", n)+"c"); err != ErrTooLong {
			t.Errorf("a name of %d letters: %v", n, err)
		}
	}
}

func TestLiteral(t *testing.T) {
	for pattern, want := range map[string]bool{"get": true, "get_*": false, "g?t": false, `g\*`: false, "": true} {
		if Literal(pattern) != want {
			t.Errorf("Literal(%q) = %v", pattern, !want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		patterns []string
		good     bool
	}{{nil, false}, {[]string{"a", ""}, false}, {[]string{"*", "b"}, true}} {
		if err := Check(test.patterns); (err == nil) != test.good {
			t.Errorf("Check(%q) = %v", test.patterns, err)
		}
	}
}
