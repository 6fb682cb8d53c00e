package config

import (
	"testing"
)

func TestKeyID(t *testing.T) {
	for arg, want := range map[string]string{
		"x7k2m4qa": "x7k2m4qa", "atk_x7k2m4qa_SECRET": "x7k2m4qa", "our_own_x7k2m4qa_SECRET": "x7k2m4qa", "a_b": "a_b", "": "",
	} {
		if got := KeyID(arg); got != want {
			t.Errorf("%q: %q, want %q", arg, got, want)
		}
	}
}
