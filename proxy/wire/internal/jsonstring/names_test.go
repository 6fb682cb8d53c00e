package jsonstring

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/cases"
)

func TestSameName(t *testing.T) {
	for _, test := range []struct {
		name, known string
		want        bool
	}{
		{"force", "force", true},
		{"FORCE", "force", true},
		{"force", "FORCE", true},
		{" force\t", "force", true},
		{"\u200bfo\u00adrce\ufeff", "force", true},
		{"force", "force\u200b", true},
		{"ur\u0131", "uri", true},
		{"UR\u0130", "uri", true},
		{"uri\u0307", "uri", true},
		{"paramſ", "params", true},
		{"toKen", "token", true},
		{"ﬁle", "file", true},
		{"FILE", "ﬁle", true},
		{"liﬆ", "list", true},
		{"STRASSE", "straße", true},
		{"straẞe", "STRASSE", true},
		{"ΜΈΓΕΘΟΣ", "μέγεθος", true},
		{"ᾼ", "αι", true},
		{"", "", true},
		{"\x00", "", true},
		{"forc", "force", false},
		{"forces", "force", false},
		{"fórce", "force", false},
		{"fоrce", "force", false}, // a Cyrillic o
		{"e\u0301", "é", false},   // no reader normalises
		{"\\u0066orce", "force", false},
		{"\xff", "force", false},
		{"", "force", false},
		{"force\x7f", "force", true},
		{"\x7fforce", "force", true},
		{"force", "", false},
		{"\u00a0\u0080", "", true},
	} {
		if got := SameName([]byte(test.name), test.known); got != test.want {
			t.Errorf("%q and %q: %v", test.name, test.known, got)
		}
	}
}

// SameName matches each rune with its other cases in the standard library and x/text, which include
// those of encoding/json, Java and Python.
func TestSameNameToEveryCase(t *testing.T) {
	full := cases.Fold()
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if !unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.M, unicode.N, unicode.So) {
			continue
		}
		for _, other := range []string{string(unicode.ToLower(r)), string(unicode.ToUpper(r)), string(unicode.ToTitle(r)), full.String(string(r))} {
			if !SameName([]byte("x"+string(r)), "x"+other) || !SameName([]byte("x"+other), "x"+string(r)) {
				t.Errorf("SameName does not match %U %q with %q", r, string(r), other)
			}
		}
	}
}

// Mentions finds a name in any spelling that a reader may accept, but not an incomplete name.
func TestMentions(t *testing.T) {
	tests := []struct {
		frame string
		want  bool
	}{
		{`{"x/apiKey":1}`, true},
		{`{"X/APIKEY":1}`, true},
		{`{"x\/api\u212aey":1}`, true},
		{`{"\u200bx/\nap\u0130\u0307 Key":1}`, true},
		{"{\"\u200bx/ap\u0130\u0307\u00a0Key\":1}", true},
		{"{\"x/api\u212aey\":1}", true},
		{`{"x/ap\u0131Key":1}`, true},
		{`{"\u0078/apiKey":1}`, true},
		{`{"\u0000x/\u0000api\u0000\u0000Key\u0000":1}`, true},
		{"x/api\x00Key", true},
		{`x x/x/apiKey`, true},
		{`{"x/apiKe":1}`, false},
		{`{"x/api_key":1}`, false},
		{`x/apiKe\u004`, false},
		{`x/apiKe\`, false},
		{"x/apiKe\xcb", false},
		{"", false},
		{strings.Repeat("\u200bx\ufb04", 1<<18), false},
		{strings.Repeat(`\u0000`, 1<<18) + strings.Repeat("x\x00", 1<<18), false}, // in linear time
	}
	for _, test := range tests {
		if got := Mentions([]byte(test.frame), "x/apiKey"); got != test.want {
			t.Errorf("%.60q: got %v", test.frame, got)
		}
	}
}

// A name that begins with another letter in one of its spellings is found, too, and one at the end of a frame.
func TestMentionsOfOtherNames(t *testing.T) {
	for _, test := range []struct {
		frame, name string
		want        bool
	}{
		{`{"\u212aey":1}`, "key", true},
		{"{\"\u212aey\":1}", "key", true},
		{"{\"\u017fecret\":1}", "secret", true},
		{"{\"\ufb01le\":1}", "file", true},
		{`x\/`, "x/", true},
		{`\u0078`, "x", true},
		{`\u007`, "x", false},
		{"x", "\u212a", false},
		{"k", "\u212a", true},
	} {
		if got := Mentions([]byte(test.frame), test.name); got != test.want {
			t.Errorf("%q mentions %q: %v", test.frame, test.name, got)
		}
	}
}

func TestFold(t *testing.T) {
	for name, want := range map[string]string{"": "", "API\u212aey": "apikey", " \x00a\u0307": "a", "STRA\u1e9eE": "strasse", "\u0130d": "id"} {
		if got := Fold(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
