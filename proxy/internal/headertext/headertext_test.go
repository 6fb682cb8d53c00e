package headertext

import "testing"

func TestEncode(t *testing.T) {
	for text, want := range map[string]string{
		"list_repos": "list_repos", "a b": "a b", "a\tb": "a\tb", "": "=?base64??=", " a": "=?base64?IGE=?=", "a\nb": "=?base64?YQpi?=",
		"café": "=?base64?Y2Fmw6k=?=", "=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=", "=?base64?x": "=?base64?x", "\x7f": "=?base64?fw==?=", "~": "~",
	} {
		got := Encode(text)
		if got != want {
			t.Errorf("Encode(%q) = %q, want %q", text, got, want)
		}
		if back, ok := Decode(got); back != text || !ok {
			t.Errorf("Decode(%q) = %q, %v", got, back, ok)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, value := range []string{"=?base64?*?=", "=?base64?YQ?=", "=?base64?YR==?=", "=?base64?/w==?="} {
		if text, ok := Decode(value); ok {
			t.Errorf("Decode(%q) = %q", value, text)
		}
	}
}
