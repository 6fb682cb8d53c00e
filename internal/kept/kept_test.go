package kept_test

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/kept"
)

// A long text is kept as a digest.
func TestText(t *testing.T) {
	short, long := strings.Repeat("x", kept.Max), strings.Repeat("x", kept.Max+1)
	if kept.Text(short) != short || kept.Text(long) == kept.Text(long+"x") || len(kept.Text(long)) >= kept.Max || !strings.HasPrefix(kept.Text(long), "sha256:") {
		t.Errorf("kept as %q and %q", kept.Text(short), kept.Text(long))
	}
}
