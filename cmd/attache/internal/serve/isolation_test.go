package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

const crowdConfig = `
identity:
  keys_file: keys.yaml
  jwt: {issuer: "https://issuer.test", audience: attache, jwks: jwks.json, claims: {scope: policy_scope}}
policy: {dir: policies}
briefing: {channels: [response]}
arguments:
  - {tools: ["*"], argument: user, value: principal.user, mode: pin}
  - {tools: ["*"], argument: tenant, value: principal.tenant, mode: pin}
  - {tools: ["*"], argument: workspace, value: session.workspace.path}
access:
  rules: [{tools: [whoami], require: ["records:read"]}]
  rates: [{tools: [limited], per: session, limit: 1/hour, burst: 2}]
serve: {limits: {sessions: 2000, per_principal: 1000, children: 2000}}
`

// A member is a principal of the crowd.
type member struct{ user, tenant, credential string }

// TestSessionsAreApart makes random calls in many sessions of several principals, in both eras, with
// colliding ids. Each answer must have the workspace, principal and server of its session, and each
// session is briefed once, with its own policies. A ninth of the sessions use TCP; the others call the
// handler, because with -race net/http takes more time than attache. No more than 400 calls are in flight,
// two in a session: with 850, one took 27 s on a busy machine, and attache closes a connection whose client
// does not read for 30 s. If the variable CI is set, there are more sessions, which costs a minute of CPU
// time with -race.
func TestSessionsAreApart(t *testing.T) {
	t.Parallel()
	calls, members, sessions := 2000, 10, 40
	if os.Getenv("CI") != "" {
		calls, members, sessions = 100_000, 50, 200
	}
	crowd, handler, servers := newCrowd(t, members)
	web := httptest.NewServer(handler)
	defer web.Close()
	network := &http.Transport{MaxIdleConnsPerHost: calls}
	defer network.CloseIdleConnections()
	inFlight := make(chan struct{}, 400)
	var wait sync.WaitGroup
	for i := range sessions {
		v := &visitor{T: t, url: web.URL + "/mcp", member: crowd[i%members], name: strconv.Itoa(i), servers: servers, inFlight: inFlight}
		v.client.Transport = direct{handler}
		if i%9 == 0 {
			v.client.Transport = network
		}
		switch nth := i / members; nth % 3 {
		case 1:
			v.modern = true
		case 2:
			v.modern, v.conversation = true, "c-"+strconv.Itoa(nth) // shared by all principals
		}
		wait.Go(func() { v.visit(calls / sessions) })
	}
	wait.Wait()
}

// A direct is a transport that calls a handler.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host, r.RemoteAddr = r.URL.Host, "127.0.0.1:1"
	w := recorder{httptest.NewRecorder()}
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// A recorder accepts deadlines, like the responses of net/http: an error for each would take time.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetReadDeadline(time.Time) error  { return nil }
func (recorder) SetWriteDeadline(time.Time) error { return nil }

// newCrowd starts a service in front of in-memory echo servers and creates its principals.
func newCrowd(t *testing.T, members int) (crowd []member, handler http.Handler, servers *sync.Map) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		attachetest.WriteFile(t, path, text)
	}
	write("jwks.json", string(attachetest.KeySet()))
	write("config.yaml", crowdConfig)
	for i := range members {
		m := member{user: fmt.Sprintf("user-%d", i), tenant: fmt.Sprintf("tenant-%d", i)}
		write("policies/"+m.tenant+".yaml", fmt.Sprintf("scope: %s\nobjectives: [objective of %s]\n", m.tenant, m.tenant))
		if i%2 == 0 {
			m.credential = attachetest.Token(map[string]any{"sub": m.user, "org_id": m.tenant, "policy_scope": m.tenant})
		} else {
			key, _ := attachetest.CreateKey(t, filepath.Join(dir, "keys.yaml"),
				identity.Attributes{User: m.user, Tenant: m.tenant, Scope: m.tenant, Permissions: []string{"records:read"}})
			m.credential = key
		}
		crowd = append(crowd, m)
	}
	p := cli.Process{Env: []string{"ATTACHE_CONFIG=" + filepath.Join(dir, "config.yaml")}, Stderr: io.Discard}
	s := newTestService(t, p)
	servers = &sync.Map{}
	var number atomic.Int64
	s.endpoints[0].start = func(_ front.Opening, env func() []string) (proxy.Upstream, error) {
		return echoServer(number.Add(1), env()), nil
	}
	return crowd, s.handler(), servers
}

// newTestService returns a service with the configuration that p finds.
func newTestService(t *testing.T, p cli.Process) *service {
	t.Helper()
	s, err := tryTestService(p)
	check(t, err)
	t.Cleanup(s.close)
	return s
}

func tryTestService(p cli.Process, path ...string) (*service, error) {
	return tryLoggingService(slog.New(slog.DiscardHandler), p, path...)
}

func tryLoggingService(log *slog.Logger, p cli.Process, path ...string) (*service, error) {
	load := func() (*config.Settings, error) { return config.Load(p, nil, []string{"echo"}) }
	settings, err := load()
	if err != nil {
		return nil, err
	}
	return newService(context.Background(), Options{
		Process: p, Settings: settings, Log: log,
		Servers: []Server{{Path: append(path, settings.Serve.Path)[0], Command: []string{"echo"}, Settings: settings, Load: load}},
	})
}

// echoServer returns a server that answers calls with their arguments, its number and its
// environment.
func echoServer(number int64, env []string) *mempipe.Server {
	about := fmt.Sprintf(`"server":%d,"env":%s`, number, wire.Quote(strings.Join(env, " ")))
	return mempipe.Serve(func(in io.Reader, out io.Writer) error {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			m := wire.Parse(wire.Client, append(bytes.Clone(lines.Bytes()), '\n'))
			result := `{}`
			switch m.Method() {
			case "initialize":
				result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}`
			case "tools/list":
				schema := `{"type":"object","properties":{"user":{"type":"string"},"tenant":{"type":"string"},"workspace":{"type":"string"},"mine":{"type":"string"}}}`
				result = `{"tools":[{"name":"whoami","inputSchema":` + schema + `},{"name":"limited","inputSchema":` + schema + `}]}`
			case "tools/call":
				text := fmt.Sprintf(`{"arguments":%s,%s}`, m.Get("params", "arguments").Raw, about)
				result = `{"content":[{"type":"text","text":` + string(wire.Quote(text)) + `}]}`
			}
			if m.ID() == nil {
				continue
			}
			if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID(), result); err != nil {
				return err
			}
		}
		return nil
	})
}

// A visitor is a client with one session.
type visitor struct {
	*testing.T
	url          string
	member       member
	name         string
	modern       bool   // requests are of revision 2026-07-28
	conversation string // named in each request; "" for none
	servers      *sync.Map
	client       http.Client
	inFlight     chan struct{} // has an element for each request of all visitors

	session string
	briefed atomic.Int32
	limited atomic.Int32
}

func (v *visitor) workspace() string { return "/ws/" + v.name }

// visit makes n calls, some of them concurrently.
func (v *visitor) visit(n int) {
	if !v.modern {
		meta := fmt.Sprintf(`"io.github.attache-mcp/workspace":"%s"`, v.workspace())
		v.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"_meta":{` + meta + `}}}`)
		v.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	v.post(v.frame(0, "tools/list", "", ""))
	var some sync.WaitGroup
	for i := range n {
		some.Go(func() { v.call(i + 1) })
		if rand.IntN(4) == 0 {
			some.Wait()
		}
	}
	some.Wait()
	if got := v.briefed.Load(); got != 1 {
		v.Errorf("session %s was briefed %d times", v.name, got)
	}
	if got := v.limited.Load(); got > 2 {
		v.Errorf("session %s exceeded its rate limit: %d calls", v.name, got)
	}
}

// frame returns a request. A modern one names the workspace, and thereby the session.
func (v *visitor) frame(id int, method, tool, mine string) string {
	params := ""
	if tool != "" {
		params = fmt.Sprintf(`"name":"%s","arguments":{"user":"eve","mine":"%s"},`, tool, mine)
	}
	meta := ""
	if v.modern {
		meta = fmt.Sprintf(`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.github.attache-mcp/workspace":"%s"`, v.workspace())
	}
	if v.conversation != "" {
		meta += fmt.Sprintf(`,"threadId":"%s"`, v.conversation)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s"_meta":{%s}}}`, id, method, params, meta)
}

// post sends a message and returns the reply. On a busy machine attache may not have checked the credential
// after its 3 s, and asks to try again.
func (v *visitor) post(body string) wire.Value {
	v.inFlight <- struct{}{}
	defer func() { <-v.inFlight }()
	resp, b, err := v.try(body)
	for tries := 1; tries < 100 && err == nil && strings.Contains(string(b), "the credential cannot be checked at the moment: try again"); tries++ {
		resp, b, err = v.try(body)
	}
	if err != nil {
		v.Error(err)
		return wire.Value{}
	}
	if resp.StatusCode >= 300 {
		v.Errorf("session %s: %s: %d %s", v.name, body, resp.StatusCode, b)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); !v.modern && v.session == "" {
		v.session = id
	}
	if _, data, ok := bytes.Cut(b, []byte("data: ")); ok {
		b, _, _ = bytes.Cut(data, []byte("\n"))
	}
	return wire.Value{Raw: b}
}

// try sends a message and returns the answer and its body.
func (v *visitor) try(body string) (*http.Response, []byte, error) {
	r, err := http.NewRequest(http.MethodPost, v.url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+v.member.credential)
	root := wire.Value{Raw: []byte(body)}
	if v.modern {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", root.Get("method").Text())
		if name := root.Get("params", "name"); name.Exists() {
			r.Header.Set("Mcp-Name", name.Text())
		}
	} else if v.session != "" {
		r.Header.Set("Mcp-Session-Id", v.session)
	}
	resp, err := v.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, b, err
}

// read returns the last text of a result, and counts a briefing before it.
func (v *visitor) read(reply wire.Value) (text string) {
	for block := range reply.Get("result", "content").Elements() {
		text = block.Get("text").Text()
		if strings.Contains(text, "SESSION CONTEXT") {
			v.briefed.Add(1)
			if !strings.Contains(text, "objective of "+v.member.tenant+"\n") {
				v.Errorf("session %s was briefed with %s", v.name, text)
			}
		}
	}
	return text
}

// call makes a call and checks that the answer belongs to its session.
func (v *visitor) call(i int) {
	mine := v.name + "-" + strconv.Itoa(i)
	tool := "whoami"
	if i%10 == 0 {
		tool = "limited"
	}
	reply := v.post(v.frame(i, "tools/call", tool, mine))
	text := v.read(reply)
	if tool == "limited" {
		if !reply.Get("result", "isError").Exists() {
			v.limited.Add(1)
		}
		return
	}
	var got struct {
		Arguments struct{ User, Tenant, Workspace, Mine string }
		Server    int64
		Env       string
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		v.Errorf("session %s: %s: %v", v.name, reply.Raw, err)
		return
	}
	a := got.Arguments
	if a.User != v.member.user || a.Tenant != v.member.tenant || a.Workspace != v.workspace() || a.Mine != mine {
		v.Errorf("session %s of %s: %+v", v.name, v.member.user, a)
	}
	if owner, _ := v.servers.LoadOrStore(got.Server, v.name); owner != v.name {
		v.Errorf("sessions %s and %s share a server", owner, v.name)
	}
	if !strings.Contains(got.Env+" ", "ATTACHE_WORKSPACE_PATH="+v.workspace()+" ") || !strings.Contains(got.Env+" ", "ATTACHE_USER_ID="+v.member.user+" ") {
		v.Errorf("session %s: its server has the environment %s", v.name, got.Env)
	}
}
