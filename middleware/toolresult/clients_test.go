package toolresult_test

import (
	"os"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware/toolresult"
)

// Every client of the table has its measurement, and its row in the documentation.
func TestClients(t *testing.T) {
	page, err := os.ReadFile("../../docs/briefing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range toolresult.Clients() {
		if c.Measured == "" || !strings.Contains(string(page), "(`"+c.Name+"`)") {
			t.Errorf("%s: measured %q; or docs/briefing.md has no row for it", c.Name, c.Measured)
		}
		if c.StructuredAlone && c.ContentAlone {
			t.Errorf("%s shows two things alone", c.Name)
		}
	}
}
