package child

import (
	"context"
	"testing"
)

// start starts a process that does not outlive the test.
func start(t testing.TB, o Options) *Process {
	t.Helper()
	p, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		p.Stdout().Close()
		p.Stop(context.Background())
	})
	return p
}
