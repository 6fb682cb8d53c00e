package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/auditlog"
	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// The session in docs/audit.md is complete, and prints what the guide shows.
func TestAuditGuide(t *testing.T) {
	guide := page(t, "docs/audit.md")
	blocks := regexp.MustCompile("(?s)```(text|jsonl)\n(.*?)```").FindAllStringSubmatch(guide, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d examples, want what tail prints, the file, what verify prints", len(blocks))
	}
	tailed, file, verified := blocks[0][2], blocks[1][2], blocks[2][2]

	var v chain.Verifier
	check(t, v.File("audit.jsonl", strings.NewReader(file)))
	if !strings.Contains(verified, v.Digest.String()) {
		t.Errorf("verify does not print the last digest, %s", v.Digest)
	}
	var out bytes.Buffer
	p := auditlog.NewPrinter(&out, false, time.UTC)
	for line := range strings.Lines(file) {
		check(t, p.Record([]byte(line)))
	}
	if out.String() != tailed {
		t.Errorf("tail prints\n%s\nand docs/audit.md has\n%s", out.String(), tailed)
	}
}

// docs/audit.md explains every member of a record, or links to the guide that does.
func TestAuditMembers(t *testing.T) {
	guides := page(t, "docs/audit.md") + page(t, "docs/restart.md") + page(t, "docs/teams.md")
	explained := map[string]bool{}
	for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(guides, -1) {
		explained[name[1]] = true
	}
	written := regexp.MustCompile(`\.(?:text|raw|number|flag|list|name|append)\((?:r, )?"([a-z_]+)"`)
	fact := regexp.MustCompile(`(?m)^\t\t\{"([a-z_]+)", "[a-z.]+"\},$`) // whose call it was
	found := 0
	own := regexp.MustCompile(`json:"([a-z_]+)`) // of the chain
	files, err := filepath.Glob("../../middleware/audit/*.go")
	check(t, err)
	files = append(files, "../../middleware/audit/chain/line.go")
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source := page(t, strings.TrimPrefix(filepath.ToSlash(file), "../../"))
		for _, name := range slices.Concat(written.FindAllStringSubmatch(source, -1), fact.FindAllStringSubmatch(source, -1), own.FindAllStringSubmatch(source, -1)) {
			found++
			if !explained[name[1]] {
				t.Errorf("%s writes %s, which no guide explains", file, name[1])
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d members were found", found)
	}
}
