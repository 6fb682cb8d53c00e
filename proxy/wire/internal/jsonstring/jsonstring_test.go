package jsonstring

import (
	"encoding/json"
	"testing"
)

// Every digit of an escape counts, in both cases, and nothing beside them does.
func TestHex4(t *testing.T) {
	for text, want := range map[string]rune{
		"0000": 0, "0129": 0x129, "09af": 0x9af, "09AF": 0x9af, "aAfF": 0xaaff, "12345": 0x1234,
		"": -1, "123": -1, "000g": -1, "000G": -1, "000/": -1, "000:": -1, "000@": -1, "000`": -1,
	} {
		if got, ok := Hex4([]byte(text)); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %x, %v", text, got, ok)
		}
	}
}

// A text is quoted such that it is read back, and only what JSON demands is escaped.
func TestAppendQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"": `""`, "a b": `"a b"`, "~\x7f": "\"~\x7f\"", " \x1f": `" \u001f"`, "\x00": `"\u0000"`, `a"b\c`: `"a\"b\\c"`,
		"\n\t\r\b": `"\n\t\r\u0008"`, "é\u2028": "\"é\u2028\"", "a\xffb": "\"a\ufffdb\"", "é \"": `"é \""`,
		`"`: `"\""`, `\`: `"\\"`, "\x80a": "\"\ufffda\"", "\xff": "\"\ufffd\"",
	} {
		got := AppendQuoted(nil, text)
		var back string
		if err := json.Unmarshal(got, &back); string(got) != want || err != nil {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

// Is compares what a string stands for, not how it is written.
func TestIs(t *testing.T) {
	for _, test := range []struct {
		raw, text string
		want      bool
	}{
		{`""`, "", true}, {`"a"`, "", false}, {`""`, "a", false}, {`"ab"`, "ab", true}, {`"ab"`, "ac", false},
		{`"\u0061b"`, "ab", true}, {`"a\u0062"`, "ab", true}, {`"\u0061\u0062"`, "ab", true}, {`"\\"`, `\\`, false}, {`"\\"`, `\`, true},
		{`"\n"`, "\n", true}, {`"a\n"`, `a\n`, false}, {`"abc"`, "ab", false},
	} {
		if got := Is([]byte(test.raw), test.text); got != test.want {
			t.Errorf("%s is %q: %v", test.raw, test.text, got)
		}
	}
}
