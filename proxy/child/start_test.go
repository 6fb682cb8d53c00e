package child

import (
	"context"
	"testing"
)

// check ends the test if err is not nil.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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
