package loopback_test

import (
	"testing"

	"github.com/attache-mcp/attache/internal/loopback"
)

func TestIs(t *testing.T) {
	for _, host := range []string{"localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "::1", "::1%lo", "::ffff:127.0.0.1"} {
		if !loopback.Is(host) {
			t.Errorf("Is(%q) = false", host)
		}
	}
	for _, host := range []string{"", "localhost.", "localhost.example", "127.1", "2130706433", "0.0.0.0", "::", "::ffff:0.0.0.0", "::ffff:10.0.0.1", "10.0.0.1", "[::1]"} {
		if loopback.Is(host) {
			t.Errorf("Is(%q) = true", host)
		}
	}
}
