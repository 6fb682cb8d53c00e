package main

import (
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// docs/explain.md shows the output of the script explain_docs.
func TestExplainDocs(t *testing.T) {
	page := page(t, "docs/explain.md")
	script, err := txtar.ParseFile("testdata/script/explain_docs.txtar")
	if err != nil {
		t.Fatal(err)
	}
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
