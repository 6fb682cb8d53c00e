package term

import (
	"regexp"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/policy"
)

// PaintBlock adds only colours to the block.
func TestPaintBlock(t *testing.T) {
	block := policy.Render(policy.Effective{
		Policies: []policy.Policy{
			{Name: "tests", Position: policy.Prepend, Text: "All changes: with tests (always).", Inherited: true},
			{Name: "bare"},
			{Text: "no name"},
			{Name: "odd", Text: "a] b: c ("},
		},
		Objectives: []string{"[append] looks: like one (local)", "ends in a colon:"},
	}, 0)
	painted := PaintBlock(block)
	if plain := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(painted, ""); plain != block {
		t.Errorf("without its colours it is\n%s\nwant\n%s", plain, block)
	}
	for _, want := range []string{
		"\x1b[2m═══ SESSION CONTEXT (auto-injected) ═══\x1b[0m\n",
		"\n\x1b[1mPolicies:\x1b[0m\n",
		"\n  - \x1b[36m[prepend]\x1b[0m \x1b[1mtests\x1b[0m: All changes: with tests (always).\x1b[2m (inherited)\x1b[0m\n",
		"\n  - ends in a colon:\n",
	} {
		if !strings.Contains(painted, want) {
			t.Errorf("no %q in\n%q", want, painted)
		}
	}
}
