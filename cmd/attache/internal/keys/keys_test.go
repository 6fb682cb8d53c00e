package keys

import (
	"testing"
	"time"
)

func TestParseExpiry(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"": "0s", "12h": "12h0m0s", "90d": "2160h0m0s", "2026-07-29": "12h0m0s", "2026-07-28T12:00:10Z": "10s",
		"2026-07-28": "", "0s": "", "-1d": "", "d": "", "1.5d": "", "1000000d": "", "99999999999999999999d": "", "soon": "", "1w": "",
	} {
		got, err := ParseExpiry(text, now)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}
