package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// What docs/explain.md shows is what the script explain_docs makes.
func TestExplainDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
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
		if !strings.Contains(string(page), "\n"+string(f.Data)+"```\n") {
			t.Errorf("docs/explain.md does not show %s of the script as it is", f.Name)
		}
	}
	if shown != 3 {
		t.Errorf("%d files of the script are to be shown, not 3", shown)
	}
}

// The documentation of the JSON form names every member there is.
func TestExplainMembersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "\n## For programs\n")
	if !ok {
		t.Fatal("docs/explain.md has no part for programs")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	for _, v := range []any{explanation{}, explained{}, explainedFact{}, explainedPart{}, explainedNote{}, explainedEdit{}} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			member, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(table, "`"+member) && !strings.Contains(table, "."+member) {
				t.Errorf("the member %s of %s is not documented", member, typ.Name())
			}
		}
	}
}
