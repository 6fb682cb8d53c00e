package cli

import (
	"runtime"
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

// Windows ignores the case of names.
func TestGetenvOfAnotherCase(t *testing.T) {
	want := ""
	if runtime.GOOS == "windows" {
		want = "1"
	}
	if got := (Process{Env: []string{"Path=1", "PATHS=2"}}).Getenv("PATH"); got != want {
		t.Errorf("PATH is %q, want %q", got, want)
	}
}
