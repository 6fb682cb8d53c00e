package cli

import (
	"testing"
)

func TestNearest(t *testing.T) {
	words := []string{"session", "server", "policy", "log"}
	for given, want := range map[string]string{
		"sesion": "session", "Session": "session", "sevrer": "server", "lgo": "log", "polici": "policy",
		"session_id": "", "x": "", "": "", "logs": "log", "zzzzzz": "",
	} {
		if got := Nearest(given, words); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
