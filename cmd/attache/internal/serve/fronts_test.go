package serve

import (
	"net"
	"os"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// Other fronts and balancers reach a front at an address of this machine, which 0.0.0.0 is not.
func TestAddress(t *testing.T) {
	name, err := os.Hostname()
	check(t, err)
	mine := net.JoinHostPort(name, "80")
	for listen, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80", "[::1]:80": "[::1]:80", "mcp.example:80": "mcp.example:80", ":80": mine, "0.0.0.0:80": mine, "[::]:80": mine,
	} {
		s := &service{settings: &config.ServeSettings{Listen: listen}}
		if got := s.address(); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}
