package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/login"
	"github.com/attache-mcp/attache/cmd/attache/internal/remoteserver"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// A remoteUpstream is a minimal MCP server over HTTP. calls handles tool calls.
type remoteUpstream struct {
	calls func(w http.ResponseWriter, r *http.Request, id string)
	gets  func(w http.ResponseWriter, r *http.Request)
	// arrays, if not nil, handles arrays of messages, and the session's revision allows them.
	arrays func(w http.ResponseWriter)
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
	case root.IsArray():
		u.arrays(w)
	case id == "":
		w.WriteHeader(http.StatusAccepted)
	case method.Equals("initialize"):
		w.Header().Set("Mcp-Session-Id", "upstream")
		w.Header().Set("Content-Type", "application/json")
		version := "2025-11-25"
		if u.arrays != nil {
			version = "2025-03-26"
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{}}}`, id, version)
	default:
		u.calls(w, r, id)
	}
}

// startRemote starts a service in front of u, with a configuration if one is given.
func startRemote(t *testing.T, u *remoteUpstream, configuration ...string) *runningService {
	t.Helper()
	upstream := httptest.NewServer(u)
	t.Cleanup(upstream.Close)
	p := cli.Process{Stderr: io.Discard}
	if configuration != nil {
		p = attachetest.WriteConfig(t, configuration[0])
	}
	return startProcess(t, p, upstream.URL)
}

// startProcess starts a service of the process p in front of the server at address.
func startProcess(t *testing.T, p cli.Process, address string) *runningService {
	t.Helper()
	load := func() (*config.Settings, error) { return config.Load(p, nil, []string{address}) }
	settings, err := load()
	check(t, err)
	s, err := newService(t.Context(), Options{
		Process: p, Settings: settings, Log: slog.New(slog.DiscardHandler),
		Servers: []Server{{Path: "/mcp", Command: []string{address}, Settings: settings, Load: load}},
	})
	check(t, err)
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

// F29 and F30: if a server closes the stream of an answer and expects its client to reconnect,
// attache reconnects and the client's stream continues. The event without a message is not relayed,
// because a front gives its events ids of its own.
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
	_, body := r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, "Mcp-Session-Id", r.open(t))
	if body != `{"jsonrpc":"2.0","id":1,"result":{"after":"first"}}` {
		t.Error(body)
	}
}

// F01, U08 and U13: the front relays a status that asks the client to retry, with its Retry-After,
// whatever the body, and a JSON-RPC error unchanged. It does not relay a status about attache's own
// credential or session, because the client would apply it to its own. The next call always works,
// with and without layers.
func TestRelayedStatus(t *testing.T) {
	const object = `{"code":-32603,"message":"no","data":{"source":"attache","status":500,"retryAfter":"9"}}`
	dir := t.TempDir()
	attachetest.WriteFile(t, filepath.Join(dir, "acme.yaml"), "scope: acme\nobjectives: [ship]\n")
	for name, configuration := range map[string][]string{"no layers": nil, "layers": {fmt.Sprintf(relayedLayers, dir)}} {
		t.Run(name, func(t *testing.T) {
			refusals := map[string]refusal{}
			call := startRefusing(t, refusals, configuration...)
			briefed := false
			defer func() {
				if briefed != (configuration != nil) {
					t.Errorf("briefed: %t", briefed)
				}
			}()
			for status, want := range map[int]int{
				400: 200, 401: 200, 403: 200, 405: 200, 406: 200, 409: 200, 413: 200, 415: 200, 422: 200,
				429: 429, 500: 500, 502: 502, 503: 503, 504: 504,
			} {
				for form, body := range []string{"go away", "", `{"error":` + object + `,"id":ID,"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","error":` + object + `,"id":null}`} {
					id := fmt.Sprintf("%d%d", status, form)
					refusals[id] = refusal{status, strings.Replace(body, "ID", id, 1)}
					resp, got := call(id)
					after := resp.Header.Get("Retry-After")
					if resp.StatusCode != want || (after == "7") != (want != 200) || resp.Header.Get("Attache-Executed") != "" {
						t.Errorf("%d %q: %s, Retry-After %q", status, body, resp.Status, after)
					}
					failure := wire.Value{Raw: []byte(got)}.Get("error")
					own := form < 2 || status == http.StatusUnauthorized // for 401, the error is the credential's
					switch {
					case own && (string(failure.Get("data").Raw) != `{"source":"attache"}` || !strings.HasPrefix(failure.Get("message").Text(), "the server ")):
						t.Errorf("%d: %s", status, got)
					case !own && form == 2 && got != refusals[id].body || !own && form == 3 && got != `{"jsonrpc":"2.0","id":`+id+`,"error":`+object+`}`:
						t.Errorf("%d: %s", status, got)
					}
					if resp, got = call("1"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":{"content":[`) {
						t.Errorf("after %d: %s %s", status, resp.Status, got)
					}
					briefed = briefed || strings.Contains(got, "SESSION CONTEXT")
				}
			}
		})
	}
}

// relayedLayers configures a layer that adds a briefing to results and one that reads every reply.
const relayedLayers = `
policy: {dir: %q, scope: acme}
briefing: {channels: [response]}
arguments: [{tools: ["*"], argument: a, value: '"b"', mode: pin}]
access: {rules: [{tools: [hidden], deny: true}]}
`

// A refusal is the answer to a refused call. It also has a Retry-After.
type refusal struct {
	status int
	body   string
}

// startRefusing starts a service in front of a server that refuses calls with some ids. It returns a
// function that makes a call in a session.
func startRefusing(t *testing.T, refusals map[string]refusal, configuration ...string) (call func(id string, headers ...string) (*http.Response, string)) {
	r := startRemote(t, &remoteUpstream{
		calls: func(w http.ResponseWriter, _ *http.Request, id string) {
			if answer, ok := refusals[id]; ok {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(answer.status)
				io.WriteString(w, answer.body)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, id)
		},
	}, configuration...)
	session := r.open(t)
	return func(id string, headers ...string) (*http.Response, string) {
		headers = append(headers, "Mcp-Session-Id", session)
		return r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"x","arguments":{}}}`, headers...)
	}
}

// A client that accepts only events gets the error as an event, because 200 is already sent.
func TestRelayedStatusOfEvents(t *testing.T) {
	const failure = `{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"slow down"}}`
	for _, body := range []string{failure, strings.Replace(failure, `"id":2`, `"id":null`, 1)} {
		call := startRefusing(t, map[string]refusal{"2": {http.StatusTooManyRequests, body}})
		resp, got := call("2", "Accept", "text/event-stream")
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Retry-After") != "" || !strings.Contains(got, "data: "+failure+"\n") {
			t.Errorf("%s %v %q", resp.Status, resp.Header, got)
		}
	}
}

// A status is relayed only if the answer is a single reply. Each request of a refused array gets an
// error.
func TestRelayedStatusOfArray(t *testing.T) {
	const request, object = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, `{"code":-32000,"message":"slow down"}`
	failure := `{"jsonrpc":"2.0","id":%d,"error":` + object + `}`
	r := startRemote(t, &remoteUpstream{arrays: func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":`+object+`}`)
	}})
	session := r.open(t)
	resp, got := r.post(t, http.DefaultClient, fmt.Sprintf("["+request+"]", 1), "Mcp-Session-Id", session)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "7" || got != fmt.Sprintf(failure, 1) {
		t.Errorf("%s %v %q", resp.Status, resp.Header, got)
	}
	resp, got = r.post(t, http.DefaultClient, fmt.Sprintf("["+request+","+request+"]", 2, 3), "Mcp-Session-Id", session)
	if resp.StatusCode != http.StatusOK || !strings.Contains(got, "data: "+fmt.Sprintf(failure, 2)+"\n") || !strings.Contains(got, "data: "+fmt.Sprintf(failure, 3)+"\n") {
		t.Errorf("%s %v %q", resp.Status, resp.Header, got)
	}
}

// A session ends for the client even if the server does not accept DELETE.
func TestF15DeleteNotAccepted(t *testing.T) {
	r := startRemote(t, &remoteUpstream{})
	session := r.open(t)
	q, err := http.NewRequest(http.MethodDelete, r.url, nil)
	check(t, err)
	q.Header.Set("Mcp-Session-Id", session)
	resp, err := http.DefaultClient.Do(q)
	check(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Error(resp.Status)
	}
	if resp, _ = r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", session); resp.StatusCode != http.StatusNotFound {
		t.Error(resp.Status)
	}
}

const modernCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`

// When a client of revision 2026-07-28 disconnects, the request to the server is cancelled.
func TestF28ClientDisconnects(t *testing.T) {
	arrived, cancelled := make(chan struct{}), make(chan struct{})
	r := startRemote(t, &remoteUpstream{calls: func(_ http.ResponseWriter, r *http.Request, _ string) {
		close(arrived)
		<-r.Context().Done()
		close(cancelled)
	}})
	ctx, disconnect := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(modernCall))
	check(t, err)
	q.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"x"}}
	go func() {
		<-arrived
		disconnect()
	}()
	if resp, err := http.DefaultClient.Do(q); err == nil {
		resp.Body.Close()
		t.Error("the client was answered")
	}
	<-cancelled
}

// A header for an argument that the tool does not have is forwarded. For an argument of the tool,
// the header has the value of the outgoing body, even if a rule pins and hides the argument and the
// client sent another header or none.
func TestF44UnknownParam(t *testing.T) {
	const pinned = `arguments: [{tools: ["*"], argument: region, value: '"eu"', mode: pin}]`
	r := startRemote(t, &remoteUpstream{calls: func(w http.ResponseWriter, r *http.Request, id string) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Mcp-Method") == "tools/list" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}},{"name":"plain","inputSchema":{"type":"object"}}]}}`, id)
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
	// A listed tool without mirrored arguments is known, too.
	plain := strings.Replace(modernCall, `"name":"x"`, `"name":"plain"`, 1)
	_, body = r.post(t, http.DefaultClient, plain, append(modern, "Mcp-Method", "tools/call", "Mcp-Name", "plain", "Mcp-Param-Zzz", "1")...)
	if !strings.Contains(body, `"name":"plain","param":"1"`) {
		t.Error(body)
	}
}

// For a renamed tool, Mcp-Name has the name in the outgoing body, in Base64 if that needs it. The client sends the
// name that it was shown.
func TestU18RenamedTool(t *testing.T) {
	r := startRemote(t, &remoteUpstream{calls: func(w http.ResponseWriter, r *http.Request, id string) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Mcp-Method") == "tools/list" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"thé","inputSchema":{"type":"object"}}]}}`, id)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"header":%q}}`, id, r.Header.Values("Mcp-Name"))
	}}, `rewrite: [{tools: [thé], rename: tea}]`)
	call := strings.Replace(modernCall, `"name":"x"`, `"name":"tea"`, 1)
	for name, want := range map[string]string{
		"tea":                 `{"jsonrpc":"2.0","id":1,"result":{"header":["=?base64?dGjDqQ==?="]}}`,
		"=?base64?dGjDqQ==?=": `"code":-32020`,
	} {
		_, body := r.post(t, http.DefaultClient, call, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name)
		if !strings.Contains(body, want) {
			t.Errorf("%s: %s", name, body)
		}
	}
}

// F25: what a remote server sends before a reply is on the stream of that reply, also while other requests
// are in flight. A log message names no request, and 2026-07-28 has no other stream for it.
func TestF25LogOfACall(t *testing.T) {
	const said = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
	for _, legacy := range []bool{true, false} {
		t.Run(fmt.Sprintf("legacy=%t", legacy), func(t *testing.T) {
			waiting, answered := make(chan struct{}), make(chan struct{})
			r := startRemote(t, &remoteUpstream{calls: func(w http.ResponseWriter, _ *http.Request, id string) {
				if id == "2" {
					close(waiting)
					<-answered
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", said, id)
			}})
			headers, call := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "x"}, modernCall
			if legacy {
				headers, call = []string{"Mcp-Session-Id", r.open(t)}, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`
			}
			var wg sync.WaitGroup
			wg.Go(func() { r.post(t, http.DefaultClient, strings.Replace(call, `"id":1`, `"id":2`, 1), headers...) })
			<-waiting
			_, body := r.post(t, http.DefaultClient, call, headers...)
			close(answered)
			wg.Wait()
			if i, j := strings.Index(body, said), strings.Index(body, `"result"`); i < 0 || j < i {
				t.Errorf("the answer has no log message before the reply:\n%s", body)
			}
		})
	}
}

// The credential and the other headers of a client do not reach the server, but its trace context does. Cookies of the
// server do not reach the client.
func TestU28ClientHeaders(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	private := []string{"Authorization", "Cookie", "X-Api-Key", "Idempotency-Key", "Origin", "Referer", "X-Forwarded-For", "Mcp-Session-Id"}
	for _, legacy := range []bool{true, false} {
		t.Run(fmt.Sprintf("legacy=%t", legacy), func(t *testing.T) {
			r := startRemote(t, &remoteUpstream{calls: func(w http.ResponseWriter, r *http.Request, id string) {
				for _, name := range private {
					if got := r.Header.Get(name); got != "" && (name != "Mcp-Session-Id" || got != "upstream") {
						t.Errorf("the server got %s: %s", name, got)
					}
				}
				if got := r.Header.Get("Traceparent"); got != parent {
					t.Errorf("the server got the traceparent %q", got)
				}
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Set-Cookie", "route=a")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
			}})
			headers, call := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "x"}, modernCall
			session := "client"
			if legacy {
				headers, call, session = nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, r.open(t)
			}
			for _, name := range private {
				headers = append(headers, name, "secret")
			}
			headers = append(headers, "Origin", strings.TrimSuffix(r.url, "/mcp"), "Mcp-Session-Id", session, "Traceparent", parent)
			resp, body := r.post(t, http.DefaultClient, call, headers...)
			if resp.StatusCode != http.StatusOK || body != `{"jsonrpc":"2.0","id":1,"result":{}}` || resp.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s %v %s", resp.Status, resp.Header, body)
			}
		})
	}
}

// The login of the user who runs attache is not used for clients with their own credentials (confused deputy).
func TestOwnLoginOfFront(t *testing.T) {
	for _, keys := range []bool{true, false} {
		t.Run(fmt.Sprintf("keys=%t", keys), func(t *testing.T) {
			var got string
			upstream := httptest.NewServer(&remoteUpstream{calls: func(w http.ResponseWriter, r *http.Request, id string) {
				got = r.Header.Get("Authorization")
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
			}})
			defer upstream.Close()
			p := attachetest.WriteConfig(t, map[bool]string{true: "identity: {keys_file: keys.yaml}\n", false: "{}\n"}[keys])
			p.StateDir = t.TempDir()
			check(t, remoteserver.Logins(p).Save(&login.Grant{URL: upstream.URL, Obtained: time.Now(), Secrets: login.Secrets{Access: "own"}}))
			want, headers := "Bearer own", []string{}
			if keys {
				key, _ := attachetest.CreateKey(t, filepath.Join(p.ConfigDir, "attache", "keys.yaml"), identity.Attributes{User: "ada"})
				want, headers = "", []string{"Authorization", "Bearer " + key}
			}
			r := startProcess(t, p, upstream.URL)
			call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`
			resp, body := r.post(t, http.DefaultClient, call, append(headers, "Mcp-Session-Id", r.open(t, headers...))...)
			if resp.StatusCode != http.StatusOK || got != want {
				t.Errorf("%s %s: the server got %q, want %q", resp.Status, body, got, want)
			}
		})
	}
}
