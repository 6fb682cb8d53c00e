package assembly

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/sessionstate"
)

// Flags cannot raise the trust of an agent that another session started as sandboxed.
func TestTrustOfAgents(t *testing.T) {
	for _, test := range []struct {
		env  []string
		want string
	}{
		{[]string{"ATTACHE_TRUST=direct", "ATTACHE_TRUST_LEVEL=sandboxed"}, "direct"},
		{[]string{"ATTACHE_TRUST=direct", "ATTACHE_TRUST_LEVEL=sandboxed", config.SessionTokenVariable + "=proof"}, "sandboxed"},
		{[]string{"ATTACHE_TRUST=direct", "ATTACHE_TRUST_LEVEL=direct", config.SessionTokenVariable + "=proof"}, "direct"},
		{[]string{"ATTACHE_TRUST=sandboxed", "ATTACHE_TRUST_LEVEL=direct", config.SessionTokenVariable + "=proof"}, "sandboxed"},
	} {
		p := attachetest.WriteConfig(t, "{}", test.env...)
		if got := BaseContext(p, attachetest.Load(t, p)).Trust.Value; got != test.want {
			t.Errorf("%q: the trust is %s, want %s", test.env, got, test.want)
		}
	}
}

// The variable of one client does not name the session of another client that is started in its shell.
func TestSessionOfHost(t *testing.T) {
	p := attachetest.WriteConfig(t, "session: {host_env: {session: [CLAUDE_CODE_SESSION_ID, COPILOT_AGENT_SESSION_ID, OWN]}}",
		"CLAUDE_CODE_SESSION_ID=claude", "COPILOT_AGENT_SESSION_ID=copilot", "OWN=own")
	s := attachetest.Load(t, p)
	for client, want := range map[string]string{"": "claude", "another": "claude", "claude-code": "claude", "copilot-cli": "copilot", "qwen-cli-mcp-client-x": "own"} {
		if got := hostSession(p, s, client).Value; got != want {
			t.Errorf("the session of %q is %q, want %q", client, got, want)
		}
	}
}

// The layer teams is there only if teams are on and the process has a client of its own, and not in a dry run.
func TestTeamsAreOptional(t *testing.T) {
	for text, want := range map[string]bool{"{}": false, "teams: {enabled: true}": true, "teams: {enabled: true}\ndry_run: true": false} {
		for _, o := range []*TeamsOptions{nil, {}} {
			p := attachetest.WriteConfig(t, text)
			shared, err := Compile(Options{Process: p, Teams: o, Log: slog.New(slog.DiscardHandler)}, attachetest.Load(t, p))
			check(t, err)
			if got := slices.Contains(shared.Connect(ConnOptions{}).Names(), "teams"); got != (want && o != nil) {
				t.Errorf("%s: with options for teams: %t, the layer is there: %t", text, o != nil, got)
			}
			shared.Close()
		}
	}
}

// A client hears of new lists when its principal changes if a rule that shapes the lists reads the principal.
func TestListsOfPrincipal(t *testing.T) {
	const who = `when: 'principal.user == "ada"'`
	for text, want := range map[string][]announce.List{
		"{}":                              nil,
		"access: {rules: [{tools: [x]}]}": nil,
		"access: {rules: [{tools: [x], require: [a]}]}":                                 {announce.Tools},
		"access: {hide: false, rules: [{tools: [x], require: [a]}]}":                    nil,
		"access: {rules: [{tools: [x], " + who + "}]}":                                  {announce.Tools},
		"arguments: [{tools: [x], argument: a, mode: forbid, " + who + "}]":             {announce.Tools},
		"rewrite: [{tools: [x], describe: y, " + who + "}]":                             {announce.Tools},
		"rewrite: [{tools: [x], hide: true}]":                                           nil,
		"rewrite: [{tools: [x], hide: true, " + who + "}]":                              {announce.Tools, announce.Prompts, announce.Resources},
		"dry_run: true\nrewrite: [{tools: [x], hide: true, " + who + "}]":               nil,
		"rewrite: [{tools: [x], hide: true, when: 'session.workspace.path == \"/a\"'}]": nil,
	} {
		if got := principalLists(attachetest.Load(t, attachetest.WriteConfig(t, text))); !slices.Equal(got, want) {
			t.Errorf("%s: lists %v, want %v", text, got, want)
		}
	}
}

// A call waits for the workspace if a rule reads it.
func TestRulesThatReadTheWorkspace(t *testing.T) {
	const workspace = `'session.workspace.path == "/src"'`
	for text, want := range map[string]bool{
		"{}": false,
		"access: {rules: [{tools: [x], when: " + workspace + "}]}":                                           true,
		"rewrite: [{tools: [x], hide: true, when: " + workspace + "}]":                                       true,
		"rewrite: [{tools: [x], set: {a: session.workspace.path}}]":                                          true,
		"arguments: [{tools: [x], argument: a, mode: forbid, when: " + workspace + "}]":                      true,
		"arguments: [{tools: [x], argument: a, value: session.workspace.path}]":                              false,
		"arguments: [{tools: [x], argument: a, value: 'session.workspace.path + \"/b\"'}]":                   true,
		"access: {rules: [{tools: [x], when: 'principal.user == \"ada\"'}]}":                                 false,
		"access: {rules: [{tools: [x]}, {tools: [y], when: " + workspace + "}]}\narguments: []\nrewrite: []": true,
	} {
		if got := readsWorkspace(attachetest.Load(t, attachetest.WriteConfig(t, text))); got != want {
			t.Errorf("%s: reads the workspace: %t, want %t", text, got, want)
		}
	}
}

// The caches of keys and of principals together do not exceed identity.cache.
func TestCachesOfKeys(t *testing.T) {
	s := attachetest.Load(t, attachetest.WriteConfig(t, "identity: {cache: 100s}"))
	var o capture.Options
	(&Authenticator{}).configure(&o, s, slog.New(slog.DiscardHandler))
	if keys := keyCache(s); keys <= 0 || keys > s.Identity.Cache/2 || keys+o.Recheck != s.Identity.Cache {
		t.Errorf("keys are cached for %v and principals for %v, together not %v", keys, o.Recheck, s.Identity.Cache)
	}
}

// A server inherits the facts that attache does not know, unless they are another client's, and in a dry run all
// that attache has inherited.
func TestInheritedFacts(t *testing.T) {
	outer := []string{"ATTACHE_WORKSPACE_PATH=/outer", "ATTACHE_WORKSPACE_ID=outer"}
	mark := config.MarkVariable + "=" + config.DefaultSettings("").Session.Mark(cli.Process{Env: outer}.Getenv)
	for _, test := range []struct {
		text string
		more []string
		want string
	}{
		{"session: {workspace_id: inner}\n", nil, "ATTACHE_WORKSPACE_ID=inner ATTACHE_WORKSPACE_PATH=/outer"},
		{"session: {workspace_id: inner}\n", []string{mark, "CLAUDE_CODE_SESSION_ID=other"}, "ATTACHE_WORKSPACE_ID=inner ATTACHE_WORKSPACE_PATH="},
		{"session: {workspace_id: inner}\ndry_run: true\n", []string{mark, "CLAUDE_CODE_SESSION_ID=other"}, "ATTACHE_WORKSPACE_ID=outer ATTACHE_WORKSPACE_PATH=/outer"},
	} {
		p := attachetest.WriteConfig(t, test.text)
		conn, err := Single(Options{Process: p, Log: slog.New(slog.DiscardHandler)}, attachetest.Load(t, p), ConnOptions{})
		check(t, err)
		var got []string
		for _, entry := range conn.Environment(slices.Concat(outer, test.more)) {
			switch variable(entry) {
			case "ATTACHE_WORKSPACE_ID", "ATTACHE_WORKSPACE_PATH":
				got = append(got, entry)
			case config.MarkVariable:
				if dry := strings.Contains(test.text, "dry_run"); dry != (entry == mark) {
					t.Errorf("%s: the mark is changed: %t", test.text, entry != mark)
				}
			}
		}
		slices.Sort(got)
		if all := strings.Join(got, " "); all != test.want {
			t.Errorf("%s with %q: the server gets %s, want %s", test.text, test.more, all, test.want)
		}
	}
}

// The relay obeys the limits, stdout_noise and dry_run of the configuration.
func TestRelayOptions(t *testing.T) {
	type options struct {
		hold, inFlight int
		noise, dryRun  bool
	}
	for text, want := range map[string]options{
		"{}":                     {8 << 20, 100_000, false, false},
		"limits: {hold: 4KiB}":   {4 << 10, 100_000, false, false},
		"limits: {in_flight: 7}": {8 << 20, 7, false, false},
		"stdout_noise: forward":  {8 << 20, 100_000, true, false},
		"dry_run: true":          {8 << 20, 100_000, false, true},
	} {
		conn, err := Single(Options{Log: slog.New(slog.DiscardHandler)}, attachetest.Load(t, attachetest.WriteConfig(t, text)), ConnOptions{})
		check(t, err)
		if o := conn.Relay(); (options{o.Hold, o.InFlight, o.ForwardNoise, o.DryRun}) != want {
			t.Errorf("%s: hold %d, in flight %d, noise %t, dry run %t; want %+v", text, o.Hold, o.InFlight, o.ForwardNoise, o.DryRun, want)
		}
	}
}

// The operator's id of a workspace precedes the digest of its path.
func TestWorkspaceID(t *testing.T) {
	fact := func(value string) sessionstate.Fact {
		return sessionstate.Fact{Value: value, Source: sessionstate.Operator}
	}
	path := sessionstate.Context{Workspace: fact("/src/shop")}
	digest := WorkspaceID(&path)
	both := path
	both.WorkspaceID = fact("shop")
	for _, row := range []struct {
		view *sessionstate.Context
		want string
	}{
		{nil, ""}, {&sessionstate.Context{}, ""}, {&both, "shop"}, {&sessionstate.Context{WorkspaceID: fact("shop")}, "shop"},
		{&sessionstate.Context{Workspace: fact("/src/./shop/")}, digest},
	} {
		if got := WorkspaceID(row.view); got != row.want {
			t.Errorf("%+v: %q, want %q", row.view, got, row.want)
		}
	}
	if digest == "" || digest == WorkspaceID(&sessionstate.Context{Workspace: fact("/src/other")}) {
		t.Errorf("the digest %q", digest)
	}
}

// After a restart, only calls of the tools in restart.retry are sent again. In a dry run, none are, and the notice waits.
func TestRestartOptions(t *testing.T) {
	p := attachetest.WriteConfig(t, "server: {restart: {retry: ['get_*']}}\n")
	r := compiled(t, p).Connect(ConnOptions{}).Restart()
	if !r.Retry("get_issue") || r.Retry("set_issue") || r.Quiet() {
		t.Errorf("get_issue is retried: %t, set_issue: %t, quiet: %t", r.Retry("get_issue"), r.Retry("set_issue"), r.Quiet())
	}
	p = attachetest.WriteConfig(t, "{}\n", "ATTACHE_DRY_RUN=true")
	if r = compiled(t, p).Connect(ConnOptions{}).Restart(); r.Retry != nil || !r.Quiet() {
		t.Errorf("a dry run: retries: %t, quiet: %t", r.Retry != nil, r.Quiet())
	}
}
