package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy/wire"
)

// remoteUpstream is a server over HTTP. calls gets the requests for tools; the rest is as
// short as can be.
type remoteUpstream struct {
	calls func(w http.ResponseWriter, r *http.Request, id string)
	gets  func(w http.ResponseWriter, r *http.Request)
}

func (u *remoteUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		if r.Method == http.MethodGet && u.gets != nil && r.Header.Get("Last-Event-Id") != "" {
			u.gets(w, r)
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed) // also for DELETE
		return
	}
	body, _ := io.ReadAll(r.Body)
	root := wire.Value{Raw: body}
	id := string(root.Get("id").Raw)
	switch method := root.Get("method"); {
	case id == "":
		w.WriteHeader(http.StatusAccepted)
	case method.Equals("initialize"):
		w.Header().Set("Mcp-Session-Id", "upstream")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`, id)
	default:
		u.calls(w, r, id)
	}
}

// startRemote serves a server over HTTP, with a configuration if one is given.
func startRemote(t *testing.T, u *remoteUpstream, configuration ...string) *runningService {
	t.Helper()
	upstream := httptest.NewServer(u)
	t.Cleanup(upstream.Close)
	p := cli.Process{Stderr: io.Discard}
	if configuration != nil {
		p = attachetest.WriteConfig(t, configuration[0])
	}
	load := func() (*config.Settings, error) { return config.Load(p, nil, []string{upstream.URL}) }
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
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		s.endpoints[0].front.Drain(ended)
		web.Close()
		s.close()
	})
	return &runningService{s, web.URL + "/mcp"}
}

// F29 and F30: a server closes the stream of an answer and has its client come back: attache does,
// and the client's own stream goes on. The event without a message is for attache alone, as its
// own streams have no ids.
func TestF29F30PolledServer(t *testing.T) {
	r := startRemote(t, &remoteUpstream{
		calls: func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: first\nretry: 1\ndata: \n\n")
		},
		gets: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: second\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"after\":%q}}\n\n", r.Header.Get("Last-Event-Id"))
		},
	})
	resp, _ := r.post(t, http.DefaultClient, initialize)
	_, body := r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, "Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"))
	if body != `{"jsonrpc":"2.0","id":1,"result":{"after":"first"}}` {
		t.Error(body)
	}
}

// F01, U08 and U13: a status of the server's that says to try again is the front's, with the time to
// wait. One that speaks of a credential or session of attache's own is not: a client would take it
// for its own. In both the next call works.
func TestRelayedStatus(t *testing.T) {
	refusals := map[string]int{}
	r := startRemote(t, &remoteUpstream{
		calls: func(w http.ResponseWriter, _ *http.Request, id string) {
			if status := refusals[id]; status != 0 {
				w.Header().Set("Retry-After", "7")
				http.Error(w, "go away", status)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		},
	})
	resp, _ := r.post(t, http.DefaultClient, initialize)
	session := resp.Header.Get("Mcp-Session-Id")
	call := func(id string) (*http.Response, string) {
		return r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"x"}}`, "Mcp-Session-Id", session)
	}
	for status, want := range map[int]int{
		400: 200, 401: 200, 403: 200, 405: 200, 406: 200, 409: 200, 413: 200, 415: 200, 422: 200,
		429: 429, 500: 500, 502: 502, 503: 503, 504: 504,
	} {
		id := fmt.Sprint(status)
		refusals[id] = status
		resp, body := call(id)
		after := resp.Header.Get("Retry-After")
		if resp.StatusCode != want || (after == "7") != (want != 200) || resp.Header.Get("Attache-Executed") != "" {
			t.Errorf("%d: %s, Retry-After %q", status, resp.Status, after)
		}
		failure := wire.Value{Raw: []byte(body)}.Get("error")
		said := fmt.Sprintf(`{"source":"attache","status":%d,"retryAfter":"7"}`, status)
		if status == http.StatusUnauthorized { // what holds the credential says what to do
			said = `{"source":"attache"}`
		}
		if string(failure.Get("data").Raw) != said || !strings.HasPrefix(failure.Get("message").Text(), "the server ") {
			t.Errorf("%d: %s", status, body)
		}
		if resp, body = call("1"); resp.StatusCode != http.StatusOK || body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("after %d: %s %s", status, resp.Status, body)
		}
	}
}

// A session ends for the client also if the server takes no DELETE.
func TestF15DeleteNotTaken(t *testing.T) {
	r := startRemote(t, &remoteUpstream{})
	resp, _ := r.post(t, http.DefaultClient, initialize)
	session := resp.Header.Get("Mcp-Session-Id")
	q, err := http.NewRequest(http.MethodDelete, r.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Mcp-Session-Id", session)
	if resp, err = http.DefaultClient.Do(q); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Error(resp.Status)
	}
	if resp, _ = r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", session); resp.StatusCode != http.StatusNotFound {
		t.Error(resp.Status)
	}
}

const modernCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`

// A client of revision 2026-07-28 that leaves ends the request to the server.
func TestF28ClientLeaves(t *testing.T) {
	arrived, left := make(chan struct{}), make(chan struct{})
	r := startRemote(t, &remoteUpstream{calls: func(_ http.ResponseWriter, r *http.Request, _ string) {
		close(arrived)
		<-r.Context().Done()
		close(left)
	}})
	ctx, leave := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(modernCall))
	if err != nil {
		t.Fatal(err)
	}
	q.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"x"}}
	go func() {
		<-arrived
		leave()
	}()
	if resp, err := http.DefaultClient.Do(q); err == nil {
		resp.Body.Close()
		t.Error("the client was answered")
	}
	<-left
}

// A header of an argument that the tool does not have goes on. One that it has says what
// the body says that leaves, also where a rule pins the argument and hides it: then the client
// does not know the header, or contradicts the operator.
func TestF44UnknownParam(t *testing.T) {
	const pinned = `arguments: [{tools: ["*"], argument: region, value: '"eu"', mode: pin}]`
	r := startRemote(t, &remoteUpstream{calls: func(w http.ResponseWriter, r *http.Request, id string) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Mcp-Method") == "tools/list" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}}`, id)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"name":%q,"param":%q,"region":%q,"other":%q}}`, id,
			r.Header.Get("Mcp-Name"), r.Header.Get("Mcp-Param-Zzz"), r.Header.Values("Mcp-Param-Region"), r.Header.Get("X-Other"))
	}}, pinned)
	modern := []string{"Mcp-Protocol-Version", "2026-07-28", "X-Other", "1"}
	list := strings.Replace(modernCall, "tools/call", "tools/list", 1)
	if resp, body := r.post(t, http.DefaultClient, list, append(modern, "Mcp-Method", "tools/list")...); resp.StatusCode != http.StatusOK || strings.Contains(body, "Region") {
		t.Errorf("%s %s", resp.Status, body)
	}
	resp, body := r.post(t, http.DefaultClient, modernCall, append(modern, "Mcp-Method", "tools/call", "Mcp-Name", "x", "Mcp-Param-Zzz", "1", "mcp-param-region", "us")...)
	if resp.StatusCode != http.StatusOK || body != `{"jsonrpc":"2.0","id":1,"result":{"name":"x","param":"1","region":["eu"],"other":""}}` {
		t.Errorf("%s %s", resp.Status, body)
	}
}
