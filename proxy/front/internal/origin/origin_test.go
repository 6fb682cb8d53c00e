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

// A host may be configured as in the URL of a client, with or without its port. An address of IPv6 has brackets there.
func TestHostAllowed(t *testing.T) {
	for _, row := range []struct {
		header, allowed string
		want            bool
	}{
		{"mcp.example.com:8443", "MCP.example.com", true},
		{"mcp.example.com:8443", "mcp.example.com:8443", true},
		{"mcp.example.com:8444", "mcp.example.com:8443", false},
		{"[2001:db8::5]:8443", "2001:db8::5", true},
		{"[2001:db8::5]:8443", "[2001:db8::5]", true},
		{"[2001:db8::5]:8443", "[2001:db8::5]:8443", true},
		{"[2001:db8::5]", "[2001:DB8::5]", true},
		{"[2001:db8::6]:8443", "[2001:db8::5]", false},
	} {
		if got := HostAllowed(row.header, []string{row.allowed}, netip.MustParseAddr("192.0.2.1")); got != row.want {
			t.Errorf("%+v: got %v", row, got)
		}
	}
}
