package record

import (
	"strings"
	"testing"
)

// A text of many beginnings of secrets is not read from each of them to its end. Otherwise this test takes hours.
func TestScrubIsLinear(t *testing.T) {
	t.Parallel()
	s, prose := NewScrubber(Secrets{}), NewScrubber(Secrets{Prose: true})
	for _, part := range []string{"-eyJ", "_eyJ", "/eyj-eyJ", `-----BEGIN PRIVATE KEY-----\\x`, "-----BEGIN RSA PRIVATE KEY-----", "token=scrubbed-", "-signature=scrubbed", "atk_scrubbed_",
		"atk_a", "token\\\\", "a://b:", "bearer scrubbed", "sk-", "token: ", `\"`, "-----END PRIVATE KEY-----",
		" /-----BEGIN PRIVATE KEY-----: ", "/token: -"} {
		for _, around := range []string{`{"a":"`, `{\"token\": \"`, ""} {
			line := []byte(around + strings.Repeat(part, 256<<10/len(part)) + around)
			s.Line(line)
			prose.Line(line)
		}
	}
	prose.Line([]byte(strings.Repeat("://u:p@", 2<<20/7)))
}
