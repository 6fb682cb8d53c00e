package cli

import (
	"testing"
)

func TestGetenv(t *testing.T) {
	p := Process{Env: []string{"A=1", "AB=2", "A=3", "E=", "=C:=x", "NOEQUALS"}}
	for name, want := range map[string]string{"A": "1", "AB": "2", "E": "", "B": "", "NOEQUALS": ""} {
		if got := p.Getenv(name); got != want {
			t.Errorf("getenv(%q) = %q, want %q", name, got, want)
		}
	}
}
