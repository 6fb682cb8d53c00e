package audit

import (
	"testing"
	"time"
)

// A time is written as package time has it, also behind one of the same second, or of
// another.
func TestTime(t *testing.T) {
	zone := time.FixedZone("east", 5*60*60+30*60)
	at := time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC)
	var a Audit
	for _, at := range []time.Time{
		at, at.Add(999 * time.Microsecond), at.Add(time.Millisecond), at.Add(time.Second - 1), at.Add(time.Second),
		at, at.In(zone).Add(12345678), at.Add(-time.Hour).In(zone), {}, time.Unix(-1, 5e8), time.Unix(0, 0),
	} {
		want := at.UTC().Format("2006-01-02T15:04:05.000Z")
		if got := string(a.appendTime(nil, at)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
