package assembly

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	sessionCount = 1000
	connHeap     = 8 << 10  // the most heap that a Conn may use
	sessionHeap  = 64 << 10 // the same for a used session, with its relay and the test's peers
)

const sessionsConfig = `
identity:
  jwt: {issuer: "https://issuer.test", audience: attache, jwks: %q}
  meta_token: true
arguments:
  - {tools: ["*"], argument: user, value: principal.user, mode: pin}
  - {tools: ["*"], argument: workspace, value: session.workspace.path}
access:
  rules: [{tools: [whoami], require: [records:read]}]
`

// A thousand clients of one process, each with its own principal and workspace, use one compiled
// configuration. Each sees only its own data, before and after a reload.
func TestThousandSessions(t *testing.T) {
	jwks := filepath.Join(t.TempDir(), "jwks.json")
	attachetest.WriteFile(t, jwks, string(attachetest.KeySet()))
	p := attachetest.WriteConfig(t, fmt.Sprintf(sessionsConfig, jwks))
	settings := attachetest.Load(t, p)
	shared, err := Compile(Options{Process: p, Log: slog.New(slog.DiscardHandler)}, settings)
	check(t, err)
	before := testkit.Heap()
	all := make([]*playedSession, sessionCount)
	for i := range all {
		all[i] = &playedSession{conn: shared.Connect(ConnOptions{Control: new(proxy.Control)}), n: i}
	}
	if used := (testkit.Heap() - before) / sessionCount; used > connHeap {
		t.Errorf("a connection uses %d bytes, want at most %d", used, connHeap)
	}
	for _, s := range all {
		s.start(t)
	}
	callAll(t, all, `{"user":"user-%[1]d","workspace":"/src/%[1]d"}`)
	if used := (testkit.Heap() - before) / sessionCount; used > sessionHeap {
		t.Errorf("a used session uses %d bytes, want at most %d", used, sessionHeap)
	}

	changed := *settings
	changed.Arguments = settings.Arguments[:1] // the workspace is no longer filled
	if _, err := shared.Reload(&changed); err != nil {
		t.Fatal(err)
	}
	callAll(t, all, `{"user":"user-%[1]d"}`)
	for _, s := range all {
		s.conn.Close()
	}
	if n := len(shared.connections()); n > 0 {
		t.Errorf("%d connections are open", n)
	}
}

// A playedSession is a session in which the test is both the client and the server.
type playedSession struct {
	*proxytest.Session
	conn *Conn
	n    int
}

// start starts the relay, performs the handshake and lists the tools.
func (s *playedSession) start(t *testing.T) {
	s.Session = proxytest.Setup{Options: s.conn.Relay()}.Start(t)
	s.Client.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"_meta":{"io.github.attache-mcp/workspace":"/src/%d"}}}`, s.n))
	s.Server.Next()
	s.Server.Send(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`)
	s.Client.Next()
	s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	s.Server.Next()
	s.Server.Send(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"whoami","inputSchema":{"type":"object","properties":{"user":{"type":"string"},"workspace":{"type":"string"}}}}]}}`)
	s.Client.Next()
}

// callAll makes one call in each session, all at the same time. want is the expected arguments of a
// call; %[1]d in it is the number of the session.
func callAll(t *testing.T, all []*playedSession, want string) {
	t.Helper()
	for _, s := range all {
		token := attachetest.Token(map[string]any{"sub": fmt.Sprintf("user-%d", s.n)})
		s.Client.Send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoami","arguments":{},"_meta":{"io.github.attache-mcp/token":"` + token + `"}}}`)
	}
	for _, s := range all {
		got := wire.Value{Raw: s.Server.Next()}.Get("params", "arguments")
		if want := fmt.Sprintf(want, s.n); string(got.Raw) != want {
			t.Errorf("session %d: the server got %s, want %s", s.n, got.Raw, want)
		}
		s.Server.Send(`{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`)
		s.Client.Next()
	}
}

// A workspace from the host's variables is ignored if its path is not UTF-8.
func TestHostWorkspaceIsUTF8(t *testing.T) {
	s := &config.Settings{}
	s.Session.HostEnv.Workspace = []string{"A", "B"}
	p := cli.Process{Env: []string{"A=/caf\xe9", "B=/src"}}
	if f := BaseContext(p, s).Workspace; f.Value != "/src" || f.From != "B" {
		t.Errorf("workspace %+v", f)
	}
}

// The path of the git root must be UTF-8. The path of the working directory in it need not.
func TestGitRootIsUTF8(t *testing.T) {
	s := &config.Settings{}
	s.Session.GitRoot = true
	root := t.TempDir()
	for dir, want := range map[string]string{root: root, filepath.Join(root, "odd\xe9"): ""} {
		sub := filepath.Join(dir, "sub\xe9")
		if err := errors.Join(os.MkdirAll(sub, 0o700), os.Mkdir(filepath.Join(dir, ".git"), 0o700)); err != nil {
			t.Skip(err) // not all file systems have such names
		}
		t.Chdir(sub)
		if f := BaseContext(cli.Process{}, s).Workspace; f.Value != want {
			t.Errorf("git root %q, want %q", f.Value, want)
		}
	}
}
