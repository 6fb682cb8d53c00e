package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/auditlog"
	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// The session in docs/audit.md is whole, is printed as the guide says, and has no
// member that the guide does not explain.
func TestAuditGuide(t *testing.T) {
	data, err := os.ReadFile("../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(data)
	blocks := regexp.MustCompile("(?s)```(text|jsonl)\n(.*?)```").FindAllStringSubmatch(guide, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d examples, want what tail prints, the file, what verify prints", len(blocks))
	}
	tailed, file, verified := blocks[0][2], blocks[1][2], blocks[2][2]

	var v chain.Verifier
	if err := v.File("audit.jsonl", strings.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(verified, v.Digest.String()) {
		t.Errorf("verify does not print the last digest, %s", v.Digest)
	}
	var out bytes.Buffer
	p := auditlog.NewPrinter(&out, false, time.UTC)
	explained := map[string]bool{}
	for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(guide, -1) {
		explained[name[1]] = true
	}
	for line := range strings.Lines(file) {
		if err := p.Record([]byte(line)); err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			t.Fatal(err)
		}
		for name := range members {
			if !explained[name] {
				t.Errorf("docs/audit.md does not explain %s", name)
			}
		}
	}
	if out.String() != tailed {
		t.Errorf("tail prints\n%s\nand docs/audit.md has\n%s", out.String(), tailed)
	}
}
