package keys

import (
	"cmp"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

// A revocation that waits for a row that another transaction has locked ended after 10 seconds, the default of
// Answer, with the error that the database is not available.
func TestTimeouts(t *testing.T) {
	if answer := cmp.Or(timeouts.Answer, database.DefaultTimeouts().Answer); answer < timeouts.All {
		t.Errorf("a transaction is ended after %v, and may take %v", answer, timeouts.All)
	}
}

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
