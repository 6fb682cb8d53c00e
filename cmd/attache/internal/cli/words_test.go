package cli

import (
	"testing"
)

func TestNearest(t *testing.T) {
	words := []string{"session", "server", "policy", "log"}
	for word, want := range map[string]string{
		"sesion": "session", "Session": "session", "sevrer": "server", "lgo": "log", "polici": "policy",
		"session_id": "", "x": "", "": "", "logs": "log", "zzzzzz": "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
