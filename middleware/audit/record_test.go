package audit

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/proxy/wire"
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

// A call that has ended is no longer among the calls in flight, which would grow without end.
func TestEndedCallsAreRemoved(t *testing.T) {
	shared := Compile(Options{Log: chain.New(chain.Options{File: filepath.Join(t.TempDir(), "audit.jsonl")})})
	c := shared.Connect(ConnOptions{})
	var calls [3]middleware.Call
	var entries []*entry
	for i := range calls {
		e := c.begin(&calls[i], wire.NewMessage(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"x"}`)))
		c.inFlight = append(c.inFlight, e)
		entries = append(entries, e)
	}
	for _, e := range entries {
		c.remove(e)
	}
	if n := len(c.inFlight); n > 0 {
		t.Errorf("%d calls are in flight", n)
	}
	c.Close()
	if err := shared.Close(time.Minute); err != nil {
		t.Error(err)
	}
}

// Whether jq can read a text does not depend on an escape in it.
func TestPortable(t *testing.T) {
	deep := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for text, want := range map[string]bool{
		deep(maxDepth):                                true,
		deep(maxDepth + 1):                            false,
		`["\n",` + deep(maxDepth) + `]`:               false,
		`["\u0041",` + deep(maxDepth-1) + `]`:         true,
		`"[\"[`:                                       true,
		"[" + strings.Repeat("[],", maxDepth) + "{}]": true,
		`"\ud800"`:                                    false,
		`"\u004`:                                      true,
		`"\ud83d\ude00"`:                              true,
	} {
		if got := portable([]byte(text)); got != want {
			t.Errorf("portable(%.20q) = %v", text, got)
		}
	}
}
