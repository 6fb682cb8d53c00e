package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/sessionstate/identity"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// read reads text as the configuration file /conf/config.yaml.
func read(text string) (*Settings, setting.Problems) {
	s, l := DefaultSettings("/conf"), &loader{}
	l.read(l.documents("/conf/config.yaml", []byte(text), s), s, nil)
	return s, l.problems
}

func TestReadFullExample(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yaml")
	check(t, err)
	got, problems := read(string(data))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := fullSettings()
	got.origins, got.outside = nil, nil
	when := got.Access.Rules[1].When // has functions, which DeepEqual cannot compare
	if got.Access.Rules[1].When = nil; when == nil || when.String() != `session.trust != "direct"` {
		t.Errorf("condition %v", when)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// fullSettings returns the settings in full.yaml. All of them differ from the defaults, so that the
// test notices a key that is not read.
func fullSettings() *Settings {
	return &Settings{
		Server: ServerSettings{Name: "git", Env: map[string]string{"TOKEN": "value", "PORT": "8080", "DEBUG": "true", "EMPTY": ""}, PassMessaging: true, Command: []string{"npx", "-y", "git-mcp"},
			Remote: RemoteSettings{
				Headers: map[string]setting.Secret{"X-Team": {Text: "shop"}, "Authorization": {Env: "TOKEN"}, "X-Api-Key": {File: "/conf/api.key"}},
				CA:      "/conf/tls/ca.pem", Cert: "/conf/tls/cert.pem", Key: "/conf/tls/key.pem",
				BearerEnv: "EXAMPLE_TOKEN", Connect: 5 * time.Second, FirstByte: time.Minute,
				OAuth: OAuthSettings{
					Grant: GrantMachine, ClientID: "ours", ClientSecret: setting.Secret{Env: "SECRET"}, ClientMetadata: "https://attache.example/client.json",
					Issuer: "https://login.example", Resource: "api://tools", Params: map[string]string{"audience": "https://api.example", "access_type": "offline"}, Scopes: []string{"read", "mail:write"}, Redirect: "http://localhost:8765/callback", Store: StoreFile,
				},
			},
			Restart: RestartSettings{On: "never", Hold: 5 * time.Second, Hang: 5 * time.Minute, Retry: []string{"get_*"}}},
		Serve: ServeSettings{
			Listen: "0.0.0.0:9000", PublicURL: "https://mcp.example.com/git", Path: "/git", Admin: "127.0.0.1:9001",
			Origins: []string{"https://app.example.com"}, Hosts: []string{"mcp.internal"}, Scopes: []string{"mcp:use"}, LoginScopes: []string{"openid"},
			Cert: "/conf/tls/cert.pem", Key: "/conf/tls/key.pem", Idle: 10 * time.Minute, Drain: 5 * time.Second,
			Limits: ServeLimits{Sessions: 10, PerPrincipal: 2, Children: 5, InFlight: 100, Body: 1 << 20},
		},
		Store: StoreSettings{URL: setting.Secret{Text: "postgres://attache:secret@db.example/attache"}},
		Teams: TeamsSettings{
			Enabled: true, Replies: "none",
			Wake:   []Waker{{}, {Client: "codex*", Command: []string{"codex", "queue", "--thread", "{host_session}", "--message", "{notice}"}}},
			Limits: teams.Limits{MaxChildren: 5, MaxSpawned: 20, MaxDepth: 1, MaxSessions: 8, SpawnEvery: 2 * time.Second},
		},
		Agents: map[string]Agent{
			"reviewer": {
				Command: []string{"claude", "-p", "--session-id", "{session}"}, Resume: []string{"claude", "-p", "--resume", "{session}"},
				Result: "claude-json", Trust: "sandboxed", TimeLimit: 10 * time.Minute, OnParentEnd: "stop", Key: "inherit", AllowTrust: []string{"direct"},
			},
			"fixer": {
				Command: []string{"fixer", "{workspace}"}, Result: "text", TimeLimit: 30 * time.Minute, OnParentEnd: "finish", Key: "none",
				AllowTrust: []string{"direct", "sandboxed"},
			},
		},
		Session: SessionSettings{
			ID: "42", Workspace: "/work", WorkspaceID: "ws-1", Trust: "sandboxed",
			TTL:         90 * time.Minute,
			EnvPrefixes: []string{"ATTACHE", "PARACHUTE"},
			Meta: MetaSettings{
				Workspace:    [][]string{{"io.github.attache-mcp/workspace"}, {"orbit", "workspace"}, {"orbit.workspace"}},
				Conversation: [][]string{{"threadId"}},
			},
			HostEnv: HostEnvSettings{Session: []string{"CLAUDE_CODE_SESSION_ID", "OTHER_SESSION"}, Workspace: []string{}},
			GitRoot: true,
		},
		Identity: IdentitySettings{KeysFile: "/conf/keys/all.yaml", MetaAPIKey: true, Cache: 5 * time.Second, KeyPrefix: "corp",
			MetaToken: true, TokenFile: "/run/secrets/token",
			JWT: identity.TokenOptions{
				Issuer: "https://login.example/", Audience: "attache", JWKS: "https://login.example/jwks.json", Leeway: 10 * time.Second,
				Claims: identity.Claims{
					User: "preferred_username", Tenant: "https://acme.example/tenant", Email: "-", Roles: "realm_access.roles",
					Permissions: "scope", Plan: "plan", Scope: "policy_scope", Trust: "trust",
				},
			}},
		Operator:  OperatorSettings{SessionFile: "/conf/host/session.yaml"},
		Policy:    PolicySettings{Dir: "/conf/policies", Scope: "acme/platform", Timeout: 500 * time.Millisecond, TokenEnv: "POLICY_TOKEN"},
		Briefing:  BriefingSettings{Channels: []string{"response", "instructions"}, OncePer: "server", Structured: "text-only", Wait: 1500 * time.Millisecond, MaxBytes: 4096},
		Arguments: fullArguments(),
		Rewrite:   fullRewrite(),
		Access: AccessSettings{
			Default: "deny",
			Rules: []access.Rule{
				{Name: "access.rules[0]", Tools: []string{"get_*"}, Require: []string{"records:read", "records:list"}},
				{Name: "access.rules[1]", Tools: []string{"write_*"}, Deny: true, Message: "Ask a person."},
			},
			Rates: []access.Rate{{Name: "access.rates[0]", Tools: []string{"*"}, Per: "tenant", Limit: 60, Window: time.Minute, Burst: 10}}, RatesDown: "closed",
		},
		Audit:  AuditSettings{File: "/conf/audit.jsonl", Arguments: "redacted", Required: true, MaxSize: 1 << 20},
		Trace:  TraceSettings{Propagate: true},
		Limits: LimitSettings{Hold: 512 << 10, InFlight: 50},
		Log:    LogSettings{Level: "debug", Format: "json"},
		Inject: InjectSettings{
			Servers: map[string]ServerRule{"github": {Trust: "direct"}, "file system": {Trust: "sandboxed"}},
			Workspaces: map[string]WorkspaceRule{"my-project": {
				Servers: []string{"git", "github"},
				Env:     map[string]map[string]string{"github": {"GITHUB_OWNER": "acme", "RETRIES": "3"}},
			}},
		},
		APIKeyFile:  "/conf/session.key",
		Record:      "/conf/session.jsonl",
		StdoutNoise: "forward", DryRun: true,
	}
}

// Every key is in full.yaml.
func TestFullExampleIsFull(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yaml")
	check(t, err)
	s, problems := read(string(data))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, o := range Options(s) {
		if o.Key == "" || o.Key == "policy.url" || o.Key == "server.url" { // not beside policy.dir, server.command
			continue
		}
		if s.Origin(o.Key).Line == 0 {
			t.Errorf("testdata/full.yaml has no %s", o.Key)
		}
	}
}

func TestArgumentsAbsentOrEmpty(t *testing.T) {
	if s, p := read("log: {level: info}"); s.Arguments != nil || len(p) > 0 {
		t.Errorf("no key: %v, %v; want nil", s.Arguments, p)
	}
	if s, p := read("arguments: []"); s.Arguments == nil || len(s.Arguments) > 0 || len(p) > 0 {
		t.Errorf("[]: %v, %v; want an empty list", s.Arguments, p)
	}
	if _, p := read("access: {rules: [{tools: [a], require: }]}"); len(p) != 1 || strings.Contains(p[0].Text, "[]") {
		t.Errorf("no permission: %v; want a problem that does not suggest []", p)
	}
	if _, p := read("arguments:"); len(p) != 1 || !strings.Contains(p[0].Text, "or write [] for none") {
		t.Errorf("no value: %v; want a problem that says how to write none", p)
	}
}

// A colon without a space after it is part of a word, at any depth: permissions are written so.
func TestWordsWithColons(t *testing.T) {
	const rule = "access: {rules: [{tools: [x], require: [%s]}]}"
	for text, want := range map[string][]string{
		"records:read":      {"records:read"},
		"a:b:c, d":          {"a:b:c", "d"},
		"ä:ö, 'q:r', h://x": {"ä:ö", "q:r", "h://x"},
		"a: b":              nil,
		"'a':b":             nil,
		"{a:b}":             nil,
		"a:1":               {"a:1"},
	} {
		s, problems := read(fmt.Sprintf(rule, text))
		var got []string
		if len(s.Access.Rules) == 1 && len(problems) == 0 {
			got = s.Access.Rules[0].Require
		}
		if !slices.Equal(got, want) {
			t.Errorf("[%s]: %q, %v; want %q", text, got, problems, want)
		}
	}
}

func TestReadProblems(t *testing.T) {
	tests := map[string]struct{ text, at, want string }{
		"key of another section":   {"scope: x", "1:1", `did you mean "policy.scope"? write it in that section`},
		"key like no other":        {"policy: {zzzzzzzz: 1}", "1:10", "the keys here are dir, url, scope, timeout, token_env"},
		"beginning of a key":       {"arguments: [{tools: [a], value: session.id, arg: x}]", "1:45", `did you mean "argument"?`},
		"section is a text":        {"session: x", "1:10", "session: wants keys and values, not a text"},
		"inner section is a list":  {"session:\n  meta: []", "2:9", "session.meta: wants keys and values, not a list"},
		"text is a number":         {"policy: {scope: 7}", "1:17", "policy.scope: wants a text (put it in quotes), not a number"},
		"text is true":             {"server: {name: true}", "1:16", "not true or false"},
		"text is a list":           {"server: {name: [a]}", "1:16", "wants one text, not a list"},
		"text has a line break":    {"server: {name: \"a\\nb\"}", "1:16", "has a line break or a NUL in it"},
		"number is a text":         {"limits: {in_flight: many}", "1:21", "wants a whole number, not a text"},
		"duration without unit":    {"policy: {timeout: 2}", "1:19", `"2" is not a duration`},
		"duration is negative":     {"policy: {timeout: -2s}", "1:19", "is too short: give at least 1ms"},
		"size too large":           {"limits: {hold: 2GiB}", "1:16", "write a size from 4KiB to 1GiB"},
		"size overflows":           {"limits: {hold: 99999999999999GiB}", "1:16", "is not a size"},
		"size too small":           {"limits: {hold: 0}", "1:16", "out of range"},
		"boolean is a word":        {"session: {roots: yes}", "1:18", "wants true or false, not a text"},
		"list is empty":            {"access: {rules: }", "1:10", "access.rules: has no value: give it one, or remove the key, or write [] for none"},
		"list is a text":           {"session: {env_prefixes: A}", "1:25", "wants a list, such as [one, two], not a text"},
		"empty word in a list":     {`session: {env_prefixes: [""]}`, "1:26", "is empty"},
		"prefix of two words":      {"session: {env_prefixes: [A-B]}", "1:26", "is not the name of a variable"},
		"address of a file":        {"policy: {url: /x}", "1:15", "policy.url: is not an address"},
		"address with a password":  {"policy: {url: 'https://u:p@h/'}", "1:15", "has a user name in it"},
		"address without TLS":      {"policy: {url: 'http://h/'}", "1:15", "use https"},
		"a token for its name":     {"policy: {token_env: s-e-c-r-e-t}", "1:21", "write the name of the variable that holds the token, not the token"},
		"a key for its file":       {"identity: {api_key_file: atk_abcdefgh_SECRETSECRETSECRETSECRETSECRET12}", "1:26", "is a key and not a file that holds one"},
		"two sources":              {"policy:\n  dir: x\n  url: https://h/", "3:3", "keep one of the two"},
		"command and address":      {"server:\n  command: [x]\n  url: https://h/", "3:3", "server.url: there is a server.command too: keep one of the two"},
		"two ways in an entry":     {"servers:\n  a:\n    server: {url: https://h/, command: [x]}", "3:14", "servers.a.server.url: there is a server.command too: keep one of the two"},
		"command of nothing":       {"server: {command: []}", "1:19", "server.command: is empty: name the program"},
		"name of a variable":       {"server: {env: {A-B: x}}", "1:16", `"A-B" is not the name of a variable`},
		"value of a variable":      {"server: {env: {A: [x]}}", "1:19", `server.env.A: wants a text, such as "", not a list`},
		"value of a variable, nul": {"server: {env: {A: \"\\0\"}}", "1:19", "no variable can hold one"},
		"prefix of keys":           {"identity: {key_prefix: 'a b'}", "1:24", "is not a prefix for keys"},
		"name of a header":         {"server: {headers: {A B: x}}", "1:20", `"A B" is not the name of a header: write one such as X-Api-Key`},
		"two cases of a header":    {"server: {headers: {X-A: s3cret, x-a: other}}", "1:33", "server.headers: X-A appears twice: keep one"},
		"key that is a number":     {"log: {7: x}", "1:7", `unknown key "7"`},
		"name of a variable, 7A":   {"server: {env: {7A: x}}", "1:16", `"7A" is not the name of a variable`},
		"header of no variable":    {"server: {headers: {A: {env: ''}}}", "1:29", "server.headers.A.env: is empty: name the variable"},
		"header of no file":        {"server: {headers: {A: {file: ''}}}", "1:30", "server.headers.A.file: is empty: name the file"},
		"redirect to no port":      {"server: {oauth: {redirect: 'http://127.0.0.1:99999/cb'}}", "1:28", "is not an address on this machine: write one such as"},
		"origins by a pattern":     {"serve: {origins: ['https://*.example.com']}", "1:19", `"https://*.example.com" is not an origin`},
		"origin not in ASCII":      {"serve: {origins: ['https://bücher.example']}", "1:19", `"https://bücher.example" is not as browsers send it: write its host in ASCII, such as xn--bcher-kva.example`},
		"public URL not in ASCII":  {"serve: {public_url: 'https://bücher.example/mcp'}", "1:21", `"bücher.example" is not as clients send it: write it in ASCII, such as xn--bcher-kva.example`},
		"host not in ASCII":        {"serve: {hosts: [bücher.example]}", "1:17", `"bücher.example" is not as clients send it: write it in ASCII, such as xn--bcher-kva.example`},
		"origin with its port":     {"serve: {origins: ['https://App.example.com:443']}", "1:19", `"https://App.example.com:443" is not as browsers send it: write https://app.example.com`},
		"public URL with a blank":  {"serve: {public_url: 'https://h/a b'}", "1:21", "is not the URL of an endpoint"},
		"public URL, no port":      {"serve: {public_url: 'https://h:99999/'}", "1:21", "is not the URL of an endpoint"},
		"tilde":                    {"policy: {dir: ~/policies}", "1:15", "~ is not expanded here"},
		"tilde and backslash":      {`policy: {dir: ~\policies}`, "1:15", "~ is not expanded here"},
		"path with a tab":          {`policy: {dir: "C:\temp"}`, "1:15", "has a control character in it"},
		"a null in a list":         {"briefing: {channels: [~]}", "1:23", "not nothing"},
		"rule without tools":       {"arguments: [{argument: a, value: session.id}]", "1:13", `has no "tools"`},
		"rule without value":       {"arguments: [{argument: a, tools: [b]}]", "1:13", `has no "value": write it as`},
		"value with brackets":      {"arguments: [{argument: a, tools: [b], value: 'x ? y : z'}]", "1:46", "undeclared reference"},
		"value that is a path":     {"arguments: [{argument: a, tools: [b], value: /src/shop}]", "1:46", `arguments[0].value: for the text itself write it in quotes, '"/src/shop"'; "/src/shop" is not an expression: column 1: `},
		"value with a dash":        {"arguments: [{argument: a, tools: [b], value: acme-corp}]", "1:46", `arguments[0].value: for the text itself write it in quotes, '"acme-corp"'`},
		"another form of a key":    {"access: {rules: [{tools: [a], denied: true}]}", "1:31", `access.rules[0]: unknown key "denied": did you mean "deny"?`},
		"two lines, one text":      {"access:\n  rules:\n    - tools:\n      - a\n        - b\n      deny: true", "4:9", "is one text: indent all names"},
		"pattern of words":         {"arguments: [{argument: a, tools: ['{a,b}'], value: session.id}]", "1:35", "has only * for any characters"},
		"twice":                    {"log: {level: info, level: warn}", "1:20", `"level" appears twice: the first is in line 1`},
		"twice, once with dots":    {"access.rules: [{tools: [a], deny: true}]\naccess: {rules: []}", "2:10", `"access.rules" appears twice: the first is in line 1`},
		"rule requiring nothing":   {"access: {rules: [{tools: [a], require: []}]}", "1:40", "access.rules[0].require: is empty: name a permission, or leave the key out: a rule that requires nothing allows"},
		"require without a value":  {"access: {rules: [{tools: [a], require: }]}", "1:31", "access.rules[0].require: has no value: give it one, or remove the key"},
		"rule that contradicts":    {"access: {rules: [{tools: [a], deny: true, require: [b]}]}", "1:18", "access.rules[0]: deny and require contradict each other: write two rules"},
		"condition that is text":   {"access: {rules: [{tools: [a], when: principal.tenant}]}", "1:37", "access.rules[0].when: column 1: the expression yields a string"},
		"condition on nothing":     {"access: {rules: [{tools: [a], when: 'sesion.trust == \"x\"'}]}", "1:37", "access.rules[0].when: column 1: "},
		"unknown default":          {"access: {default: alow}", "1:19", `did you mean "allow"?`},
		"empty message":            {"access: {rules: [{tools: [a], deny: true, message: ''}]}", "1:52", "access.rules[0].message: is empty"},
		"rate without a limit":     {"access: {rates: [{tools: [a], per: user}]}", "1:18", `access.rates[0]: has no "limit"`},
		"rate per nothing":         {"access: {rates: [{tools: [a], per: hour, limit: 1/s}]}", "1:36", `write "session", "user", "tenant" or "tool"`},
		"limit without a time":     {"access: {rates: [{tools: [a], per: user, limit: '60'}]}", "1:49", "is not a limit"},
		"limit that is a number":   {"access: {rates: [{tools: [a], per: user, limit: 60}]}", "1:49", "wants a text (put it in quotes), not a number"},
		"burst of none":            {"access: {rates: [{tools: [a], per: user, limit: 1/s, burst: 0}]}", "1:61", "write a number from 1 to 1000000"},
		"merge key":                {"log: {<<: {level: info}}", "1:7", "anchors, aliases, tags"},
		"tag":                      {"log: {level: !!str info}", "1:14", "anchors, aliases, tags"},
		"directive":                {"%YAML 1.2\n---\nlog: {}", "1:1", "anchors, aliases, tags"},
		"complex key":              {"? [a]\n: b", "1:1", "? keys are not read"},
		"control character":        {"log: {level: \x01}", "1:14", "control character"},
		"a long word":              {"log: {level: " + strings.Repeat("x", 10000) + "}", "1:14", `write "debug", "info", "warn" or "error"`},
		"too many keys":            {strings.Repeat("a:\n", 6000), "1001:2", "has more than 1000 keys"},
		"not UTF-8":                {"server: {name: \"\xff\xfe\"}", "1:17", "is not UTF-8 text"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, problems := read(test.text)
			if len(problems) != 1 {
				t.Fatalf("%d problems, want one: %v", len(problems), problems)
			}
			got := problems[0].String()
			if !strings.HasPrefix(got, "/conf/config.yaml:"+test.at+": ") || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s: ...%s...", got, test.at, test.want)
			}
			if strings.Contains(strings.ToLower(got), "s-e-c-r-e-t") || strings.Contains(got, "SECRET") {
				t.Error("the problem shows the secret")
			}
			if len(got) > 1200 {
				t.Errorf("the problem is %d bytes long", len(got))
			}
		})
	}
}

// The parser neither overflows its stack nor runs for long with the deepest or broadest nesting
// that a file can have.
func TestReadHostileFiles(t *testing.T) {
	for name, unit := range map[string]string{
		"brackets": "[", "braces": "{a: ", "dashes": "- ", "questions": "? ", "colons": "a: ", "bare colons": ": ",
		"anchors": "&a ", "tags": "!!x ", "aliases": "*a ", "keys": "a:\n", "quotes": `"a" `, "documents": "---\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := read(strings.Repeat(unit, maxConfigFile/len(unit)))
			if name != "documents" && len(problems) != 1 {
				t.Errorf("%d problems, want one", len(problems))
			}
		})
	}
}

func FuzzReadYAML(f *testing.F) {
	full, err := os.ReadFile("testdata/full.yaml")
	check(f, err)
	f.Add(string(full))
	for _, seed := range []string{
		"", "---", "# c", "log:", "log: {level: info}", "arguments: []", "arguments: [{}]", "arguments: [{tools: [a]}]",
		"? a\n: b", "a: &x b", "a: *x", "<<: {}", "a: |\n  x", "a: >-\n", "'", "\"", "{", "[", "- - - a", "a: b: c",
		"session: {meta: {workspace: [[a, b], c]}}", "server: {env: {A: 1.5}}", "policy: {dir: .}", "\ufeffa: b", "a:\r\n  b\r",
		"limits: {hold: 0x10}", "limits: {in_flight: 1_000}", "log: ~", "session: {id: !!binary aGk=}", "1: 2", "true: 1", "null: 1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, problems := read(text)
		for _, p := range problems {
			if p.Text == "" || p.At.File == "" || strings.ContainsAny(p.String(), "\n\r\x1b") {
				t.Errorf("problem %q", p.String())
			}
		}
		if len(problems) > 0 {
			return
		}
		checkAccepted(t, s)
	})
}

// checkAccepted checks settings that the reader accepted. Each scalar, written as `config show`
// writes it, must be accepted again with the same value.
func checkAccepted(t *testing.T, s *Settings) {
	t.Helper()
	for _, o := range Options(s) {
		v, ok := o.Value.(setting.Scalar)
		_, pseudo := o.Value.(source)
		if !ok || pseudo || s.Origin(o.Key).Default() {
			continue
		}
		before := o.Value.String()
		if err := v.Set(before, "/conf"); err != nil || o.Value.String() != before {
			t.Errorf("%s: %q was accepted, and again is %q, %v", o.Key, before, o.Value.String(), err)
		}
	}
	for _, r := range s.Arguments {
		if len(r.Tools) == 0 || len(r.Argument) == 0 || (r.Value == nil) != (r.Mode == "forbid") {
			t.Errorf("accepted rule %+v", r)
		}
	}
	if s.Policy.Dir != "" && s.Policy.URL != "" {
		t.Error("two sources of policies were accepted")
	}
}

// Browsers send origins in lower case and without the port of the scheme. Apps have schemes of their own.
func TestOrigin(t *testing.T) {
	for s, valid := range map[string]bool{
		"https://app.example.com": true, "https://app.example.com:80": true, "http://[::1]:3000": true, "http://localhost:443": true,
		"vscode-webview://1h2j3k": true, "chrome-extension://abcdefghijklmnop": true, "app://MyApp": true, "app://localhost:443": true,
		"null": false, "*": false, "https://app.example.com/": false, "https://App.example.com": false, "http://[::1]:80": false, "HTTPS://a.example": false,
	} {
		if err := origin(s); (err == nil) != valid {
			t.Errorf("%s: %v", s, err)
		}
	}
}
