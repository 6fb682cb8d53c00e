package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// docs/rules.md shows the session that testdata/script/pinned.txtar plays.
func TestRulesSession(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := txtar.ParseFile(filepath.Join("testdata", "script", "pinned.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, f := range script.Files {
		if f.Name == "server.sh" {
			continue
		}
		shown++
		if !strings.Contains(string(guide), "\n"+string(f.Data)) {
			t.Errorf("docs/rules.md does not show %s of testdata/script/pinned.txtar:\n%s", f.Name, f.Data)
		}
	}
	if shown != 5 {
		t.Errorf("%d files of the script are shown, want 5", shown)
	}
}
