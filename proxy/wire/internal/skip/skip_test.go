package skip

import (
	"strings"
	"testing"
)

// StringEnd finds the end of a string whether it scans it by words, by IndexByte or in two parts.
func TestStringEnd(t *testing.T) {
	parts := []string{"", `\"`, `\\`, `\\\"`, `\\\\`, "x", "é", `\`, strings.Repeat("y", 7), strings.Repeat("y", 63), strings.Repeat("y", 64), strings.Repeat("y", 200), strings.Repeat(`\\`, 40), strings.Repeat(`\"`, 40)}
	for _, a := range parts {
		for _, b := range parts {
			for _, c := range parts {
				in := a + b + c
				want := len(in)
				for i := 0; i < len(in); i++ {
					if in[i] == '\\' {
						i++
					} else if in[i] == '"' {
						want = i
						break
					}
				}
				if want == len(in) && !escapedEnd(in) {
					in += `"` // now the string ends there
				}
				end, escaped := StringEnd([]byte(in), 0)
				if end != want || escaped != (want == len(in) && escapedEnd(in)) {
					t.Fatalf("%q ends at %d, %v; want %d", in, end, escaped, want)
				}
			}
		}
	}
}

func escapedEnd(s string) bool {
	n := len(s) - len(strings.TrimRight(s, `\`))
	return n%2 == 1
}
