package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
)

// auditedSettings returns settings with an audit file in a directory of the test.
func auditedSettings(t *testing.T, config string) (*config.Settings, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	p := attachetest.WriteConfig(t, fmt.Sprintf(config, file))
	s := attachetest.Load(t, p)
	return s, file
}

// No frame in which any parser reads a tools/call bypasses the audit, whether rules enforce or the frame is
// passed on unchanged.
func TestHostileFramesAreAudited(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"enforced":     `{audit: {file: %q}, access: {rules: [{tools: [drop], deny: true}]}}`,
		"not enforced": `{audit: {file: %q}}`,
		"required":     `{audit: {file: %q, required: true}}`,
	} {
		for _, f := range proxytest.Frames(t, hostileFrames) {
			if !readAsCall(f.Bytes) {
				continue
			}
			t.Run(name+"/"+f.Name, func(t *testing.T) {
				t.Parallel()
				s, file := auditedSettings(t, config)
				relayLines(t, s, hello+string(f.Bytes)+"\n")
				records, err := os.ReadFile(file)
				if err != nil || !bytes.Contains(records, []byte(`"kind":"call"`)) && !bytes.Contains(records, []byte(`"kind":"aside"`)) {
					t.Errorf("there is no record of %.300q: %s, %v", f.Bytes, records, err)
				}
			})
		}
	}
}

func readAsCall(frame []byte) bool {
	for _, line := range bytes.FieldsFunc(frame, func(c rune) bool { return c == '\n' || c == '\r' }) {
		if len(lastWins(line))+len(merging(line))+len(firstWins(line)) > 0 {
			return true
		}
	}
	return false
}

// The audit is at its place in the chain, and survives a reload of the configuration.
func TestAuditInTheChain(t *testing.T) {
	const rules = ", access: {default: deny}, policy: {dir: ., scope: a}"
	tests := []struct {
		config string
		want   []string // without the layers that are always there
	}{
		{`{audit: {file: %q}}`, []string{"audit", "capture", "arguments"}},
		{`{audit: {file: %q, required: true}}`, []string{"audit", "capture", "arguments", "audit-gate"}},
		{`{audit: {file: %q, required: true}` + rules + `}`, []string{"audit", "capture", "access-list", "arguments", "access", "audit-gate", "briefing"}},
		{`{audit: {file: %q, required: true}, dry_run: true}`, []string{"audit", "capture", "dry-run"}},
	}
	for _, test := range tests {
		s, _ := auditedSettings(t, test.config)
		conn := assemble(t, s, assembly.Options{Audit: true}, assembly.ConnOptions{Control: new(proxy.Control)})
		first := conn.Names()
		if _, err := conn.Shared().Reload(s); err != nil {
			t.Fatal(err)
		}
		for _, got := range [][]string{first, conn.Names()} {
			if i := slices.Index(got, "trace"); i >= 0 && i > slices.Index(got, "audit") {
				t.Errorf("audit is outside trace: %v", got)
			}
			got = slices.DeleteFunc(got, func(name string) bool { return name == "trace" || name == "announce" || name == "catalog" })
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: got %v, want %v", test.config, got, test.want)
			}
		}
	}
}
