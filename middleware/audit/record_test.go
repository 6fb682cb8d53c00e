package audit

import (
	"strings"
	"testing"
	"time"
)

// The time of a record is in UTC with milliseconds, which are truncated.
func TestHead(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	for _, test := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC), "2026-07-28T00:00:00.000Z"},
		{time.Date(2026, 7, 28, 9, 8, 7, 123_999_999, time.UTC), "2026-07-28T09:08:07.123Z"},
		{time.Date(2026, 7, 28, 9, 8, 7, 45_000_000, time.UTC), "2026-07-28T09:08:07.045Z"},
		{time.Date(2026, 7, 28, 9, 8, 7, 999_999_999, zone), "2026-07-28T07:08:07.999Z"},
	} {
		s := Shared{run: "r"}
		if got, want := string(s.head(nil, "call", test.at)), `{"time":"`+test.want+`","kind":"call","run":"r"`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A text is cut at 512 bytes, and never within a character.
func TestClip(t *testing.T) {
	longest := strings.Repeat("x", maxText)
	for _, test := range []struct{ text, want string }{
		{longest, longest},
		{longest + "x", longest + "…"},
		{longest[1:] + "é", longest[1:] + "…"},
	} {
		if got := clip(test.text); got != test.want {
			t.Errorf("got %d bytes, want %d", len(got), len(test.want))
		}
	}
}
