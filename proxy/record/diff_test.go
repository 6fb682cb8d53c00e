package record

import (
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct{ name, want, got, text string }{
		{"equal", "same\n", "same\n", ""},
		{"value", `{"id":1}`, `{"id":2}`, "  want {\"id\":1}\n  got  {\"id\":2}\n             ^ byte 6 of 8 and 8"},
		{"line end", "a\r\n", "a\n", "  want a\\r\\n\n  got  a\\n\n        ^ byte 1 of 3 and 2"},
		{"shorter", "ab", "a", "  want ab\n  got  a\n        ^ byte 1 of 2 and 1"},
		{"longer", "a", "ab", "  want a\n  got  ab\n        ^ byte 1 of 1 and 2"},
		{"quotes and backslashes", `"\'1`, `"\'2`, "  want \"\\'1\n  got  \"\\'2\n          ^ byte 3 of 4 and 4"},
		{"inside a rune", "xé", "xè", "  want xé\n  got  xè\n        ^ byte 1 of 3 and 3"},
		{"not UTF-8", "x\xff", "x\xfe", "  want x\\xff\n  got  x\\xfe\n        ^ byte 1 of 2 and 2"},
		{"nothing", "x", "", "  want x\n  got  \n       ^ byte 0 of 1 and 0"},
	} {
		if got := Diff([]byte(c.want), []byte(c.got)); got != c.text {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, got, c.text)
		}
	}
}

func TestDiffIsShort(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	text := Diff([]byte(long+"1"+long), []byte(long+"2"+long))
	if len(text) > 1000 || !strings.Contains(text, "…é") || !strings.Contains(text, "é1é") {
		t.Errorf("unreadable: %s", text)
	}
}
