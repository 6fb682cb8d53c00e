package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// isolationConfig is the configuration of every attache. The rates allow rateBurst calls and then none until
// the test ends.
const isolationConfig = `
identity:
  jwt: {issuer: "https://issuer.test", audience: attache, jwks: jwks.json}
  meta_token: true
  cache: 50ms
arguments:
  - {tools: ["*"], argument: user, value: principal.user, mode: pin}
  - {tools: ["*"], argument: tenant, value: principal.tenant, mode: pin}
  - {tools: ["*"], argument: workspace, value: session.workspace.path}
  - {tools: ["*"], argument: session, value: session.id}
access:
  hide: true # from clients that list tools before they are identified
  rules:
    - {tools: ["whoami"], require: [records:read], when: 'principal.user != "nobody"'}
  rates:
    - {tools: [per_session], per: session, limit: 1/hour, burst: 5}
    - {tools: [per_user], per: user, limit: 1/hour, burst: 5}
    - {tools: [per_tenant], per: tenant, limit: 1/hour, burst: 5}
`

const (
	isolationRelays = 50
	rateBurst       = 5
	rateTries       = 10 // calls of each rate-limited tool, in each conversation
)

// Fifty concurrent sessions, each through its own attache in this process: no call has the principal or
// workspace of another session, and no rate uses another's bucket. A fifth of the attaches have several
// conversations, each with its own token. ATTACHE_ISOLATION_CALLS is the total number of calls.
func TestSessionsAreIsolated(t *testing.T) {
	calls := number(t, "ATTACHE_ISOLATION_CALLS", 5000)
	dir := t.TempDir()
	var all []*isolatedSession
	for i := range isolationRelays {
		all = append(all, newIsolatedSession(t, dir, i))
	}
	var crowd sync.WaitGroup
	made := make([]int, len(all))
	for i, session := range all {
		crowd.Go(func() { made[i] = session.run(t, calls/isolationRelays) })
	}
	crowd.Wait()
	total := 0
	for _, n := range made {
		total += n
	}
	if total < calls {
		t.Errorf("%d calls were made; want %d", total, calls)
	}
	t.Logf("%d calls through %d attaches", total, len(all))
}

// An isolatedSession has one client, attache and server.
type isolatedSession struct {
	name          string
	process       cli.Process
	conversations []conversation
}

// A conversation has the principal and workspace of its calls.
type conversation struct {
	meta, metaOnce                   string // members of _meta in every call, and in the first call only
	User, Tenant, Workspace, Session string
}

// newIsolatedSession makes session i: identified by an API key, by a token, by a session file, by the
// operator's variables and a token, or by tokens in _meta. Two neighbours have the same tenant, so that the
// test detects a shared bucket.
func newIsolatedSession(t *testing.T, dir string, i int) *isolatedSession {
	t.Helper()
	own := filepath.Join(dir, strconv.Itoa(i))
	write := func(name, text string) string {
		path := filepath.Join(own, name)
		attachetest.WriteFile(t, path, text)
		return path
	}
	write("jwks.json", string(attachetest.KeySet()))
	s := &isolatedSession{name: strconv.Itoa(i), process: cli.Process{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}}
	c := conversation{User: "user-" + s.name, Tenant: "tenant-" + strconv.Itoa(i/2), Workspace: "/ws/" + s.name, Session: "session-" + s.name}
	env := []string{"ATTACHE_CONFIG=" + write("config.yaml", isolationConfig)}
	token := func(c conversation) string {
		return attachetest.Token(map[string]any{"sub": c.User, "org_id": c.Tenant})
	}
	operator := []string{"ATTACHE_SESSION_ID=" + c.Session, "ATTACHE_WORKSPACE_PATH=" + c.Workspace}
	s.conversations = []conversation{c}
	switch i % 5 {
	case 0:
		key, _ := attachetest.CreateKey(t, filepath.Join(own, "keys.yaml"),
			identity.Attributes{User: c.User, Tenant: c.Tenant, Permissions: []string{"records:read"}})
		env = append(append(env, operator...), "ATTACHE_API_KEY="+key)
	case 1:
		env = append(append(env, operator...), "ATTACHE_TOKEN_FILE="+write("token", token(c)))
	case 2:
		env = append(env, "ATTACHE_SESSION_FILE="+write("session.yaml", fmt.Sprintf(
			"user: %s\ntenant: %s\npermissions: [records:read]\nworkspace: %s\nsession: %s\n", c.User, c.Tenant, c.Workspace, c.Session)))
	case 3:
		env = append(append(env, operator...), "MCP_USER_ID="+c.User, "MCP_TENANT_ID="+c.Tenant, "ATTACHE_TOKEN="+token(c))
	case 4:
		s.conversations = nil
		for n := range 3 {
			suffix := fmt.Sprintf("-%d", n)
			c := conversation{User: c.User + suffix, Tenant: c.Tenant, Workspace: c.Workspace + suffix, Session: c.Session + suffix}
			c.meta = fmt.Sprintf(`"threadId":"%s","io.github.attache-mcp/workspace":"%s"`, c.Session, c.Workspace)
			c.metaOnce = fmt.Sprintf(`,"io.github.attache-mcp/token":"%s"`, token(c))
			s.conversations = append(s.conversations, c)
		}
	}
	s.process.Env = env
	return s
}

// run makes at least n calls through an attache, checks each answer, and returns the number of calls.
func (s *isolatedSession) run(t *testing.T, n int) (made int) {
	settings, err := config.Load(s.process, nil, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	// On a busy machine a look-up may take longer than a user would wait.
	settings.Identity.Patience, settings.Identity.JWT.Timeout = time.Minute, time.Minute
	conn, err := assembly.Single(assembly.Options{Process: s.process, Log: slog.New(slog.DiscardHandler)}, settings, assembly.ConnOptions{})
	if err != nil {
		t.Error(err)
		return 0
	}
	toRelay, client := io.Pipe()
	replies, fromRelay := io.Pipe()
	o := conn.Relay()
	o.ClientIn, o.ClientOut = toRelay, fromRelay
	o.Start = func(context.Context) (proxy.Upstream, error) {
		return startEcho(strings.Join(conn.Environment(nil), " ")), nil
	}
	ended := make(chan error, 1)
	go func() {
		err := proxy.Run(context.Background(), o)
		fromRelay.CloseWithError(io.EOF)
		ended <- err
	}()
	requests, ready := s.requests(n), make(chan struct{})
	go func() {
		defer client.Close()
		for _, r := range requests {
			if r.conversation != nil {
				<-ready
			}
			if _, err := io.WriteString(client, r.frame+"\n"); err != nil {
				return
			}
		}
	}()
	made = s.check(t, replies, requests, sync.OnceFunc(func() { close(ready) }))
	if err := <-ended; err != nil {
		t.Errorf("session %s: %v", s.name, err)
	}
	return made
}

// A request is a frame and, for a call, its conversation.
type request struct {
	frame        string
	tool         string
	conversation *conversation // nil if the frame is not a call
}

// listRequest marks the request for whose reply the calls wait: it lists the arguments to fill.
const listRequest = "tools/list"

// requests returns the client's messages: the handshake, and then the calls of its conversations in turn,
// with those of rate-limited tools first.
func (s *isolatedSession) requests(n int) []request {
	all := []request{
		{frame: `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`},
		{frame: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, tool: listRequest},
	}
	tools := []string{}
	for range rateTries {
		tools = append(tools, "whoami", "per_session", "per_user", "per_tenant")
	}
	for turn := 0; turn < len(tools) || len(all) < n+2; turn++ {
		tool := "whoami"
		if turn < len(tools) {
			tool = tools[turn]
		}
		for i := range s.conversations {
			c := &s.conversations[i]
			meta := c.meta
			if turn == 0 {
				meta += c.metaOnce
			}
			frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"user":"nobody"},"_meta":{%s}}}`, len(all), tool, meta)
			all = append(all, request{frame, tool, c})
		}
	}
	return all
}

// check reads and checks the replies to all requests, and returns the number of calls. It calls ready after the
// handshake, or when it returns early.
func (s *isolatedSession) check(t *testing.T, replies io.ReadCloser, requests []request, ready func()) (made int) {
	defer replies.Close()
	defer ready()
	allowed := map[string]int{} // by tool
	lines := bufio.NewScanner(replies)
	for n := 0; n < len(requests) && lines.Scan(); n++ {
		reply := wire.Value{Raw: lines.Bytes()}
		id, err := strconv.Atoi(string(reply.Get("id").Raw))
		if err != nil || id < 0 || id >= len(requests) {
			t.Errorf("session %s: reply to no request: %.200s", s.name, lines.Bytes())
			return made
		}
		r := requests[id]
		if r.conversation == nil {
			if r.tool == listRequest {
				ready()
			}
			continue
		}
		made++
		var text string
		for block := range reply.Get("result", "content").Elements() {
			text = block.Get("text").Text()
		}
		refused := reply.Get("result", "isError").Exists()
		switch {
		case r.tool == "whoami":
			if problem := r.conversation.check(text); refused || problem != "" {
				t.Errorf("session %s: call %d: %s: %s", s.name, id, problem, reply.Raw)
				return made
			}
		case !refused:
			allowed[r.tool]++
		}
	}
	want := map[string]int{
		"per_session": rateBurst * len(s.conversations),
		"per_user":    rateBurst * len(s.conversations),
		"per_tenant":  rateBurst,
	}
	for tool, n := range want {
		if allowed[tool] != n {
			t.Errorf("session %s: %s was allowed %d times; want %d", s.name, tool, allowed[tool], n)
		}
	}
	return made
}

// check checks that the arguments and the environment in an answer of the echo server belong to the
// conversation, and describes the difference if not.
func (c *conversation) check(text string) string {
	got := conversation{}
	rest, decoder := text, json.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&got); err != nil {
		return err.Error()
	}
	rest = rest[decoder.InputOffset():]
	got.meta, got.metaOnce = c.meta, c.metaOnce
	if got != *c {
		return fmt.Sprintf("want %+v", *c)
	}
	if c.meta == "" && !slices.Contains(strings.Fields(rest), "ATTACHE_USER_ID="+c.User) {
		return "the server's environment lacks the user " + c.User
	}
	return ""
}

// startEcho starts an in-memory echo server with an environment.
func startEcho(env string) *mempipe.Server {
	return mempipe.Serve(func(in io.Reader, out io.Writer) error { return echo(in, out, " "+env) })
}
