package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

// docs/explain.md shows the output of the script explain_docs.
func TestExplainDocs(t *testing.T) {
	page := page(t, "docs/explain.md")
	script, err := txtar.ParseFile("testdata/script/explain_docs.txtar")
	check(t, err)
	shown := 0
	for _, f := range script.Files {
		if !strings.HasPrefix(f.Name, "doc-") && f.Name != "config.yaml" {
			continue
		}
		shown++
		if !strings.Contains(page, "\n"+string(f.Data)+"```\n") {
			t.Errorf("docs/explain.md does not show %s of the script as it is", f.Name)
		}
	}
	if shown != 2 {
		t.Errorf("%d files of the script are to be shown, not 2", shown)
	}
}

// The output of --json is JSON, and facts are a list, also for a frame that is not UTF-8.
func TestExplainNotUTF8(t *testing.T) {
	file := filepath.Join(t.TempDir(), "frame.json")
	check(t, os.WriteFile(file, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":"`+"\xff"+`"}}}`), 0o600))
	stdout, stderr, status := attache(t, nil, "explain", "--json", "--frame", file)
	var got struct{ Calls []struct{ Facts []any } }
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || status != 0 || len(got.Calls) != 1 || got.Calls[0].Facts == nil || !utf8.ValidString(stdout) {
		t.Errorf("status %d, %v\n%s%s", status, err, stdout, stderr)
	}
}
