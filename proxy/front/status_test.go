package front

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/remote"
)

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
