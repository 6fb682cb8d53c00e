package origin

import (
	"net/netip"
	"testing"
)

// Pages of this machine may use a front that only this machine reaches, and no other.
func TestIsLocal(t *testing.T) {
	for _, row := range []struct {
		origin, local string
		secure, want  bool
	}{
		{"http://localhost:8333", "127.0.0.1:8333", false, true},
		{"http://[::1]:8333", "[::ffff:127.0.0.1]:8333", false, true},
		{"http://localhost:8333", "192.0.2.1:8333", false, false},
		{"http://localhost:8333", "127.0.0.1:8334", false, false},
		{"https://localhost:8333", "127.0.0.1:8333", false, false},
		{"https://localhost:8333", "127.0.0.1:8333", true, true},
		{"http://localhost:8333", "127.0.0.1:8333", true, false},
	} {
		if got := IsLocal(row.origin, netip.MustParseAddrPort(row.local), row.secure); got != row.want {
			t.Errorf("%+v: got %v", row, got)
		}
	}
}
