package explain

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
)

// docs/explain.md documents every member of the JSON output.
func TestExplainMembersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/explain.md")
	testkit.Check(t, err)
	_, table, ok := strings.Cut(string(page), "\n## For programs\n")
	if !ok {
		t.Fatal("docs/explain.md has no part for programs")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	for _, v := range []any{explanation{}, callReport{}, factReport{}, layerReport{}, noteReport{}, editReport{}} {
		typ := reflect.TypeOf(v)
		for field := range typ.Fields() {
			member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(table, "`"+member) && !strings.Contains(table, "."+member) {
				t.Errorf("the member %s of %s is not documented", member, typ.Name())
			}
		}
	}
}
