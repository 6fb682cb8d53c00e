package term

import (
	"testing"
)

// Escapes in the names of peers are replaced; attache's own colours are not.
func TestPrintableLines(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\x1b[31mred\x1b[0m\n":  "plain\n\x1b[31mred\x1b[0m\n",
		"\x1b[8mhidden\x1b[1;8m\x1b[m": "\uFFFD[8mhidden\uFFFD[1;8m\uFFFD[m",
		"a\x00b\x07\u009b2Jc\n":        "a\uFFFDb\uFFFD\uFFFD2Jc\n",
		"\x1b[2J\x1b]0;x\x07\x1b[31":   "\uFFFD[2J\uFFFD]0;x\uFFFD\uFFFD[31",
	} {
		if got := PrintableLines(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
