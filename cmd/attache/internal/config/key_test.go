package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// PowerShell on Windows writes a byte order mark in front of the key, or UTF-16.
func TestReadKeyFileOfWindows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for content, want := range map[string]string{
		"atk_id_SECRET\r\n":             "",
		"\ufeffatk_id_SECRET\r\n":       "",
		"\xff\xfea\x00t\x00k\x00\n\x00": "is not UTF-8 text: save it as UTF-8",
	} {
		check(t, os.WriteFile(path, []byte(content), 0o600))
		key, err := readKeyFile(path)
		if want == "" && (err != nil || key != "atk_id_SECRET") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v; want %s", content, key, err, want)
		}
	}
}

func TestKeyID(t *testing.T) {
	for arg, want := range map[string]string{
		"x7k2m4qa": "x7k2m4qa", "atk_x7k2m4qa_SECRET": "x7k2m4qa", "our_own_x7k2m4qa_SECRET": "x7k2m4qa", "a_b": "a_b", "": "",
	} {
		if got := KeyID(arg); got != want {
			t.Errorf("%q: %q, want %q", arg, got, want)
		}
	}
}
