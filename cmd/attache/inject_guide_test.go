package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/sessionstate"
)

// The examples in docs/inject.md have the input and output that it shows.
func TestInjectGuide(t *testing.T) {
	guide := page(t, "docs/inject.md")
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```([a-z ]+)\n(.*?)```").FindAllStringSubmatch(guide, -1) {
		blocks[m[1]] = m[2]
	}
	p := attachetest.WriteConfig(t, blocks["yaml"])
	line := regexp.MustCompile(`attache inject (.*) \.mcp\.json`).FindStringSubmatch(guide)
	p.Args = append([]string{"inject"}, strings.Fields(line[1])...)
	var out, stderr strings.Builder
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(blocks["json in"]), &out, &stderr
	if status := run(t.Context(), p); status != 0 {
		t.Fatalf("exit status %d: %s", status, &stderr)
	}
	if want := blocks["json out"]; out.String() != want {
		t.Errorf("it becomes\n%s\nwant\n%s", &out, want)
	}
	if !strings.Contains(stderr.String(), "this one is "+sessionstate.Sandboxed) {
		t.Errorf("shell is not left out for its trust: %s", &stderr)
	}
}
