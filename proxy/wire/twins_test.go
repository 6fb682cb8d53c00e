package wire

import (
	"strings"
	"testing"
)

// A name is found however a reader may come to it, and where it is cut off it is not.
func TestMentions(t *testing.T) {
	tests := []struct {
		frame string
		want  bool
	}{
		{`{"x/apiKey":1}`, true},
		{`{"X/APIKEY":1}`, true},
		{`{"x\/api\u212aey":1}`, true},
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
		{strings.Repeat(`\u0000`, 1<<18) + strings.Repeat("x\x00", 1<<18), false}, // in a time that grows with its length
	}
	for _, test := range tests {
		if got := Mentions([]byte(test.frame), "x/apiKey"); got != test.want {
			t.Errorf("%.60q: got %v", test.frame, got)
		}
	}
}
