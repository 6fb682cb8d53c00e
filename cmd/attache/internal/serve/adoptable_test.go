package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A counter is a remote server that counts the calls of each session.
type counter struct {
	mu     sync.Mutex
	opened int
	ended  []string
	calls  map[string]int // by session
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	session := r.Header.Get("Mcp-Session-Id")
	body, _ := io.ReadAll(r.Body)
	root := wire.Value{Raw: body}
	n, known := c.calls[session]
	w.Header().Set("Content-Type", "application/json")
	switch method := root.Get("method"); {
	case method.Equals("initialize"):
		c.opened++
		c.calls[fmt.Sprint("upstream-", c.opened)] = 0
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("upstream-", c.opened))
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}}`, root.Get("id").Raw)
	case !known:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		c.ended = append(c.ended, session)
		delete(c.calls, session)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case !root.Get("id").Exists():
		w.WriteHeader(http.StatusAccepted)
	default:
		c.calls[session] = n + 1
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"n":"%s: %d"}}`, root.Get("id").Raw, session, n+1)
	}
}

// A session with a remote server goes on in another process with what the server keeps of it. If
// the server has lost it, another one is opened, and that goes on too.
func TestRemoteSessionGoesOn(t *testing.T) {
	c := &counter{calls: map[string]int{}}
	upstream := httptest.NewServer(c)
	defer upstream.Close()
	p := cli.Process{Stderr: io.Discard, StateDir: t.TempDir()}
	load := func() (*config.Settings, error) { return config.Load(p, nil, []string{upstream.URL}) }
	id, n := "", 0
	process := func(act func(r *runningService)) {
		t.Helper()
		settings, err := load()
		if err != nil {
			t.Fatal(err)
		}
		s, err := newService(t.Context(), Options{
			Process: p, Settings: settings, Log: slog.New(slog.DiscardHandler),
			Servers: []Server{{Path: "/mcp", Command: []string{upstream.URL}, Settings: settings, Load: load}},
		})
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(s.handler())
		act(&runningService{s, web.URL + "/mcp"})
		s.endpoints[0].front.Drain(context.Background())
		web.Close()
		s.close()
	}
	call := func(want string) func(r *runningService) {
		return func(r *runningService) {
			t.Helper()
			n++
			_, body := r.post(t, http.DefaultClient, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, n), "Mcp-Session-Id", id)
			if wanted := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"n":%q}}`, n, want); body != wanted {
				t.Errorf("got %s, want %s", body, wanted)
			}
		}
	}
	process(func(r *runningService) {
		resp, _ := r.post(t, http.DefaultClient, initialize)
		id = resp.Header.Get("Mcp-Session-Id")
		r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id)
		call("upstream-1: 1")(r)
	})
	process(call("upstream-1: 2"))
	c.mu.Lock()
	clear(c.calls) // the server is restarted
	c.mu.Unlock()
	process(call("upstream-2: 1"))
	process(call("upstream-2: 2"))
	process(func(r *runningService) {
		call("upstream-2: 3")(r)
		q, _ := http.NewRequest(http.MethodDelete, r.url, nil)
		q.Header.Set("Mcp-Session-Id", id)
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	})
	if c.opened != 2 || fmt.Sprint(c.ended) != "[upstream-2]" {
		t.Errorf("%d sessions were opened, and %q ended", c.opened, c.ended)
	}
}
