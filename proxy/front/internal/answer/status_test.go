package answer

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
)

// A server that exits after server/discover counts as legacy; a server that never received it does not.
func TestStatusOfDiscover(t *testing.T) {
	failed := func(message, data string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":%q,"data":{"source":"attache"%s}}}`, message, data)
	}
	for _, row := range []struct {
		name, method, reply string
		want                int
	}{
		{"server exits", "server/discover", failed("the server ended before it answered: exit status 1", ""), http.StatusNotFound},
		{"server exits and is restarted", "server/discover", failed("", `,"reason":"server_ended","restarted":true`), http.StatusNotFound},
		{"server never received it", "server/discover", failed("", `,"reason":"server_ended","restarted":false`), http.StatusServiceUnavailable},
		{"server does not start", "server/discover", failed("the server could not be started", ""), http.StatusServiceUnavailable},
		{"initialize", "initialize", failed("the server ended before it answered: exit status 1", ""), http.StatusServiceUnavailable},
		{"tool call", "tools/call", failed("the server ended before it answered: exit status 1", ""), http.StatusOK},
	} {
		t.Run(row.name, func(t *testing.T) {
			q := Request{Initialize: row.method == "initialize", Discovers: row.method == "server/discover"}
			got, after := q.status(outbox.Item{Data: []byte(row.reply)})
			if got != row.want || (after != "") != (got == http.StatusServiceUnavailable) {
				t.Errorf("%d with Retry-After %q, want %d", got, after, row.want)
			}
		})
	}
}
