package session

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// A reloadTest is a session whose files change while it runs.
type reloadTest struct {
	*proxytest.Session
	*Reloader
	t   *testing.T
	dir string
	log lockedLog
}

// A lockedLog is written to by the session, at any time.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lockedLog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func newReloading(t *testing.T, text string, env ...string) *reloadTest {
	t.Helper()
	r := &reloadTest{t: t, dir: t.TempDir()}
	r.write("config.yaml", text)
	p := cli.Process{Env: append(env, "ATTACHE_CONFIG="+filepath.Join(r.dir, "config.yaml")), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
	load := func() (*config.Settings, error) { return config.Load(p, nil, nil) }
	s, err := load()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var control proxy.Control
	shared, err := assembly.Compile(assembly.Options{Process: p, Log: log}, s)
	if err != nil {
		t.Fatal(err)
	}
	o := shared.Connect(assembly.ConnOptions{Control: &control}).Relay()
	r.Reloader = NewReloader(shared, load, FileState(s), log)
	r.Session = proxytest.Setup{Options: o}.Start(t)
	return r
}

func (r *reloadTest) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// change writes a file and has everything read again, which is to be told in
// words; without words, nothing is to be told of the configuration.
func (r *reloadTest) change(name, text, words string) {
	r.t.Helper()
	r.write(name, text)
	r.log.Reset()
	r.Reload()
	r.told(words)
}

func (r *reloadTest) told(words string) {
	r.t.Helper()
	if got := r.log.String(); words == "" && strings.Contains(got, "configuration") || !strings.Contains(got, words) {
		r.t.Errorf("told\n%s\nwant %q", got, words)
	}
}

// passes sends a frame, which the other side is to see as it is.
func (r *reloadTest) passes(from, to *proxytest.Peer, frame string) {
	r.t.Helper()
	from.Send(frame)
	to.Expect(frame)
}

func (r *reloadTest) begin() {
	r.t.Helper()
	r.passes(r.Client, r.Server, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	r.passes(r.Server, r.Client, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}`)
	r.passes(r.Client, r.Server, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

const (
	toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	callDrop     = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"drop","arguments":{}}}`
	dropped      = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	dropRefused  = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Permission denied: this tool may not be called here"}],"isError":true}}`
)

// A rule that is added holds from the next call on, and the client is told that
// its list is another; a version that is not valid changes nothing and is told
// of once; what cannot change is told of.
func TestReloadRules(t *testing.T) {
	r := newReloading(t, "access: {rules: []}\n")
	r.begin()
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)

	const denying = "access: {rules: [{tools: [drop], deny: true}]}\n"
	r.change("config.yaml", denying, `keys=access.rules`)
	r.Client.Expect(toolsChanged)
	r.Client.Send(callDrop)
	r.Client.Expect(dropRefused)

	r.change("config.yaml", "access: {rulez: []}\n", "is not valid; the one before stays in force")
	r.told(filepath.Join(r.dir, "config.yaml:1:10"))
	r.change("config.yaml", "access: {rulez: []}\n", "")
	r.Client.Send(callDrop)
	r.Client.Expect(dropRefused)

	r.change("config.yaml", denying, "the configuration is valid again")
	r.change("config.yaml", denying, "")
	r.change("config.yaml", denying+"session: {workspace: /elsewhere}\n", "takes effect when attache is started again")
	r.change("config.yaml", "{}\n", "keys=access.rules")
	r.Client.Expect(toolsChanged)
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)
}

// A rule takes effect that is written after the configuration was loaded and before the watch begins.
func TestReloadBeforeWatch(t *testing.T) {
	r := newReloading(t, "access: {rules: []}\n")
	r.begin()
	r.write("config.yaml", "access: {rules: [{tools: [drop], deny: true}]}\n")
	r.startWatch()
	r.Client.Expect(toolsChanged)
	r.Client.Send(callDrop)
	r.Client.Expect(dropRefused)
}

func (r *reloadTest) startWatch() {
	r.t.Helper()
	r.Watch()
	r.t.Cleanup(r.Close)
	if r.watcher == nil {
		r.t.Skipf("nothing can be watched here: %s", r.log.String())
	}
}

// A file that a new version includes is watched like the others.
func TestReloadNewInclude(t *testing.T) {
	r := newReloading(t, "access: {rules: []}\n")
	r.begin()
	r.startWatch()
	r.write("team.yaml", "access: {rules: [{tools: [drop], deny: true}]}\n")
	r.write("config.yaml", "include: [team.yaml]\n")
	r.Client.Expect(toolsChanged)
	r.Client.Send(callDrop)
	r.Client.Expect(dropRefused)
	r.write("team.yaml", "access: {rules: []}\n")
	r.Client.Expect(toolsChanged)
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)
}

// A reload that hides a tool changes no list of prompts; one that hides a prompt
// that the client knows, or hides one no more, does.
func TestReloadTellsOfListsThatChange(t *testing.T) {
	const (
		id      = `"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}`
		tools   = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + id + `}}`
		prompts = `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{` + id + `}}`
		wants   = `"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`
		ping    = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	)
	r := newReloading(t, "{}\n")
	r.passes(r.Client, r.Server, `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{`+wants+`}}`)
	r.passes(r.Server, r.Client, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+id+`,`+wants+`}}`)
	r.passes(r.Client, r.Server, `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`)
	r.passes(r.Server, r.Client, `{"jsonrpc":"2.0","id":1,"result":{"prompts":[{"name":"review"}]}}`)
	for _, test := range []struct {
		rules string
		want  []string
	}{
		{"rewrite: [{tools: [drop], hide: true}]\n", []string{tools}},
		{"rewrite: [{tools: [drop], hide: true}, {tools: [re*], hide: true}]\n", []string{tools, prompts}},
		{"rewrite: [{tools: [re*], hide: true}]\n", []string{tools, prompts}},
		{"rewrite: [{tools: [re*], hide: true}, {tools: [x], rename: y}]\n", []string{tools}},
	} {
		r.change("config.yaml", test.rules, "keys=rewrite")
		for _, line := range test.want {
			r.Client.Expect(line)
		}
		r.passes(r.Server, r.Client, ping) // and nothing before it
	}
}

// A file that is empty, as in the middle of being saved, or gone, takes no rules
// back, and nor does what stands in its place.
func TestReloadNothing(t *testing.T) {
	r := newReloading(t, "access: {rules: [{tools: [drop], deny: true}]}\n")
	r.begin()
	file := filepath.Join(r.dir, "config.yaml")
	refused := func() {
		t.Helper()
		r.Client.Send(callDrop)
		r.Client.Expect(dropRefused)
	}
	r.change("config.yaml", "", "is empty: write {} into it")
	refused()
	// What a writer in place has begun since the watcher looked is not read.
	seen := fingerprint(r.files())
	if err := os.WriteFile(file, []byte("access: {rules: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.reloadFrom(seen)
	refused()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	r.Reload()
	r.told("cannot be read")
	refused()
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	r.Reload()
	r.told("is no file any more")
	refused()
}

// What takes effect later does not take effect by half: a required audit refuses
// what cannot be judged until it is over, and rules see the server's old name.
func TestReloadIsWhole(t *testing.T) {
	const (
		ambiguous = `{"jsonrpc":"2.0","method":"x","Method":"y"}`
		refused   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"refused: a name differs from one that matters only in letter case, blanks or invisible characters","data":{"source":"attache"}}}`
		audited   = "arguments: []\naudit: {file: audit.jsonl, required: "
	)
	r := newReloading(t, audited+"true}\n")
	r.begin()
	r.Client.Send(ambiguous)
	r.Client.Expect(refused)
	r.change("config.yaml", audited+"false}\n", "keys=audit.required")
	r.Client.Send(ambiguous)
	r.Client.Expect(refused)
	r.change("config.yaml", audited+"false}\n", "")

	r = newReloading(t, "server: {name: one}\n")
	r.begin()
	r.change("config.yaml", "server: {name: two}\naccess: {rules: [{tools: [drop], deny: true, when: server.name == 'one'}]}\n", "keys=server.name")
	r.Client.Expect(toolsChanged)
	r.Client.Send(callDrop)
	r.Client.Expect(dropRefused)
}

// A credential that is given to a session which began with none is told of as one
// for the next.
func TestReloadFirstCredential(t *testing.T) {
	r := newReloading(t, "{}\n")
	r.begin()
	r.write("key", "atk_abcdefgh_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	r.change("config.yaml", "identity: {api_key_file: key}\n", `takes effect when attache is started again" keys=identity.api_key_file`)
	if strings.Contains(r.log.String(), "in force") {
		t.Errorf("told\n%s", r.log.String())
	}
}

// A session file that cannot be read is told of where it is looked up. What it said
// is gone with it, which is no change of the configuration.
func TestReloadUnreadableSessionFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "session.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const good = "user: ada\nsession: s-7\ntrust: sandboxed\nworkspace: /src/shop\nworkspace_id: w\n"
	write(good)
	r := newReloading(t, "access: {rules: []}\n", "ATTACHE_SESSION_FILE="+file)
	r.begin()
	write("user: [")
	r.change("config.yaml", "access: {rules: []}\n", "")
	r.change("config.yaml", "access: {rules: []}\nsession: {workspace: /elsewhere}\n", "started again\" keys=session.workspace\n")
	write(good)
	r.change("config.yaml", "access: {rules: []}\n", "")
	write(strings.Replace(good, "s-7", "s-8", 1))
	r.change("config.yaml", "access: {rules: []}\n", "started again\" keys=session.id\n")
}

// A key that is revoked is no key from the next call on; a file that is broken
// keeps the keys that were in it.
func TestReloadKeys(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "keys.yaml")
	key, entry, err := identity.Create(file, identity.Attributes{User: "ada", Permissions: []string{"drop"}}, "", 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r := newReloading(t, "identity: {keys_file: "+file+"}\naccess: {rules: [{tools: [drop], require: [drop]}]}\n", "ATTACHE_API_KEY="+key)
	r.begin()
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)

	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("keys: {"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Reload()
	r.told("the keys read before hold")
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)

	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := identity.Revoke(file, entry.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.Reload()
	r.Client.Expect(toolsChanged)
	r.Client.Send(callDrop)
	r.Client.Expect(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Permission denied: the access rules could not be applied to this call"}],"isError":true}}`)
}

// A dry run ends in earnest when its key goes: also for what no layer sees.
func TestReloadDryRun(t *testing.T) {
	const denying = "access: {rules: [{tools: [drop], deny: true}]}\n"
	const ambiguous = `{"jsonrpc":"2.0","method":"x","Method":"y"}`
	r := newReloading(t, "dry_run: true\n")
	r.begin()
	r.change("config.yaml", "dry_run: true\n"+denying, "keys=access.rules") // and nobody is told of a list that is as it was
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)
	r.passes(r.Client, r.Server, ambiguous)

	r.change("config.yaml", denying, "keys=dry_run")
	r.Client.Expect(toolsChanged)
	r.Client.Send(callDrop)
	r.Client.Expect(dropRefused)
	r.Client.Send(ambiguous)
	r.Client.Expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"refused: a name differs from one that matters only in letter case, blanks or invisible characters","data":{"source":"attache"}}}`)

	r.change("config.yaml", "dry_run: true\n"+denying, "keys=dry_run")
	r.Client.Expect(toolsChanged)
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)
	r.passes(r.Client, r.Server, ambiguous)
}

// Policies are those of the moment a session is briefed, or the last that were
// valid, and a session is briefed once however often they change.
func TestReloadPolicies(t *testing.T) {
	dir := t.TempDir()
	write := func(objective string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "acme.yaml"), []byte("scope: acme\nobjectives: ["+objective+"]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	r := newReloading(t, "policy: {dir: "+dir+", scope: acme}\n")
	r.begin()
	write("two")
	r.Reload()
	write("[three")
	r.Reload()
	r.told("those read before hold")
	r.passes(r.Client, r.Server, callDrop)
	r.Server.Send(dropped)
	if got := string(r.Client.Next()); !strings.Contains(got, `Objectives:\n  - two\n`) {
		t.Errorf("briefed with %s", got)
	}
	write("four")
	r.Reload()
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)
}

// A rule that is added asks the server for its tools, as the handshake is over.
func TestReloadArguments(t *testing.T) {
	r := newReloading(t, "session: {workspace: /src/shop}\narguments: []\n")
	r.begin()
	r.change("config.yaml", "session: {workspace: /src/shop}\narguments: [{tools: [drop], argument: path, value: session.workspace.path}]\n", "keys=arguments")
	r.Client.Expect(toolsChanged)
	r.Client.Send(callDrop)
	asked := string(r.Server.Next())
	id, ok := strings.CutPrefix(asked, `{"jsonrpc":"2.0","id":`)
	id, _, _ = strings.Cut(id, ",")
	if !ok || !strings.Contains(asked, `"tools/list"`) {
		t.Fatalf("the server was not asked for its tools: %s", asked)
	}
	r.Server.Send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"tools":[{"name":"drop","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]}}`)
	r.Server.Expect(strings.Replace(callDrop, `"arguments":{}`, `"arguments":{"path":"/src/shop"}`, 1))
}

// A configuration that is read again gives nobody a fresh bucket.
func TestReloadKeepsRates(t *testing.T) {
	const rates = "access:\n  rates: [{tools: ['*'], per: session, limit: 1/hour}]\n"
	r := newReloading(t, rates)
	r.begin()
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)
	r.change("config.yaml", rates+"  rules: [{tools: [other], deny: true}]\n", `keys=access.rules`)
	r.Client.Expect(toolsChanged)
	r.Client.Send(callDrop)
	r.Client.Expect(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Rate limit reached: try again in 3600 seconds"}],"isError":true}}`)
}
