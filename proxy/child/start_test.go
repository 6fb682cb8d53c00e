package child

import (
	"context"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
)

var check = testkit.Check

// start starts a process that does not outlive the test.
func start(t testing.TB, o Options) *Process {
	t.Helper()
	p, err := Start(t.Context(), o)
	check(t, err)
	t.Cleanup(func() {
		p.kill()
		p.Stdout().Close()
		p.Stop(context.Background())
	})
	return p
}
