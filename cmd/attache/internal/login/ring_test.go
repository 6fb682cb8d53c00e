package login

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
)

// Clients whose SDK passes on only HOME, PATH and the like start attache without the variables of the desktop session.
// It finds the session bus nevertheless, as a login in a terminal does.
func TestBusWithoutVariables(t *testing.T) {
	with, without := t.TempDir(), t.TempDir()
	testkit.Check(t, os.WriteFile(filepath.Join(with, "bus"), nil, 0o600))
	for _, test := range []struct {
		address, dir string
		want         bool
	}{
		{"", with, true},
		{"", without, false},
		{"unix:path=/tmp/bus", without, true},
		{"autolaunch:", with, false},
	} {
		if got := hasBus(test.address, test.dir); got != test.want {
			t.Errorf("address %q, directory %s: %t", test.address, test.dir, got)
		}
	}
}
