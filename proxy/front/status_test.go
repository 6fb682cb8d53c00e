package front

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/remote"
)

// A server that exits after server/discover counts as legacy; one that never received it does not.
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
			p, _, _ := parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"`+row.method+`"}`+"\n"), nil)
			got, after := p.calls(newStream(true))[0].status(outbox.Item{Data: []byte(row.reply)})
			if got != row.want || (after != "") != (got == http.StatusServiceUnavailable) {
				t.Errorf("%d with Retry-After %q, want %d", got, after, row.want)
			}
		})
	}
}

// A remote server of an earlier revision refuses server/discover in its own way, such as with a text. A client
// that gets the status 503 instead does not go on with initialize.
func TestRefusedDiscover(t *testing.T) {
	for refused, want := range map[int]int{400: 400, 401: 503, 403: 503, 404: 404, 405: 405, 406: 406, 422: 422, 500: 500} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Bad Request: Unsupported protocol version", refused)
		}))
		f := New(Options{Open: func(Opening) (Relay, error) {
			return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
				return remote.Start(remote.Options{URL: server.URL, Transport: remote.NewTransport(remote.TransportOptions{})})
			}}}, nil
		}})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`))
		r.Header = http.Header{
			"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"server/discover"},
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%d became %d, want %d: %s", refused, w.Code, want, w.Body)
		}
		f.Drain(t.Context())
		server.Close()
	}
}
