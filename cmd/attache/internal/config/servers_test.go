package config

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

const twoServers = `
arguments:
  - {tools: ["*"], argument: tenant, value: principal.tenant, mode: pin}
access: {default: deny, rules: [{tools: [a]}]}
briefing: {wait: 3s}
servers:
  git:
    match: {package: ["@cyanheads/git-*"]}
    session: {workspace: /src/shop}
    server: {env: {A: b}, restart: {on: never, retry: [get_*]}, pass_messaging: true}
    arguments:
      - {tools: [git_push], argument: force, mode: forbid}
    access: {default: allow, rules: [{tools: [b]}]}
    briefing: {wait: 5s}
  files:
    match: {command: /opt/*/files, url: "https://files.example/*"}
    arguments: []
  plain: {}
`

// loadFor loads a configuration for the server that command starts.
func loadFor(t *testing.T, text string, command ...string) (*Settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	check(t, os.WriteFile(path, []byte(text), 0o600))
	return Load(cli.Process{Env: []string{"ATTACHE_CONFIG=" + path}}, nil, command)
}

// The entry that matches applies: its rules come first, and its other values replace those of the
// file.
func TestServers(t *testing.T) {
	tests := []struct{ command, name, workspace string }{
		{"", "", ""},
		{"npx -y @cyanheads/git-mcp-server@1.2.3", "git", "/src/shop"},
		{"cmd /c npx @cyanheads/git-mcp-server", "git", "/src/shop"},
		{"npx other", "other", ""},
		{"/opt/x/files --root /", "files", ""},
		{"files", "files", ""},
		{"https://files.example/mcp", "files", ""},
		{"npx -y mcp-remote https://files.example/mcp", "files", ""},
		{"npx -y mcp-remote https://other.example/mcp", "other.example", ""},
		{"./plain", "plain", ""},
	}
	for _, test := range tests {
		s, err := loadFor(t, twoServers, strings.Fields(test.command)...)
		check(t, err)
		if s.Server.Name != test.name || s.Session.Workspace != test.workspace || len(s.Servers) != 3 {
			t.Errorf("%s: name %q, workspace %q, %d entries", test.command, s.Server.Name, s.Session.Workspace, len(s.Servers))
		}
	}
	s, _ := loadFor(t, twoServers, "npx", "@cyanheads/git-mcp-server")
	if len(s.Arguments) != 2 || s.Arguments[0].Argument[0] != "force" || s.Arguments[1].Argument[0] != "tenant" {
		t.Errorf("arguments %+v", s.Arguments)
	}
	if s.Access.Default != "allow" || len(s.Access.Rules) != 2 || s.Access.Rules[0].Tools[0] != "b" || s.Server.Env["A"] != "b" {
		t.Errorf("access %+v, environment %v", s.Access, s.Server.Env)
	}
	if o := s.Server; o.Restart.On != "never" || o.Restart.Hold == 0 || !slices.Equal(o.Restart.Retry, []string{"get_*"}) || !o.PassMessaging {
		t.Errorf("restart %+v, messaging %t", o.Restart, o.PassMessaging)
	}
	if at := s.Origin("briefing.wait"); s.Briefing.Wait.Seconds() != 5 || at.Line != 14 {
		t.Errorf("briefing.wait %v from %v", s.Briefing.Wait, at)
	}
}

// A variable takes precedence over an entry, as over the rest of the file.
func TestServersBelowVariables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	check(t, os.WriteFile(path, []byte(twoServers), 0o600))
	s, err := Load(cli.Process{Env: []string{"ATTACHE_CONFIG=" + path, "ATTACHE_WORKSPACE=/mine"}}, nil, []string{"npx", "@cyanheads/git-mcp-server"})
	if err != nil || s.Session.Workspace != "/mine" {
		t.Errorf("workspace %q, %v", s.Session.Workspace, err)
	}
}

// Mistakes in all entries are reported with their places, whichever server runs.
func TestServersMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"servers: [a]":                                           "config.yaml:1:10: servers: wants keys and values, not a list",
		"servers:\n  git: 1":                                     "config.yaml:2:8: servers.git: wants keys and values, not a number",
		"servers:\n  git:\n    argments: []":                     "config.yaml:3:5: unknown key \"argments\": did you mean \"arguments\"?",
		"servers:\n  git:\n    identity: {}":                     "config.yaml:3:5: unknown key \"identity\"",
		"servers:\n  git:\n    server: {name: x}":                "config.yaml:3:14: unknown key \"name\": the keys here are env, ",
		"servers:\n  git:\n    servers: {}":                      "config.yaml:3:5: servers: an entry of servers cannot have servers",
		"servers:\n  git:\n    match: {pakage: x}":               "config.yaml:3:13: servers.git.match: unknown key \"pakage\": did you mean \"package\"?",
		"servers:\n  git:\n    mach: {package: x}":               "config.yaml:3:5: unknown key \"mach\": did you mean \"match\"?",
		"servers:\n  git:\n    package: x":                       "unknown key \"package\": did you mean \"match.package\"? write it in that section",
		"servers:\n  git:\n    match: {package: \"\"}":           "config.yaml:3:22: servers.git.match.package: is empty: write a name",
		"servers:\n  \"\": {}":                                   "config.yaml:2:3: servers: an entry has an empty name",
		"servers:\n  git:\n    match: {package: []}":             "servers.git.match.package: is empty: name one, or remove the key",
		"servers:\n  git:\n    arguments:\n      - {tools: [a]}": "config.yaml:4:9: servers.git.arguments[0]: has no \"argument\"",
		"servers:\n  git:\n    access: {default: maybe}":         "servers.git.access.default: unknown word \"maybe\"",
		"servers: {a: {server.env: {}, server: {env: {}}}}":      "config.yaml:1:40: \"servers.a.server.env\" appears twice: the first is in line 1",
		"servers:\n  a: {}\n  a: {}":                             "config.yaml:3:3: \"a\" appears twice",
		"include: [nosuch.yaml]":                                 "nosuch.yaml: correct the path",
		"include: [\"\"]":                                        "config.yaml:1:11: include[0]: is empty",
		"include: [.]":                                           "name another file under include",
		"include: x.yaml":                                        "config.yaml:1:10: include: wants a list of files, such as [team.yaml], not a text",
		"include: [3]":                                           "config.yaml:1:11: include[0]: wants the path of a file, or {url: https://..., digest: sha256:...} with a digest or a key, not a number",
		"access: {rules: [{tools: [x], deny: true}]}\nservers:\n  git:\n    access: {rules: [{tools: [\"*\"]}]}": "config.yaml:1:18: access.rules[0]: is never reached, as servers.git.access.rules[0] decides every call of its tools",
		"rewrite: [{tools: [b], rename: c}]\nservers:\n  git:\n    rewrite: [{tools: [a], rename: c}]":           "config.yaml:1:11: rewrite[0]: b and, by servers.git.rewrite[0], a would both be shown as c",
		"include: [https://host/x.yaml]":                        "an address needs a digest or a key",
		"include:\n  - {url: http://host/x, digest: sha256:00}": "not an https address",
		"include:\n  - {adress: https://host/x}":                "unknown key \"adress\": the keys here are url, digest, key",
	} {
		_, err := loadFor(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// If the server is known, only the rules of its own entry can conflict with the others.
func TestConflictsOfOneServer(t *testing.T) {
	const text = "rewrite: [{tools: [b], rename: c}]\nservers:\n  git:\n    rewrite: [{tools: [a], rename: c}]\n"
	for server, conflict := range map[string]bool{"git": true, "other": false} {
		if _, err := loadFor(t, text, server); (err != nil) != conflict || conflict && !strings.Contains(err.Error(), "would both be shown as c") {
			t.Errorf("%s: %v", server, err)
		}
	}
}

// The rules of an included file come after those of the file, and its values apply where the file
// has none.
func TestInclude(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config.yaml":    "include: [team/team.yaml, more.yaml]\nlog: {level: debug}\npolicy: {url: \"https://own.example/\"}\nrewrite: [{tools: [a], hide: true}]\nservers: {git: {rewrite: [{tools: [x], hide: true}]}}\n",
		"team/team.yaml": "log: {level: warn, format: json}\npolicy: {dir: policies, scope: acme}\nrewrite: [{tools: [b], hide: true}]\nservers: {git: {rewrite: [{tools: [y], hide: true}]}}\n",
		"more.yaml":      "log: {format: text}\nbriefing: {wait: 9s}\nrewrite: [{tools: [c], hide: true}]\n",
	} {
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check(t, os.WriteFile(path, []byte(text), 0o600))
	}
	s, err := Load(cli.Process{Env: []string{"ATTACHE_CONFIG=" + filepath.Join(dir, "config.yaml")}}, nil, []string{"git"})
	check(t, err)
	var hidden, places []string
	for _, r := range s.Rewrite {
		hidden = append(hidden, r.Tools...)
		at := s.Origin(r.Name)
		places = append(places, fmt.Sprintf("%s %s:%d:%d %s", r.Name, filepath.Base(at.File), at.Line, at.Column, RuleTexts(s)[r.Name]))
	}
	want := []string{
		"servers.git.rewrite[0] config.yaml:5:27 {tools: [x], hide: true}",
		"include[0].servers.git.rewrite[0] team.yaml:4:27 {tools: [y], hide: true}",
		"rewrite[0] config.yaml:4:11 {tools: [a], hide: true}",
		"include[0].rewrite[0] team.yaml:3:11 {tools: [b], hide: true}",
		"include[1].rewrite[0] more.yaml:3:11 {tools: [c], hide: true}",
	}
	if !slices.Equal(places, want) {
		t.Errorf("rules %q", places)
	}
	if want := []string{"x", "y", "a", "b", "c"}; !slices.Equal(hidden, want) {
		t.Errorf("rules for %v, want %v", hidden, want)
	}
	if s.Log.Level != "debug" || s.Log.Format != "json" || s.Briefing.Wait.Seconds() != 9 || s.Policy.URL == "" || s.Policy.Dir != "" || s.Policy.Scope != "acme" {
		t.Errorf("%+v, %+v, %+v", s.Log, s.Briefing, s.Policy)
	}
	if from := s.Origin("log.format"); filepath.Base(from.File) != "team.yaml" || from.Line != 1 {
		t.Errorf("log.format from %v", from)
	}
	if from := s.Origin("policy.dir"); !from.Default() {
		t.Errorf("no policy.dir from %v: policy.url of the user's file replaces it", from)
	}
	if len(s.Included) != 2 {
		t.Errorf("included %v", s.Included)
	}
}

// A flag for the bearer token comes before a header of the environment, and that before the file.
func TestBearerPrecedence(t *testing.T) {
	const header, ours, others = "ATTACHE_HEADER_Authorization=Bearer header", "OURS=ours", "OTHERS=others"
	for _, c := range []struct {
		env, args []string
		want      string
	}{
		{[]string{ours}, nil, "ours"},
		{[]string{ours, header}, nil, "header"},
		{[]string{header}, nil, "header"},
		{[]string{ours, header, others, "ATTACHE_BEARER_ENV=OTHERS"}, nil, "others"},
		{[]string{ours, header, others}, []string{"--bearer-env", "OTHERS"}, "others"},
	} {
		p, _ := configured(t, "server: {url: \"https://mcp.example/mcp\", bearer_env: OURS}", c.env...)
		s, err := load(t, p, c.args...)
		check(t, err)
		if h, err := s.Server.Remote.Header(p); err != nil || h.Get("Authorization") != "Bearer "+c.want {
			t.Errorf("%q %q: %v, %v; want %s", c.env, c.args, h, err, c.want)
		}
	}
}

// A header of the environment does not replace the tokens that the entries of attache serve name.
func TestServedBearerPrecedence(t *testing.T) {
	const text = "servers:\n  a: {server: {url: \"https://gateway.example/a\", bearer_env: A}}\n  b: {server: {url: \"https://gateway.example/b\"}}"
	p, _ := configured(t, text, "A=ours", "ATTACHE_HEADER_Authorization=Bearer header")
	for name, want := range map[string]string{"a": "Bearer ours", "b": "Bearer header"} {
		s, err := LoadEndpoint(p, nil, name)
		check(t, err)
		if h, err := s.Server.Remote.Header(p); err != nil || h.Get("Authorization") != want {
			t.Errorf("%s: %v, %v; want %s", name, h, err, want)
		}
	}
}

// Authorization of an entry replaces a bearer token for all servers of the same origin.
func TestEntryReplacesBearer(t *testing.T) {
	const common = "server: {url: \"https://gateway.example/mcp\", bearer_env: COMMON}\n"
	for own, want := range map[string]string{
		"headers: {Authorization: own}":                  "own",
		"headers: {Authorization: own}, bearer_env: OWN": "Bearer token",
		"headers: {X-Team: shop}":                        "Bearer common",
	} {
		p, _ := configured(t, common+"servers: {a: {server: {url: \"https://gateway.example/a\", "+own+"}}}", "COMMON=common", "OWN=token")
		s, err := LoadEndpoint(p, nil, "a")
		check(t, err)
		if h, err := s.Server.Remote.Header(p); err != nil || h.Get("Authorization") != want {
			t.Errorf("%s: %v, %v; want %s", own, h, err, want)
		}
		if !slices.Contains(s.RemoteVariables(), "COMMON") {
			t.Errorf("%s: COMMON is not withheld", own)
		}
	}
}

// Places in a file from an address have no query, which may contain a token.
func TestIncludedAddress(t *testing.T) {
	const address, text = "https://rules.example/team.yaml?token=s3cret", "log: {level: warn}\n"
	content, name := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(address))
	p, _ := configured(t, fmt.Sprintf("include: [{url: %q, digest: sha256:%x}]", address, content))
	p.StateDir = t.TempDir()
	copied := p.StatePath("includes", fmt.Sprintf("%x.yaml", name[:16]))
	check(t, os.MkdirAll(filepath.Dir(copied), 0o700))
	check(t, os.WriteFile(copied, []byte(text), 0o600))
	s, err := Load(p, nil, nil)
	check(t, err)
	if from := s.Origin("log.level").String(); from != "https://rules.example/team.yaml?[hidden]:1" {
		t.Errorf("log.level from %s", from)
	}
}

// A command in the user's file replaces the address that an included file has for the same server, and
// the reverse. Credentials that an included file has beside its address do not go to another one.
func TestIncludedServer(t *testing.T) {
	const local, remote = "server: {command: [git-mcp]}", "server: {url: \"https://team.example/mcp\", headers: {Authorization: {env: TEAM_TOKEN}}}"
	for _, c := range []struct {
		name, own, team, entry string
		command, url, header   string
	}{
		{"command over address", "servers: {git: {" + local + "}}", "servers: {git: {" + remote + "}}", "git", "git-mcp", "", ""},
		{"address over command", "servers: {git: {" + remote + "}}", "servers: {git: {" + local + "}}", "git", "", "https://team.example/mcp", "TEAM_TOKEN"},
		{"command of an entry over the address of the file", "servers: {git: {" + local + "}}", remote, "git", "git-mcp", "", ""},
		{"included address", "log: {level: debug}", remote, "", "", "https://team.example/mcp", "TEAM_TOKEN"},
		{"path", "server: {url: \"https://team.example/other\"}", remote, "", "", "https://team.example/other", "TEAM_TOKEN"},
		{"other address", "server: {url: \"https://own.example/mcp\"}", remote, "", "", "https://own.example/mcp", ""},
		{"own header", "server: {url: \"https://own.example/mcp\", headers: {Authorization: {env: OWN}}}", remote, "", "", "https://own.example/mcp", "OWN"},
		{"header for any address", "server: {url: \"https://own.example/mcp\"}", "server: {headers: {Authorization: {env: TEAM_TOKEN}}}", "", "", "https://own.example/mcp", "TEAM_TOKEN"},
		{"scopes of an entry", "servers: {git: {server: {url: \"https://own.example/mcp\", oauth: {scopes: [a]}}}}", "server: {oauth: {client_id: a, client_secret: {env: TEAM_TOKEN}}}", "git", "", "https://own.example/mcp", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"config.yaml": "include: [team.yaml]\n" + c.own, "team.yaml": c.team} {
				check(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600))
			}
			p := cli.Process{Env: []string{"ATTACHE_CONFIG=" + filepath.Join(dir, "config.yaml")}}
			load := func() (*Settings, error) { return Load(p, nil, nil) }
			if c.entry != "" {
				load = func() (*Settings, error) { return LoadServed(p, nil, c.entry) }
			}
			s, err := load()
			check(t, err)
			r := s.Server.Remote
			if got := strings.Join(s.Server.Command, " "); got != c.command || r.URL != c.url || r.Headers["Authorization"].Env != c.header {
				t.Errorf("command %q, url %q, headers %v", got, r.URL, r.Headers)
			}
			for key, value := range Values(s) {
				if from := s.Origin(key); strings.HasPrefix(key, "server.") && strings.Trim(value, "[]{}") == "" && !from.Default() {
					t.Errorf("%s has no value, and this from %v", key, from)
				}
			}
			if names := s.RemoteVariables(); strings.Contains(c.own+c.team, "TEAM_TOKEN") && strings.Count(strings.Join(names, " "), "TEAM_TOKEN") != 1 {
				t.Errorf("only %q are withheld, want TEAM_TOKEN once", names)
			}
		})
	}
}

// A key with dots is the key in its section, also in match.
func TestEntryMatchWithDots(t *testing.T) {
	for _, text := range []string{"match.command: \"git-*\"", "match.command: \"git-*\", match.package: other"} {
		s, err := loadFor(t, "servers: {a: {"+text+", session: {workspace: /src}}}", "git-mcp")
		if err != nil || len(s.Applied) != 1 {
			t.Errorf("%s: %d entries apply, %v", text, len(s.Applied), err)
		}
	}
}

// What is given after "--" is started, even if the entry that matches it has an address.
func TestEntryKeepsTarget(t *testing.T) {
	const text = "servers: {git: {match: {url: \"https://git.example/*\", command: git-mcp}, server: {url: \"https://git.example/mcp\", headers: {X-Team: shop}}}}"
	for command, want := range map[string]string{"https://git.example/mcp/shop": "https://git.example/mcp/shop", "git-mcp": ""} {
		s, err := loadFor(t, text, command)
		check(t, err)
		if got := s.Server.Remote.URL; got != want || len(s.Applied) != 1 || s.Server.Remote.Headers["X-Team"].Text == "" {
			t.Errorf("%s: url %q, headers %v", command, got, s.Server.Remote.Headers)
		}
		if from := s.Origin("server.url"); want == "" && !from.Default() || want != "" && from.String() != "--" {
			t.Errorf("%s: server.url %q from %v", command, want, from)
		}
	}
}

// The credentials beside the address of an entry do not go to another address after "--" that the entry
// matches. Those of an entry without an address go to all that it matches.
func TestEntryKeepsCredentials(t *testing.T) {
	const secrets = "headers: {Authorization: secret}, bearer_env: TOKEN, oauth: {client_id: a, client_secret: b}"
	const own = "server: {url: \"https://git.example/mcp\", " + secrets + "}"
	for _, c := range []struct {
		text, command string
		kept          bool
	}{
		{"servers: {git: {match: {url: \"https://*\"}, " + own + "}}", "https://other.example/mcp", false},
		{"servers: {git: {match: {url: \"https://git.example*\"}, " + own + "}}", "https://git.example.other.test/mcp", false},
		{"servers: {git.example: {" + own + "}}", "http://git.example/mcp", false},
		{"servers: {git.example: {" + own + "}}", "https://git.example:8443/mcp", false},
		{"servers: {git.example: {" + own + "}}", "https://git.example/other", true},
		{"servers: {git: {match: {url: \"https://*\"}, server: {" + secrets + "}}}", "https://other.example/mcp", true},
	} {
		s, err := loadFor(t, c.text, c.command)
		check(t, err)
		r := s.Server.Remote
		if kept := []bool{r.Headers != nil, r.BearerEnv != "", r.OAuth.ClientID != ""}; r.URL != c.command || len(s.Applied) != 1 || slices.Contains(kept, !c.kept) {
			t.Errorf("%s with %s: url %q, has credentials %v", c.command, c.text, r.URL, kept)
		}
	}
}

// Credentials written beside the address of an entry are for it, even if others outside of servers are equal.
func TestEqualCredentials(t *testing.T) {
	const secrets = "headers: {Authorization: secret}, bearer_env: TOKEN, tls: {cert: c, key: k}, oauth: {client_id: a, client_secret: b}"
	const outside = "server: {url: \"https://git.example/mcp\", " + secrets + "}\nservers: {other: {server: {url: \"https://other.example/mcp\""
	for text, want := range map[string]bool{outside + ", " + secrets + "}}}": true, outside + "}}}": false} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		check(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := LoadServed(cli.Process{Env: []string{"ATTACHE_CONFIG=" + path}}, nil, "other")
		check(t, err)
		r := s.Server.Remote
		kept := []bool{r.Headers != nil, r.BearerEnv != "", r.Cert != "", r.Key != "", r.OAuth.ClientID != "", r.OAuth.ClientSecret.Text != ""}
		if slices.Contains(kept, !want) || want != (s.Warnings == nil) || slices.ContainsFunc(s.Warnings, func(w setting.Problem) bool { return w.At.Default() }) {
			t.Errorf("%s: has credentials %v, warnings %v", text, kept, s.Warnings)
		}
	}
}

// What an entry says of the login to its address is for it, too, even if the same stands outside of servers, or another
// client.
func TestEntryKeepsLogin(t *testing.T) {
	const own = "redirect: \"http://127.0.0.1:8765/callback\", store: file"
	const entry = "scopes: [use], issuer: \"https://login.example\", params: {access_type: offline}, " + own
	tests := []struct{ outside, entry string }{
		{entry, entry},
		{"client_id: a, client_secret: b", own},
		{"client_id: a, client_secret: b", "grant: client_credentials"}, // has no client of its own, which is an error
		{"params: {access_type: offline}", "params: {access_type: offline}, " + own},
	}
	for _, test := range tests {
		path := filepath.Join(t.TempDir(), "config.yaml")
		text := "server: {url: \"https://git.example/mcp\", oauth: {" + test.outside + "}}\nservers: {other: {server: {url: \"https://other.example/mcp\", oauth: {" + test.entry + "}}}}"
		check(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := LoadServed(cli.Process{Env: []string{"ATTACHE_CONFIG=" + path}}, nil, "other")
		if machine := strings.Contains(test.entry, GrantMachine); machine != (err != nil) {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil {
			continue
		}
		o := s.Server.Remote.OAuth
		lost := test.outside == entry && (len(o.Scopes) == 0 || o.Issuer == "") || strings.Contains(test.entry, "params") && len(o.Params) == 0
		if o.Redirect == "" || o.Store != StoreFile || o.ClientID != "" || lost {
			t.Errorf("%s: %+v, warnings %v", text, o, s.Warnings)
		}
	}
}

// The warning about a login that is not for an entry's address has the place of what is written there.
func TestPlaceOfLogin(t *testing.T) {
	for _, outside := range []string{"client_id: a", "client_metadata: \"https://own.example/client\"", "issuer: \"https://login.example\"", "resource: \"-\"", "params: {access_type: offline}", "scopes: [use]"} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		text := "server: {url: \"https://git.example/mcp\", oauth: {" + outside + "}}\nservers: {other: {server: {url: \"https://other.example/mcp\"}}}"
		check(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := LoadServed(cli.Process{Env: []string{"ATTACHE_CONFIG=" + path}}, nil, "other")
		check(t, err)
		if len(s.Warnings) != 1 || s.Warnings[0].At.Default() {
			t.Errorf("%s: warnings %v", outside, s.Warnings)
		}
	}
}

// A file that replaces the address and the scopes of another's login does not send the secret of that
// login to the new address.
func TestSecretOfReplacedLogin(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config.yaml": "include: [team.yaml]\nserver: {url: \"https://own.example/mcp\", oauth: {scopes: [use]}}\n",
		"team.yaml":   "server: {url: \"https://team.example/mcp\", oauth: {client_id: team, client_secret: {env: TEAM_SECRET}}}\n",
	} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s, err := Load(cli.Process{Env: []string{"ATTACHE_CONFIG=" + filepath.Join(dir, "config.yaml")}}, nil, nil)
	check(t, err)
	o := s.Server.Remote.OAuth
	if o.ClientID != "" || o.ClientSecret.Env != "" || !slices.Equal(o.Scopes, []string{"use"}) || !slices.Contains(s.RemoteVariables(), "TEAM_SECRET") {
		t.Errorf("%+v, withheld %v", o, s.RemoteVariables())
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0].Text, "server.oauth.client_secret is not for this server") || s.Warnings[0].At.Default() {
		t.Error(s.Warnings)
	}
}
