package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
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

// A lockedLog is a buffer that can be written and read concurrently.
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
	check(t, err)
	log := slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var control proxy.Control
	shared, err := assembly.Compile(assembly.Options{Process: p, Log: log}, s)
	check(t, err)
	conn := shared.Connect(assembly.ConnOptions{Control: &control})
	o := conn.Relay()
	o.Restart = conn.Restart()
	r.Reloader = NewReloader(shared, load, FileState(s), log)
	r.Session = proxytest.Setup{Options: o}.Start(t)
	return r
}

func (r *reloadTest) write(name, text string) {
	r.t.Helper()
	attachetest.WriteFile(r.t, filepath.Join(r.dir, name), text)
}

// change writes the configuration and reloads. The log must then contain words or, if words is empty, nothing
// about the configuration.
func (r *reloadTest) change(text, words string) {
	r.t.Helper()
	r.write("config.yaml", text)
	r.log.Reset()
	r.Reload()
	r.expectLog(words)
}

func (r *reloadTest) expectLog(words string) {
	r.t.Helper()
	// On a slow machine the log may also have that "the new configuration does not apply to all sessions yet".
	if got := r.log.String(); words == "" && strings.Contains(got, "the configuration") || !strings.Contains(got, words) {
		r.t.Errorf("log\n%s\nwant %q", got, words)
	}
}

// passes sends a frame, which the other side must receive unchanged.
func (r *reloadTest) passes(from, to *proxytest.Peer, frame string) {
	r.t.Helper()
	from.Send(frame)
	to.Expect(frame)
}

// begin starts a session and makes the handshake.
func begin(t *testing.T, text string, env ...string) *reloadTest {
	t.Helper()
	r := newReloading(t, text, env...)
	r.passes(r.Client, r.Server, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	r.passes(r.Server, r.Client, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}`)
	r.passes(r.Client, r.Server, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return r
}

const (
	toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	callDrop     = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"drop","arguments":{}}}`
	dropped      = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	denied       = "Permission denied: this tool may not be called here"
)

// allowed makes a call that reaches the server.
func (r *reloadTest) allowed() {
	r.t.Helper()
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)
}

// refused makes a call that is answered with a text.
func (r *reloadTest) refused(text string) {
	r.t.Helper()
	r.Client.Send(callDrop)
	r.Client.Expect(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + text + `"}],"isError":true}}`)
}

// restart ends the server, and makes the handshake with the next one. The test must be in a bubble of
// testing/synctest.
func (r *reloadTest) restart() {
	r.t.Helper()
	r.Exit(errors.New("exit status 1"))
	synctest.Wait()
	var initialize struct{ ID json.RawMessage }
	if err := json.Unmarshal(r.Server.Next(), &initialize); err != nil {
		r.t.Fatal(err)
	}
	r.Server.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}`, initialize.ID))
	r.Server.Expect(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// A new rule applies from the next call on, and the client is notified that its list has changed. An
// invalid version changes nothing; it is logged once, and again after a SIGHUP. Changes that need a
// restart are logged.
func TestReloadRules(t *testing.T) {
	r := begin(t, "access: {rules: []}\n")
	r.allowed()

	const denying = "access: {rules: [{tools: [drop], deny: true}]}\n"
	r.change(denying, `keys=access.rules`)
	r.Client.Expect(toolsChanged)
	r.refused(denied)

	r.change("access: {rulez: []}\n", "cannot be applied; the one before stays in force")
	r.expectLog(filepath.Join(r.dir, "config.yaml:1:10"))
	r.change("access: {rulez: []}\nrewritez: []\n", filepath.Join(r.dir, "config.yaml:2:1"))
	if n := strings.Count(r.log.String(), "cannot be applied"); n != 2 {
		t.Errorf("%d lines for two mistakes:\n%s", n, r.log.String())
	}
	r.change("access: {rulez: []}\n", "cannot be applied")
	r.log.Reset()
	r.reload(fingerprint(r.files()), false)
	r.expectLog("")
	r.change("access: {rulez: []}\n", "cannot be applied; the one before stays in force")
	r.refused(denied)

	r.change(denying, "the configuration is valid again")
	r.change(denying, "")
	r.change(denying+"session: {workspace: /elsewhere}\n", "takes effect when attache is started again")
	r.change(denying+"inject: {workspaces: {shop: {servers: [git]}}}\n", "")
	r.change("{}\n", "keys=access.rules")
	r.Client.Expect(toolsChanged)
	r.allowed()
}

// A mistake is logged once, and again if the operator asks. Files that change while attache reads
// them are no mistake: attache reads them again.
func TestReloadMistakes(t *testing.T) {
	r := newReloading(t, "{}")
	r.write("config.yaml", "unknown: 1")
	r.reload("another state", false)
	r.expectLog("")
	r.write("config.yaml", "log: [")
	state := fingerprint(r.files())
	for i, asked := range []bool{false, false, true} {
		r.log.Reset()
		r.reload(state, asked)
		if logged := strings.Contains(r.log.String(), "cannot be applied"); logged != (i != 1) {
			t.Errorf("reload %d: log\n%s", i, r.log.String())
		}
	}
}

// A probable mistake in a changed configuration is logged once.
func TestReloadWarnings(t *testing.T) {
	r := begin(t, "{}\n")
	const warning = "policy.scope has no effect"
	r.change("policy: {scope: acme}\n", warning)
	r.change("policy: {scope: acme}\naccess: {rules: []}\n", "")
	if strings.Contains(r.log.String(), warning) {
		t.Errorf("logged again:\n%s", r.log.String())
	}
}

// A session that ends while the watch is about to start leaves no watch.
func TestWatchAfterClose(t *testing.T) {
	r := begin(t, "{}\n")
	r.Close()
	if r.Watch(); r.watcher != nil {
		t.Error("the files are watched")
	}
}

// A rule that is written after the configuration was loaded and before the watch starts takes effect.
func TestReloadBeforeWatch(t *testing.T) {
	r := begin(t, "access: {rules: []}\n")
	r.write("config.yaml", "access: {rules: [{tools: [drop], deny: true}]}\n")
	r.startWatch()
	r.Client.Expect(toolsChanged)
	r.refused(denied)
}

func (r *reloadTest) startWatch() {
	r.t.Helper()
	r.Watch()
	r.t.Cleanup(r.Close)
	if r.watcher == nil {
		r.t.Skipf("nothing can be watched here: %s", r.log.String())
	}
}

// A file that only a new version includes is watched too.
func TestReloadNewInclude(t *testing.T) {
	r := begin(t, "access: {rules: []}\n")
	r.startWatch()
	r.write("team.yaml", "access: {rules: [{tools: [drop], deny: true}]}\n")
	r.write("config.yaml", "include: [team.yaml]\n")
	r.Client.Expect(toolsChanged)
	r.refused(denied)
	r.write("team.yaml", "access: {rules: []}\n")
	r.Client.Expect(toolsChanged)
	r.allowed()
}

// A reload that hides a tool does not change the lists of prompts and resources. One that hides a prompt or a
// resource that the client knows, or stops hiding something, does.
func TestReloadAnnouncesChangedLists(t *testing.T) {
	t.Parallel()
	const (
		id      = `"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}`
		tools   = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + id + `}}`
		prompts = `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{` + id + `}}`
		files   = `{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{` + id + `}}`
		wants   = `"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`
		ping    = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	)
	r := newReloading(t, "{}\n")
	r.passes(r.Client, r.Server, `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{`+wants+`}}`)
	r.passes(r.Server, r.Client, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+id+`,`+wants+`}}`)
	r.passes(r.Client, r.Server, `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`)
	r.passes(r.Server, r.Client, `{"jsonrpc":"2.0","id":1,"result":{"prompts":[{"name":"review"}]}}`)
	r.passes(r.Client, r.Server, `{"jsonrpc":"2.0","id":2,"method":"resources/list"}`)
	r.passes(r.Server, r.Client, `{"jsonrpc":"2.0","id":2,"result":{"resources":[{"uri":"file:///src/a","name":"a"}]}}`)
	for _, test := range []struct {
		rules string
		want  []string
	}{
		{"rewrite: [{tools: [drop], hide: true}]\n", []string{tools}},
		{"rewrite: [{tools: [drop], hide: true}, {tools: [re*], hide: true}]\n", []string{tools, prompts}},
		{"rewrite: [{tools: [re*], hide: true}]\n", []string{tools, prompts, files}}, // the rule before may have hidden any
		{"rewrite: [{tools: [re*], hide: true}, {tools: [x], rename: y}]\n", []string{tools}},
		{"rewrite: [{tools: [re*], hide: true}, {tools: ['file:///*/a'], hide: true}]\n", []string{tools, files}},
		{"{}\n", []string{tools, prompts, files}},
	} {
		r.change(test.rules, "keys=rewrite")
		for _, line := range test.want {
			r.Client.Expect(line)
		}
		r.passes(r.Server, r.Client, ping) // and nothing before it
	}
}

// A file that is empty, as it may be while it is saved, missing, or replaced by something else does
// not remove the rules.
func TestReloadNothing(t *testing.T) {
	r := begin(t, "access: {rules: [{tools: [drop], deny: true}]}\n")
	file := filepath.Join(r.dir, "config.yaml")
	r.change("", "is empty: write {} into it")
	r.refused(denied)
	// What a writer in place has begun since the watcher looked is not read.
	seen := fingerprint(r.files())
	attachetest.WriteFile(t, file, "access: {rules: []}\n")
	r.reload(seen, false)
	r.refused(denied)
	check(t, os.Remove(file))
	r.Reload()
	r.expectLog("cannot be read")
	r.refused(denied)
	check(t, os.Mkdir(file, 0o700))
	r.Reload()
	r.expectLog("is no longer a file")
	r.refused(denied)
}

// Keys that take effect later have no partial effect: a required audit refuses ambiguous frames until
// the session ends, and rules see the server's old name.
func TestReloadIsWhole(t *testing.T) {
	const (
		ambiguous = `{"jsonrpc":"2.0","method":"x","Method":"y"}`
		refused   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"refused: a name differs from one that matters only in letter case, blanks or invisible characters","data":{"source":"attache"}}}`
		audited   = "arguments: []\naudit: {file: audit.jsonl, required: "
	)
	r := begin(t, audited+"true}\n")
	r.Client.Send(ambiguous)
	r.Client.Expect(refused)
	r.change(audited+"false}\n", "keys=audit.required")
	r.Client.Send(ambiguous)
	r.Client.Expect(refused)
	r.change(audited+"false}\n", "")

	r = begin(t, "server: {name: one}\n")
	r.change("server: {name: two}\naccess: {rules: [{tools: [drop], deny: true, when: server.name == 'one'}]}\n", "keys=server.name")
	r.Client.Expect(toolsChanged)
	r.refused(denied)
}

// For a session that began without a credential, a new one is logged as taking effect in the next
// session. If it is removed again, nothing is logged, because it was never in force.
func TestReloadFirstCredential(t *testing.T) {
	r := begin(t, "{}\n")
	r.write("key", "atk_abcdefgh_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	const credential = "identity: {api_key_file: key}\n"
	r.change(credential, `takes effect when attache is started again" keys=identity.api_key_file`)
	if strings.Contains(r.log.String(), "in force") {
		t.Errorf("log\n%s", r.log.String())
	}
	r.change("{}\n", "")
	const two = credential + "limits: {in_flight: 7}\n"
	r.change(two, `takes effect when attache is started again" keys="limits.in_flight, identity.api_key_file"`)
	r.change(two, "")
	r.change(credential+"access: {rules: [{tools: [drop], deny: true}]}\n", `in force" keys=access.rules`)
}

// A session file that cannot be read is logged when the session is identified. The loss of its values
// is not logged as a change of the configuration.
func TestReloadUnreadableSessionFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "session.yaml")
	write := func(text string) {
		t.Helper()
		attachetest.WriteFile(t, file, text)
	}
	const good = "user: ada\nsession: s-7\ntrust: sandboxed\nworkspace: /src/shop\nworkspace_id: w\n"
	write(good)
	r := begin(t, "access: {rules: []}\n", "ATTACHE_SESSION_FILE="+file)
	write("user: [")
	r.change("access: {rules: []}\n", "")
	r.change("access: {rules: []}\nsession: {workspace: /elsewhere}\n", "started again\" keys=session.workspace\n")
	write(good)
	r.change("access: {rules: []}\n", "")
	write(strings.Replace(good, "s-7", "s-8", 1))
	r.change("access: {rules: []}\n", "started again\" keys=session.id\n")
}

// A revoked key is refused from the next call on. If the key file is broken, the keys read before
// stay valid.
func TestReloadKeys(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "keys.yaml")
	key, entry := attachetest.CreateKey(t, file, identity.Attributes{User: "ada", Permissions: []string{"drop"}})
	r := begin(t, "identity: {keys_file: "+file+"}\naccess: {rules: [{tools: [drop], require: [drop]}]}\n", "ATTACHE_API_KEY="+key)
	r.allowed()

	good, err := os.ReadFile(file)
	check(t, err)
	attachetest.WriteFile(t, file, "keys: {")
	r.Reload()
	r.expectLog("the keys that were read before stay valid")
	r.allowed()

	attachetest.WriteFile(t, file, string(good))
	check(t, identity.Revoke(file, entry.ID, time.Now()))
	r.Reload()
	r.Client.Expect(toolsChanged)
	r.refused("Permission denied: the access rules could not be applied to this call")
}

// When dry_run is removed, rules apply, also to frames that no layer sees.
func TestReloadDryRun(t *testing.T) {
	const denying = "access: {rules: [{tools: [drop], deny: true}]}\n"
	const ambiguous = `{"jsonrpc":"2.0","method":"x","Method":"y"}`
	r := begin(t, "dry_run: true\n")
	r.change("dry_run: true\n"+denying, "keys=access.rules") // no list has changed, so the client is not notified
	r.allowed()
	r.passes(r.Client, r.Server, ambiguous)

	r.change(denying, "keys=dry_run")
	r.Client.Expect(toolsChanged)
	r.refused(denied)
	r.Client.Send(ambiguous)
	r.Client.Expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"refused: a name differs from one that matters only in letter case, blanks or invisible characters","data":{"source":"attache"}}}`)

	r.change("dry_run: true\n"+denying, "keys=dry_run")
	r.Client.Expect(toolsChanged)
	r.allowed()
	r.passes(r.Client, r.Server, ambiguous)
}

// While dry_run is set, no result has the notice about a restart; when it is removed, the next one has it.
func TestReloadDryRunNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, "dry_run: false\n")
		r.change("dry_run: true\n", "keys=dry_run")
		r.Client.Expect(toolsChanged)
		r.restart()
		r.allowed()

		r.change("dry_run: false\n", "keys=dry_run")
		r.Client.Expect(toolsChanged)
		r.passes(r.Client, r.Server, callDrop)
		r.Server.Send(dropped)
		if got := string(r.Client.Next()); !strings.Contains(got, "restarted at") {
			t.Errorf("the result has no notice: %s", got)
		}
		r.allowed()
	})
}

// A session is briefed with the policies at that moment, or the last valid ones. It is briefed once,
// however often they change.
func TestReloadPolicies(t *testing.T) {
	dir := t.TempDir()
	write := func(objective string) {
		t.Helper()
		attachetest.WriteFile(t, filepath.Join(dir, "acme.yaml"), "scope: acme\nobjectives: ["+objective+"]\n")
	}
	write("one")
	r := begin(t, "policy: {dir: "+dir+", scope: acme}\n")
	write("two")
	r.Reload()
	write("[three")
	r.Reload()
	r.expectLog("the policies cannot be used; those read before stay in force")
	r.log.Reset()
	r.Reload()
	r.expectLog("the policies cannot be used; those read before stay in force") // as the operator asks
	r.passes(r.Client, r.Server, callDrop)
	r.Server.Send(dropped)
	if got := string(r.Client.Next()); !strings.Contains(got, `Objectives:\n  - two\n`) {
		t.Errorf("briefed with %s", got)
	}
	write("four")
	r.Reload()
	r.allowed()
}

// Policies that the configuration no longer names are not read again, and cannot fail.
func TestReloadWithoutPolicies(t *testing.T) {
	dir := t.TempDir()
	attachetest.WriteFile(t, filepath.Join(dir, "acme.yaml"), "scope: acme\nobjectives: [one]\n")
	r := begin(t, "policy: {dir: "+dir+", scope: acme}\n")
	r.passes(r.Client, r.Server, callDrop)
	r.Server.Send(dropped)
	r.Client.Next() // with the briefing, so nothing reads the policies any more
	r.change("policy: {scope: acme}\n", "keys=policy.dir")
	attachetest.WriteFile(t, filepath.Join(dir, "acme.yaml"), "[")
	r.Reload()
	if got := r.log.String(); strings.Contains(got, "cannot be used") {
		t.Errorf("log\n%s", got)
	}
}

// When a policy endpoint is added, it may know the key of the session, as at the start.
func TestReloadEndpointKeys(t *testing.T) {
	const rules = "access: {rules: [{tools: [drop], deny: true, when: principal.user == 'eve'}]}\n"
	r := begin(t, rules, "ATTACHE_API_KEY=atk_abcdefgh_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	r.refused("Permission denied: the access rules could not be applied to this call") // there is no key file
	r.change(rules+"policy: {url: 'http://127.0.0.1:1/'}\n", "keys=policy.url")
	r.Client.Expect(toolsChanged)
	r.allowed()
}

// A dry run does not use up the session's turn: when dry_run is removed, the next result has the briefing.
func TestReloadDryRunBriefing(t *testing.T) {
	dir := t.TempDir()
	attachetest.WriteFile(t, filepath.Join(dir, "acme.yaml"), "scope: acme\nobjectives: [one]\n")
	settings := "policy: {dir: " + dir + ", scope: acme}\n"
	r := begin(t, settings+"dry_run: true\n")
	r.allowed()
	r.change(settings, "keys=dry_run")
	r.Client.Expect(toolsChanged)
	r.passes(r.Client, r.Server, callDrop)
	r.Server.Send(dropped)
	if got := string(r.Client.Next()); !strings.Contains(got, `Objectives:\n  - one\n`) {
		t.Errorf("the result has no briefing: %s", got)
	}
	r.allowed()
}

// After the handshake, a new rule makes attache ask the server for its tools.
func TestReloadArguments(t *testing.T) {
	r := begin(t, "session: {workspace: /src/shop}\narguments: []\n")
	r.change("session: {workspace: /src/shop}\narguments: [{tools: [drop], argument: path, value: session.workspace.path}]\n", "keys=arguments")
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

// A reload does not refill rate buckets.
func TestReloadKeepsRates(t *testing.T) {
	const rates = "access:\n  rates: [{tools: ['*'], per: session, limit: 1/hour}]\n"
	synctest.Test(t, func(t *testing.T) { // on a clock that stands still during the reload
		r := begin(t, rates)
		r.allowed()
		r.change(rates+"  rules: [{tools: [other], deny: true}]\n", `keys=access.rules`)
		r.Client.Expect(toolsChanged)
		r.refused("Rate limit reached: try again in 3600 seconds")
	})
}

// A reload keeps the URIs that the server listed, so that those not in normal form can still be read.
func TestReloadKeepsListedResources(t *testing.T) {
	t.Parallel()
	const hide = "rewrite: [{tools: ['postgres://*/secrets/schema'], hide: true}]\n"
	const read = `{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"postgres://ada@localhost/users/schema"}}`
	r := begin(t, hide)
	r.Client.Send(`{"jsonrpc":"2.0","id":7,"method":"resources/list"}`)
	r.Server.Next()
	r.Server.Send(`{"jsonrpc":"2.0","id":7,"result":{"resources":[{"uri":"postgres://ada@localhost/users/schema"}]}}`)
	r.Client.Next()
	r.change(hide+"access: {rules: [{tools: [other], deny: true}]}\n", `keys=access.rules`)
	r.Client.Expect(toolsChanged)
	r.Client.Send(read)
	r.Server.Expect(read)
}
