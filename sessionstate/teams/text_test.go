package teams

import (
	"strings"
	"testing"
	"time"
)

func TestChecks(t *testing.T) {
	title := func(s string) error { return CheckTitle(s) }
	message := func(s string) error { _, err := CheckMessage("Message", s, MaxMessage); return err }
	for _, test := range []struct {
		check func(string) error
		text  string
		want  string
	}{
		{title, "Review cart_2-b", ""},
		{title, "Überprüfung नमस्ते 検査", ""},
		{title, strings.Repeat("ü", 200), ""},
		{title, "", "Session title must be 1-200 characters"},
		{title, strings.Repeat("ü", 201), "Session title must be 1-200 characters"},
		{title, " ", "Session title contains invalid characters"},
		{title, "a<b", "Session title contains invalid characters"},
		{title, `a"b`, "Session title contains invalid characters"},
		{title, "a\nb", "Session title contains invalid characters"},
		{title, "a\u202eb", "Session title contains invalid characters"},
		{title, "a\u3164b", "Session title contains invalid characters"},
		{title, "a\ufe01b", "Session title contains invalid characters"},
		{title, "a\u200bb", "Session title contains invalid characters"},
		{title, "a\xffb", "Session title contains invalid characters"},
		{CheckName, "python-specialist_2", ""},
		{CheckName, "", "Agent name must be alphanumeric with hyphens/underscores"},
		{CheckName, "a b", "Agent name must be alphanumeric with hyphens/underscores"},
		{CheckName, "../x", "Agent name must be alphanumeric with hyphens/underscores"},
		{CheckName, strings.Repeat("a", 65), "Agent name must be alphanumeric with hyphens/underscores"},
		{message, "a\tb\nc", ""},
		{message, strings.Repeat("ü", 50_000), ""},
		{message, "", "Message is empty"},
		{message, strings.Repeat("ü", 50_001), "Message too long (max 50000 chars)"},
		{message, "a\x00b", "Message contains invalid control characters"},
		{message, "a\x1b[31mb", "Message contains invalid control characters"},
		{message, "a\rb", "Message contains invalid control characters"},
		{message, "a\x7fb", "Message contains invalid control characters"},
		{message, "a\xffb", "Message is not valid UTF-8"},
	} {
		got := ""
		if err := test.check(test.text); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%.40q: %q, want %q", test.text, got, test.want)
		}
	}
	if got, err := CheckMessage("Message", "a\r\n\r\nb", 10); got != "a\n\nb" || err != nil {
		t.Errorf("line ends became %q, %v", got, err)
	}
}

// The time until the next attempt is never negative: the limit may have changed after the refusal.
func TestTooFast(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		-2500 * time.Millisecond: "0.1", 0: "0.1", time.Millisecond: "0.1", 900 * time.Millisecond: "0.9", 901 * time.Millisecond: "1.0", 61 * time.Second: "61.0",
	} {
		if got := tooFast("1 session per second", wait).Error(); got != "Rate limit exceeded (1 session per second): try again in "+want+" s" {
			t.Errorf("%v: %s", wait, got)
		}
	}
}
