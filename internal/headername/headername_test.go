package headername_test

import (
	"regexp"
	"testing"

	"github.com/attache-mcp/attache/internal/headername"
)

func TestIsValid(t *testing.T) {
	pattern := regexp.MustCompile(headername.Pattern)
	check := func(name string, want bool) {
		t.Helper()
		if headername.IsValid(name) != want || pattern.MatchString(name) != want {
			t.Errorf("%q: IsValid %v, pattern %v, want %v", name, headername.IsValid(name), pattern.MatchString(name), want)
		}
	}
	for _, name := range []string{"X-Api-Key", "a", "0_~|`^.+*'&%$#!-"} {
		check(name, true)
	}
	for _, name := range []string{"", "é", "a\n", "\xff"} {
		check(name, false)
	}
	for _, c := range "\x00\t \"(),/:;<=>?@[\\]{}\x7f" {
		check("a"+string(c)+"b", false)
	}
}
