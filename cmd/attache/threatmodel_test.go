package main

import (
	"os"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// The configuration that docs/threat-model.md recommends is valid.
func TestThreatModelConfiguration(t *testing.T) {
	guide, err := os.ReadFile("../../docs/threat-model.md")
	check(t, err)
	configurations := blocks(string(guide), "yaml")
	if len(configurations) == 0 {
		t.Fatal("the page has no configuration")
	}
	for _, text := range configurations {
		if _, err := config.Load(attachetest.WriteConfig(t, text), nil, nil); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
