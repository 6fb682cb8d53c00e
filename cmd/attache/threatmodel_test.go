package main

import (
	"os"
	"testing"
)

// The configuration that docs/threat-model.md recommends is one.
func TestThreatModelConfiguration(t *testing.T) {
	guide, err := os.ReadFile("../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	configurations := blocks(string(guide), "yaml")
	if len(configurations) == 0 {
		t.Fatal("the page has no configuration")
	}
	for _, text := range configurations {
		if _, problems := read(text); len(problems) > 0 {
			t.Errorf("%v\n%s", problems, text)
		}
	}
}
