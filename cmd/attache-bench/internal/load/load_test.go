//go:build linux

package load

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database/pgserver"
)

// How much is done in the time depends on the machine; that nothing is lost and no limit
// exceeded does not.
func TestRun(t *testing.T) {
	var out strings.Builder
	err := Run(t.Context(), Options{
		Duration: 2 * time.Second, Daily: 800, Attaches: 20, Fronts: 2, Speed: 300, Out: &out, Log: t.Output(),
	})
	if errors.Is(err, pgserver.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, part := range []string{"Limits: of 30 agents started at once 10 began, of 60 messages to one session 50", "| request |", ", 0 lost"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the report lacks %q:\n%s", part, out.String())
		}
	}
	t.Log(out.String())
}
