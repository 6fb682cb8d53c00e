package serve

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
)

// The log names the address of a front behind a balancer, whose URL is that of all fronts.
func TestAnnounceAddress(t *testing.T) {
	for config, named := range map[string]bool{"serve: {public_url: https://tools.example/mcp}\n": true, "{}\n": false} {
		var out bytes.Buffer
		r := startLogging(t, slog.New(slog.NewTextHandler(logging.NewStderr(&out), nil)), config)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		defer l.Close()
		r.announce([]net.Listener{l})
		if got := out.String(); strings.Contains(got, "address="+l.Addr().String()) != named || !strings.Contains(got, "msg=serving") {
			t.Errorf("%s: the log has %q", config, got)
		}
	}
}
