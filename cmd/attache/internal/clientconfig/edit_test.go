package clientconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// Unwrap handles wrapped entries that a person or a client wrote or edited.
func TestUnwrapOfEditedEntry(t *testing.T) {
	checkEdits(t, "x.json", inJSON, []edit{
		{"printed again by a client", "{\"command\": \"/opt/attache\", \"args\": [\n  \"--\",\n  \"npx\",\n  \"-y\",\n  \"server\"\n]}", "{\"command\": \"npx\", \"args\": [\n  \"-y\",\n  \"server\"\n]}", ""},
		{"printed again, no arguments", "{\"command\": \"/opt/attache\", \"args\": [\n  \"--\",\n  \"npx\"\n]}", "{\"command\": \"npx\", \"args\": []}", ""},
		{"printed again without spaces", `{"command":"attache","args":["--","npx","-y","server"]}`, `{"command":"npx","args":["-y","server"]}`, ""},
		{"comma behind the last", `{"command": "attache", "args": ["--", "npx",]}`, `{"command": "npx", "args": []}`, ""},
		{"comment and comma behind the last", `{"command": "attache", "args": ["--", "npx" /* , */ , ]}`, `{"command": "npx", "args": [ /* , */  ]}`, ""},
		{"comments between", "{\"command\": \"attache\", \"args\": [\"--\", // a, b\n\"npx\", /* c */ \"-y\"]}", "{\"command\": \"npx\", \"args\": [ // a, b\n /* c */ \"-y\"]}", ""},
		{"args before command", `{"args": ["--", "npx"], "command": "attache"}`, `{"args": [], "command": "npx"}`, ""},
		{"run", `{"command": "attache", "args": ["run", "--", "npx", "-y"]}`, `{"command": "npx", "args": ["-y"]}`, "attache's own argument is taken out with it"},
		{"flags of attache", `{"command": "attache", "args": ["--trust", "sandboxed", "--", "npx", "-y"]}`, `{"command": "npx", "args": ["-y"]}`, "attache's own 2 arguments are taken out with it"},
		{"npx", `{"command": "npx", "args": ["-y", "attache-mcp@1.0.0", "--", "uvx", "server"]}`, `{"command": "uvx", "args": ["server"]}`, ""},
		{"npx on Windows", `{"command": "cmd", "args": ["/c", "npx", "-y", "attache-mcp", "--", "cmd", "/c", "npx", "x"]}`, `{"command": "cmd", "args": ["/c", "npx", "x"]}`, ""},
		{"npx, with a package and a program", `{"command": "npx", "args": ["-y", "-p", "attache-mcp", "attache", "--", "srv", "x"]}`, `{"command": "srv", "args": ["x"]}`, ""},
		{"npx, with a dash of its own", `{"command": "npx", "args": ["-p", "attache-mcp", "--", "attache", "--", "srv", "x"]}`, `{"command": "srv", "args": ["x"]}`, ""},
		{"npx, with a dash before the package", `{"command": "npx", "args": ["-y", "--", "attache-mcp@1.0.0", "--trust", "direct", "--", "srv"]}`, `{"command": "srv", "args": []}`, "attache's own 2 arguments are taken out with it"},
		{"npx, with an option for the package", `{"command": "npx", "args": ["-y", "--package=attache-mcp", "--", "attache", "--", "srv"]}`, `{"command": "srv", "args": []}`, ""},
		{"npx, with the package's other program", `{"command": "npx", "args": ["-p", "attache-mcp", "-p", "x", "attache-mcp", "--", "srv"]}`, `{"command": "srv", "args": []}`, ""},
		{"npx, in front of attache", `{"command": "npx", "args": ["-y", "attache-mcp", "--", "attache", "--", "srv"]}`, `{"command": "attache", "args": ["--", "srv"]}`, ""},
		{"in front of npx", `{"command": "attache", "args": ["--", "npx", "-y", "--", "attache-mcp", "--", "srv"]}`, `{"command": "npx", "args": ["-y", "--", "attache-mcp", "--", "srv"]}`, ""},
		{"by cmd", `{"command": "cmd", "args": ["/c", "attache", "--", "srv"]}`, `{"command": "srv", "args": []}`, ""},
		{"on Windows", `{"command": "C:\\Tools\\Attache.EXE", "args": ["--", "srv"]}`, `{"command": "srv", "args": []}`, ""},
		{"a dash of the server's own", `{"command": "attache", "args": ["--", "srv", "--", "x"]}`, `{"command": "srv", "args": ["--", "x"]}`, ""},
		{"the name it was given", `{"command": "other-name", "args": ["--", "srv", "x"]}`, `{"command": "srv", "args": ["x"]}`, ""},

		{"not attache", `{"command": "npx", "args": ["--", "srv"]}`, "", "attache is not in front of it"},
		{"a program that starts attache", `{"command": "op", "args": ["run", "--env-file", "e", "--", "attache-mcp", "--", "srv"]}`, "", "attache is not in front of it"},
		{"attache's package beside another", `{"command": "npx", "args": ["-p", "attache-mcp", "other", "--", "srv"]}`, "", "attache is not in front of it"},
		{"a server of npx", `{"command": "npx", "args": ["attache-mcp"]}`, "", "attache is not in front of it"},
		{"nothing behind", `{"command": "attache", "args": ["--"]}`, "", noServer},
		{"no text behind", `{"command": "attache", "args": ["--", 1]}`, "", noServer},
		{"a command of attache", `{"command": "attache", "args": ["demo"]}`, "", noServer},
		{"no arguments", `{"command": "attache"}`, "", noServer},
	}, func(d *Document) *Plan {
		if line := d.Entries[0].Line; line != 2 {
			t.Errorf("the entry is in line %d, want 2", line)
		}
		return d.Unwrap(Launch{Command: "other-name"}, all)
	})
}

// An edit is an entry before and after an edit, and the text of the step. to is "" if the entry stays
// as it is.
type edit struct{ name, from, to, text string }

// inJSON returns a file with an entry.
func inJSON(entry string) string { return "{\"mcpServers\": {\n\"s\": " + entry + "}}" }

// checkEdits checks the plans for entries. around returns the file of an entry.
func checkEdits(t *testing.T, path string, around func(entry string) string, edits []edit, plan func(*Document) *Plan) {
	t.Helper()
	for _, e := range edits {
		t.Run(e.name, func(t *testing.T) {
			p := plan(mustRead(t, mcpclient.File{Path: path}, []byte(around(e.from))))
			if diff := gocmp.Diff(around(cmp.Or(e.to, e.from)), string(p.Content)); diff != "" {
				t.Error(diff)
			}
			if step := p.Steps[0]; step.Text != e.text || step.Done != (e.to != "") || step.Broken != (e.text == noServer) {
				t.Errorf("%+v", step)
			}
		})
	}
}

// attache's own server is removed even if the client has written its file again in another order, or
// a person has added something to the entry.
func TestRemoveTeams(t *testing.T) {
	const own = `"attache-teams": {"type": "stdio", "command": "/opt/attache", "args": ["teams"], "env": {}}`
	for _, test := range []struct{ name, from, to string }{
		{"first", "{\"mcpServers\": {\n  " + own + ",\n  \"s\": {\"command\": \"x\"}\n}}", "{\"mcpServers\": {\n  \"s\": {\"command\": \"x\"}\n}}"},
		{"between", `{"mcpServers": {"a": {"command": "x"}, ` + own + `, "s": {"command": "x"}}}`, `{"mcpServers": {"a": {"command": "x"}, "s": {"command": "x"}}}`},
		{"last", "{\"mcpServers\": {\n  \"s\": {\"command\": \"x\"},\n  " + own + "\n}}", "{\"mcpServers\": {\n  \"s\": {\"command\": \"x\"}\n}}"},
		{"last, with a comma", `{"mcpServers": {"s": {"command": "x"}, ` + own + `,}}`, `{"mcpServers": {"s": {"command": "x"},}}`},
		{"two, last", `{"mcpServers": {"s": {"command": "x"}, ` + own + `, "own": {"command": "attache", "args": ["teams"]}}}`, `{"mcpServers": {"s": {"command": "x"}}}`},
		{"alone", `{"mcpServers": {` + own + `}}`, `{"mcpServers": {}}`},
		{"alone, with a comma", `{"mcpServers": {` + own + `,}}`, ""},
		{"a comment behind it", `{"mcpServers": {` + own + `, /* mine */ "s": {"command": "x"}}}`, ""},
		{"a comment before it", `{"mcpServers": {"s": {"command": "x"}, /* mine */ ` + own + `}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := mcpclient.File{Path: "x.json"}
			d := mustRead(t, file, []byte(test.from))
			plan := d.Unwrap(Launch{Command: "/opt/attache"}, all)
			d.RemoveTeams(plan, file)
			if diff := gocmp.Diff(cmp.Or(test.to, test.from), string(plan.Content)); diff != "" {
				t.Error(diff)
			}
			if step := plan.Steps[len(plan.Steps)-1]; step.Done != (test.to != "") || (step.Text == "") != step.Done {
				t.Errorf("%+v", step)
			}
		})
	}
}

// A table that was added after attache's own stays on a line of its own, whether the file before ended with a line break.
func TestRemoveTeamsBeforeAnother(t *testing.T) {
	const first, other = "mcp_servers.s.url = \"ws://x\"\nkey = 1", "[mcp_servers.other]\nurl = \"ws://y\"\n"
	file, launch := mcpclient.File{Path: "x.toml"}, Launch{Command: "attache"}
	for _, end := range []string{"", "\n"} {
		d := mustRead(t, file, []byte(first+end))
		plan := d.Wrap(launch, all)
		d.AddTeams(plan, file, launch)
		d = mustRead(t, file, append(plan.Content, other...))
		plan = d.Unwrap(launch, all)
		d.RemoveTeams(plan, file)
		if diff := gocmp.Diff(first+"\n"+other, string(plan.Content)); diff != "" {
			t.Error(diff)
		}
	}
}

// attache's own server is added once, wherever a client has put it, and not beside another entry of its name.
func TestAddTeamsOnce(t *testing.T) {
	for name, entries := range map[string]string{
		"x.json": `{"mcpServers": {"s": {"command": "x"}, "attache-teams": {"command": "x", "args": ["teams"]}}}`,
		"y.json": `{"mcpServers": {"s": {"command": "x"}, "own": {"command": "attache", "args": ["teams"]}}}`,
		"z.json": `{"mcpServers": {"s": {"command": "x"}, "attache-teams": {"command": "mine"}}}`,
		"x.toml": "mcp_servers.s.command = \"x\"\n[mcp_servers.own]\ncommand = \"attache\"\nargs = [\"teams\"]\n",
		"z.toml": "mcp_servers.s.command = \"x\"\n[mcp_servers.attache-teams]\ncommand = \"mine\"\n",
	} {
		file := mcpclient.File{Path: name}
		d := mustRead(t, file, []byte(entries))
		plan := d.Wrap(Launch{Command: "attache"}, func(string) bool { return false })
		d.AddTeams(plan, file, Launch{Command: "attache"})
		if plan.Changed() {
			t.Errorf("%s: %s", name, plan.Content)
		}
	}
}

// A long path in an address is no secret if it is a word or an identifier, and neither is every parameter.
func TestWrapAddresses(t *testing.T) {
	for address, secret := range map[string]bool{
		"https://x/mcp?team=shop": false, "https://x/environments/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9/servers/sales": false, "https://x/v1/MyServer2": false, "http://x": false,
		"https://${HOST}:${PORT}/${env:TEAM}/mcp?team=$TEAM": false, "https://x/a-long-name-of-a-server-in-2026/mcp?region=eu-central-1": false,
		"https://x/api/2.0/mcp/genie/01ef0123456789abcdef0123456789ab": false, "https://x/mcp/0123456789abcdefghijklmnopqrstuv": true,
		"http://localhost:7860/api/v1/mcp/project/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9/streamable": false, "https://x/mcp/workspace/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9": false,
		"https://eu2.make.com/mcp/u/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9/stateless": true, "https://x/mcp/0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9": true,
		"https://x/mcp?exaApiKey=s": true, "https://x/s/aB3dEf6hIj9lMn2pQr5t/mcp": true, "https://x/fc-0123456789abcdef0123456789abcdef/v2/mcp": true,
		"https://x/${FIRECRAWL_API_KEY}/v2/mcp": true, "https://x/${input:apiKey}/mcp": true, "https://x/{env:TOKEN}/mcp": true, "https://x/$API_KEY/mcp": true, "https://x/${API_KEY:-none}/mcp": true,
		"https://${HOST}/mcp?api_key=s": true, "https://x/mcp?sig=aB3dEf6hIj9lMn2pQr5t": true,
		"https://server.smithery.ai/@smithery-ai/github/mcp?profile=working-penguin-AbC123": false, "https://huggingface.co/mcp?gradio=evalstate/FLUX1_schnell,ResembleAI/Chatterbox": false,
		"https://x/mcp?list=one,aB3dEf6hIj9lMn2pQr5t": true, "https://x/mcp?id=aB3dEf6hIj-9lMn2pQr5t_": true, "https://x/mcp?id=key-0123456789abcdef0123456789abcdef": true,
		"https://x/mcp?api_key=a%c": true, "https://x/mcp?team=shop;api_key=s": true, "https://x/mcp?api_key=s&team=shop": true, "https://x/mcp?api%5Fkey=s": true,
		"https://x/${API_KEY}/${TEAM}/mcp": true, "https://x/s/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9": true,
		"https://x/mcp/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": true, "https://x/mcp/id-01234567890123456789012345678901": false,
		"https://x/ModelContextProtocolServer/mcp": false, "https://x/SERVER-OF-THE-SHOP-2026/mcp": false, "https://x/theserverofourlittleshopbesidethesea/mcp": false,
	} {
		d := mustRead(t, mcpclient.File{Path: "x.json"}, []byte(`{"mcpServers": {"s": {"url": "`+address+`"}}}`))
		if step := d.Wrap(Launch{Command: "attache"}, all).Steps[0]; step.Done == secret || secret && !strings.Contains(step.Text, "has a secret in it") {
			t.Errorf("%s: %+v", address, step)
		}
	}
}

// attache's own server is not added to a file that could not be read with it.
func TestAddTeamsWithoutRoom(t *testing.T) {
	var many strings.Builder
	for i := range maxServers {
		fmt.Fprintf(&many, `"s%d": {"command": "x"},`, i)
	}
	for _, test := range []struct{ file, from, to string }{
		{"x.toml", "mcp_servers = {s = {command = \"x\"}}\n", "mcp_servers = {s = {command = \"attache\", args = [\"--\",\"x\"]}}\n"},
		{"x.json", `{"mcpServers": {` + many.String() + `}}`, ""},
	} {
		file := mcpclient.File{Path: test.file}
		d := mustRead(t, file, []byte(test.from))
		plan := d.Wrap(Launch{Command: "attache"}, all)
		wrapped := string(plan.Content)
		d.AddTeams(plan, file, Launch{Command: "attache"})
		if got := string(plan.Content); got != wrapped || test.to != "" && got != test.to {
			t.Errorf("%s: %.300s", test.file, got)
		}
		if step := plan.Steps[len(plan.Steps)-1]; step.Done || !strings.Contains(step.Text, "no room for another server") {
			t.Errorf("%s: %+v", test.file, step)
		}
	}
}

// Unwrap handles wrapped TOML entries that a person or a client wrote or edited.
func TestUnwrapOfEditedTOML(t *testing.T) {
	around := func(entry string) string {
		if strings.Contains(entry, "[mcp_servers]") {
			return entry
		}
		return "[mcp_servers.s]\n" + entry
	}
	checkEdits(t, "x.toml", around, []edit{
		{"printed again", "command = \"attache\"\nargs = [\n  '--',\n  'npx',\n  '-y',\n]\n", "command = 'npx'\nargs = [\n  '-y',\n]\n", ""},
		{"comments between", "args = [\"--\" # a, b\n, # c\n\"npx\", # d\n\"-y\"]\ncommand = \"attache\"", "args = [ # a, b\n # c\n # d\n\"-y\"]\ncommand = \"npx\"", ""},
		{"inline", "x = 1\n[mcp_servers]\nt = {args = [\"--\", \"npx\"], command = \"attache\"}", "x = 1\n[mcp_servers]\nt = {args = [], command = \"npx\"}", ""},
		{"inline, without spaces", "[mcp_servers]\nt = {command = \"attache\", args = [\"--\",\"npx\",\"-y\"]}", "[mcp_servers]\nt = {command = \"npx\", args = [\"-y\"]}", ""},
		{"remote, as Codex prints it", "command = \"attache\"\nargs = [\"--\", \"https://x\"]\nenv = {ATTACHE_ENV_HEADER_A = \"V\"}\nenv_vars = [\"V\"]", "url = \"https://x\"\nenv_http_headers = {A = \"V\"}\n", ""},
		{"remote, with a comment", "command = \"attache\" # b\nargs = [\"--\", \"https://x\"]\n", "", "it was edited since attache wrote it: correct it by hand"},
		{"flags", "command = \"attache\"\nargs = [\"--trust\", \"direct\", \"--\", \"npx\"]", "command = \"npx\"\nargs = []", "attache's own 2 arguments are taken out with it"},
		{"number behind", "command = \"attache\"\nargs = [\"--\", 1]", "", "its args are not all texts: write each as one"},
		{"not a list", "command = \"attache\"\nargs = \"--\"", "", "its args are not a list: write one"},
		{"not a text", "command = [\"attache\"]", "", "attache is not in front of it"},
	}, unwrap)
}

// A wrapped remote server that was edited since is restored as far as possible.
func TestUnwrapRemote(t *testing.T) {
	checkEdits(t, "x.json", inJSON, []edit{
		{"printed again, sorted", `{"args":["--","https://x"],"command":"attache","env":{"ATTACHE_HEADER_A_B":"c"},"type":"stdio"}`,
			`{"url":"https://x","headers":{"A-B":"c"},"type":"http"}`, ""},
		{"printed again, with a note", `{"args":["--","https://x"],"command":"attache","env":{"ATTACHE_HEADER_A":"c","ATTACHE_ENTRY":"httpUrl http"}}`,
			`{"httpUrl":"https://x","headers":{"A":"c"}}`, ""},
		{"another type", `{"type":"stdio","command":"attache","args":["--","https://x"],"env":{"ATTACHE_ENTRY":"url streamable-http"}}`,
			`{"type":"streamable-http","url":"https://x"}`, ""},
		{"args last", `{"command":"attache","type":"stdio","args":["--","https://x"]}`, `{"url":"https://x","type":"http"}`, ""},
		{"with a note after args", `{"command":"attache","type":"stdio","args":["--","https://x"],"env":{"ATTACHE_ENTRY":"httpUrl http"}}`, `{"httpUrl":"https://x","type":"http"}`, ""},
		{"with nulls", `{"url":null,"command":"attache","args":["--","https://x"],"env":null,"headers":null}`, `{"url":"https://x"}`, ""},
		{"comments", `{"command":"attache",/* a, b */"args":["--","https://x"] /* c, d */,}`, `{"url":"https://x"/* a, b */ /* c, d */,}`, ""},
		{"headers too", `{"command":"attache","args":["--","https://x"],"env":{"ATTACHE_HEADER_A":"b"},"headers":{"C":"d"}}`, "",
			"it has headers, and variables that would be headers again: join them by hand"},
		{"flags", `{"command":"attache","args":["--trust","direct","--","https://x"]}`, `{"url":"https://x"}`, "attache's own 2 arguments are taken out with it"},
		{"headers alone", `{"command":"attache","args":["--","http://localhost:1/mcp"],"headers":{"C":"d"}}`, `{"url":"http://localhost:1/mcp","headers":{"C":"d"}}`, ""},
		{"another address", `{"command": "attache", "args": ["--", "https://y/${X}"], "disabled": true}`, `{"url": "https://y/${X}", "disabled": true}`, ""},
		{"a variable of a person's", `{"command":"attache","args":["--","https://x"],"env":{"ATTACHE_HEADER_A":"c","HTTPS_PROXY":"d"}}`, "",
			"its env has variables that are not headers, which a remote server has no use for: remove them first"},
		{"an argument behind the address", `{"command":"attache","args":["--","https://x","y"]}`, "",
			"it has more than the address of a remote server after \"--\": correct it by hand"},
		{"a note that is not attache's", `{"command":"attache","args":["--","https://x"],"env":{"ATTACHE_ENTRY":"x"}}`, "",
			"ATTACHE_ENTRY in its env is not as attache wrote it: correct it by hand"},
		{"a note without words", `{"command":"attache","args":["--","https://x"],"env":{"ATTACHE_ENTRY":""}}`, "",
			"ATTACHE_ENTRY in its env is not as attache wrote it: correct it by hand"},
		{"a note with another key", `{"command":"attache","args":["--","https://x"],"env":{"ATTACHE_ENTRY":"uri http"}}`, "",
			"ATTACHE_ENTRY in its env is not as attache wrote it: correct it by hand"},
	}, unwrap)
}

// Some entries are not wrapped, each for a reason that the plan gives.
func TestWrapSkips(t *testing.T) {
	for from, want := range map[string]string{
		`{"url": "https://x/sse"}`:                                 "it uses the older transport HTTP+SSE",
		`{"type": "sse", "url": "https://x"}`:                      "it uses the older transport HTTP+SSE",
		`{"transportType": "sse", "url": "https://x"}`:             "it uses the older transport HTTP+SSE",
		`{"transport": "sse", "url": "https://x"}`:                 "it uses the older transport HTTP+SSE",
		`{"transport": "http", "url": "https://x"}`:                "it is remote, and its transport says so",
		`{"type": "ws", "url": "wss://x"}`:                         "it is remote, and its address does not begin with https:// or http://",
		`{"url": "https://x", "env": {"A": "b"}}`:                  "it is remote and has variables",
		`{"url": "https://x", "args": []}`:                         "it is remote and has args: remove them",
		`{"url": "https://x", "command": {}}`:                      "it has a command and a url",
		`{"u\u0072l": "https://x"}`:                                "it is remote, and a key, its type or the name of a header is written with escapes",
		`{"url": "https://x", "h\u0065aders": {"A": "b"}}`:         "it is remote, and a key, its type or the name of a header is written with escapes",
		`{"url": "https://x", "headers": {"\u0041": "b"}}`:         "it is remote, and a key, its type or the name of a header is written with escapes",
		`{"url": "https://x", "type": "\u0068ttp"}`:                "it is remote, and a key, its type or the name of a header is written with escapes",
		"{\"url\": \"https://x\", \"type\": \"a\x7f\"}":            "it is remote, and a key, its type or the name of a header is written with escapes",
		`{"url": "https://x", "type": "a b"}`:                      "it is remote, and its type is written in a way that unwrap could not give back",
		`{"url": "https://x", "type": ""}`:                         "it is remote, and its type is written in a way that unwrap could not give back",
		`{"url": "https://x", "oauth": {}}`:                        `it is remote, and the client logs in to it as the entry says, which attache does not: to wrap it, remove that, and use "attache login" or server.headers`,
		`{"url": "https://x", "url": "https://y"}`:                 "a part of it appears twice",
		`{"url": "https://x", "url": null}`:                        "a part of it appears twice",
		`{"url": null, "url": "https://x"}`:                        "a part of it appears twice",
		`{"url": null, "httpUrl": "https://x"}`:                    "a part of it appears twice",
		`{"type": "http", "type": "http", "url": "https://x"}`:     "a part of it appears twice",
		`{"url": "https://x", "headers": {}, "headers": {}}`:       "a part of it appears twice",
		`{"url": "https://x", "headers": {"A": 1, "B": ""}}`:       "it is remote, and its headers are not all texts",
		`{"url": "https://x", "headers": {"Mcp-Session-Id": "a"}}`: "it is remote, and it sets a header that attache sets itself",
		`{"url": "https://x", "headers": []}`:                      "it is remote, and its headers are not all texts",
		`{"url": "https://x", "headers": {"A": 1}}`:                "it is remote, and its headers are not all texts",
		`{"url": "https://x", "headersHelper": "./token.sh"}`:      "it is remote, and the client logs in to it",
		`{"url": "https://x", "authToken": "a"}`:                   "it is remote, and the client logs in to it", // mcp-use
		`{"url": "https://x", "bearerTokenEnv": "A"}`:              "it is remote, and the client logs in to it", // mcporter
		`{"url": "https://x/mcp?a=b&exaApiKey=c"}`:                 "it is remote, and its address has a secret in it, or a UUID that may be one, ",
		`{"url": "https://x/s/NTk1MWQ0YjMtZmFiYy00/mcp"}`:          "it is remote, and its address has a secret in it",
		`{"url": "https://a:b%zz@x"}`:                              "it is remote, and its address is not valid",
		`{"url": "https://a:b@x"}`:                                 "it is remote, and its address has a user name or a password in it",
		`{"url": "https://x", "headers": {"A.B": ""}}`:             "it is remote, and the name of a header cannot become that of a variable",
		`{"url": "https://x", "headers": {"A-_B": ""}}`:            "it is remote, and the name of a header cannot become that of a variable",
		`{"url": "https://x", "headers": {"Host": "a"}}`:           "it is remote, and it sets a header that attache sets itself",
		`{"url": "https://x", "headers": {"A": "", "a": ""}}`:      "it is remote, and the name of a header cannot become that of a variable",
		`{"httpUrl": "https://x", "command": ""}`:                  "it has a command and a httpUrl",
		`{"type": "http"}`:                                         "it is remote",
		`{"type": "streamableHttp", "url": null}`:                  "it is remote",
		`{"baseUrl": "https://x"}`:                                 `its address is in "baseUrl"`, // mcporter
		`{"serverUri": "https://x"}`:                               `its address is in "serverUri"`,
		`{"type": "http", "base_url": "https://x"}`:                `its address is in "base_url"`,
		`{"uri": "https://x", "command": 1}`:                       "its command is not a text",
		`{"homepage": "https://x"}`:                                "it has no command",
		`{"type": "stdio"}`:                                        "it has no command",
		`{}`:                                                       "it has no command",
		`{"command": ""}`:                                          "its command is empty",
		`{"command": 1}`:                                           "its command is not a text",
		`{"command": {"path": ["x"]}}`:                             "its command is not a text",
		`{"command": {"args": []}}`:                                "it has no command",
		`{"command": "x", "args": {}}`:                             "its args are not a list",
		`{"command": "x", "args": null}`:                           "its args are null: write a list, or remove them",
		`{"command": "x", "args": [], "args": []}`:                 `"args" appears twice`,
		`{"command": "https://x"}`:                                 "its command is an address",
		`{"command": "~/x"}`:                                       "its command begins with ~",
		`{"command": "npx -y x"}`:                                  "its command holds its arguments",
		`{"command": "./wrap.go x", "args": []}`:                   "its command holds its arguments",
		`{"command": "ATTACHE.exe"}`:                               noServer,
		`{"command": "attache", "args": ["--"]}`:                   noServer,
		`{"command": "attache", "args": ["--", "x"]}`:              "attache is in front of it already",
		`null`: "it is not an object",

		// The command is a list, as in opencode.
		`{"type": "local", "command": ["a"], "args": []}`:                 "its command is a list and it has args too",
		`{"args": ["b"], "type": "local", "command": ["a"]}`:              "its command is a list and it has args too",
		`{"type": "local", "command": []}`:                                "its command is not a text",
		`{"type": "local", "command": [""]}`:                              "its command is empty",
		`{"type": "remote"}`:                                              "it is remote and has no address",
		`{"type": "remote", "url": "https://x", "oauth": {"scope": "a"}}`: "it is remote, and the client logs in to it",

		// There is an object "transport", as in Cline CLI 3, whose members may say that the client logs in.
		`{"transport": {"type": "sse", "url": "https://x"}}`:                              "it uses the older transport HTTP+SSE",
		`{"transport": {"type": "streamableHttp", "url": "https://x"}, "oauth": {}}`:      "it is remote, and the client logs in to it",
		`{"transport": {"type": "stdio"}}`:                                                "it has no command",
		`{"transport": {"type": "stdio", "command": "a"}, "transport": {"command": "b"}}`: `"transport" appears twice`,
		`{"transport": {"command": "a"}, "command": "b"}`:                                 "it has a transport and a command",
		`{"transport": {"command": "a"}, "url": "https://x"}`:                             "it has a transport and a url",
		`{"transport": {"type": "streamableHttp", "url": "https://x", "oauth": {}}}`:      "it is remote, and the client logs in to it",
	} {
		requireSkipped(t, "x.json", inJSON(from), want, wrap)
	}
}

// Gemini CLI uses Streamable HTTP with a url if the type says so, and otherwise either transport. Qwen Code uses HTTP+SSE
// with a url, whatever its type.
func TestWrapURLOfClients(t *testing.T) {
	for _, test := range []struct{ client, entry, want string }{
		{"gemini", `{"url": "https://x"}`, "it is remote, and Gemini CLI uses either transport with it"},
		{"gemini", `{"url": "https://x/sse"}`, "it uses the older transport HTTP+SSE"},
		{"gemini", `{"url": "https://x", "type": "http"}`, "it has no Authorization header"},
		{"gemini", `{"url": "https://x", "type": "sse"}`, "it uses the older transport HTTP+SSE"},
		{"gemini", `{"httpUrl": "https://x"}`, "it has no Authorization header"},
		{"qwen", `{"url": "https://x"}`, `it is remote, and Qwen Code uses HTTP+SSE with a "url"`},
		{"qwen", `{"url": "https://x", "type": "http"}`, `it is remote, and Qwen Code uses HTTP+SSE with a "url"`},
		{"qwen", `{"httpUrl": "https://x"}`, "it has no Authorization header"},
		{"qwen", `{"httpUrl": "https://x", "headers": {"authorization": "Bearer a"}}`, ""},
		{"qwen", `{"httpUrl": "https://x", "headers": {"Authorization": "Bearer a", "Accept": "application/json"}}`, ""},
	} {
		d := mustRead(t, mcpclient.File{Client: clientNamed(test.client), Path: "settings.json"}, []byte(`{"mcpServers": {"s": `+test.entry+`}}`))
		if step := d.Wrap(Launch{Command: "attache"}, all).Steps[0]; !strings.HasPrefix(step.Text, test.want) || test.want == "" && step.Text != "" {
			t.Errorf("%s: %s: %+v", test.client, test.entry, step)
		}
	}
}

func clientNamed(name string) *mcpclient.Client {
	clients := mcpclient.All()
	return &clients[slices.IndexFunc(clients, func(c mcpclient.Client) bool { return c.Name == name })]
}

// Some clients replace variables in headers, but not in the env that wrap makes of them: mcporter, if
// the variable is a part of the value. It is not known of a file that the user names.
func TestWrapHeaderWithVariable(t *testing.T) {
	clients := mcpclient.All()
	for entry, variable := range map[string]bool{
		`{"url": "https://x", "headers": {"Authorization": "Bearer ${A}"}}`: true,
		`{"url": "https://x", "headers": {"X-Team": "${A}"}}`:               true,
		`{"url": "https://x", "headers": {"X-Team": "${A}", "X-B": "b"}}`:   true,
		`{"url": "https://x", "headers": {"Authorization": "Bearer a$b"}}`:  false,
	} {
		for _, file := range []mcpclient.File{{Path: "x.json"}, {Client: &clients[0], Path: "x.json"}} {
			d := mustRead(t, file, []byte(`{"mcpServers": {"s": `+entry+`}}`))
			step := d.Wrap(Launch{Command: "attache"}, all).Steps[0]
			if told := strings.HasPrefix(step.Text, "a header has a variable in it"); !step.Done || told != (variable && file.Client == nil) {
				t.Errorf("%s: %+v", entry, step)
			}
		}
	}
}

// A path may contain spaces, also one on another machine.
func TestWrapPathWithSpaces(t *testing.T) {
	for _, entry := range []string{`{"command": "/Applications/My App/server"}`, `{"command": "my server", "args": ["x"]}`} {
		d := mustRead(t, mcpclient.File{Path: "x.json"}, []byte(`{"mcpServers": {"s": `+entry+`}}`))
		if step := d.Wrap(Launch{Command: "attache"}, all).Steps[0]; !step.Done {
			t.Errorf("%s: %+v", entry, step)
		}
	}
}

// A diff shows only the lines that change, because those around them contain secrets.
func TestDiff(t *testing.T) {
	long := `{"a": "` + strings.Repeat("SECRET", 100) + `", "mcpServers": {"s": {"command": "npx", "args": ["x"], "env": {"T": "` + strings.Repeat("SECRET", 100) + `"}}}}`
	tests := []struct{ name, path, from, want string }{
		{"lines", "x.json", "{\"mcpServers\": {\r\n\"s\": {\r\n\"env\": {\"T\": \"SECRET\"},\r\n\"command\": \"npx\",\r\n\"args\": [\"x\"]}}}",
			"@line 4\n-\"command\": \"npx\",\n-\"args\": [\"x\"]}}}\n+\"command\": \"attache\",\n+\"args\": [\"--\", \"npx\", \"x\"]}}}\n"},
		{"lines apart", "x.toml", "[mcp_servers.s]\nargs = [\n  \"x\"\n]\nenv = {T = \"SECRET\"}\n\ncommand = \"npx\"",
			"@line 3\n-  \"x\"\n+  \"--\",\n+  \"npx\",\n+  \"x\"\n@line 7\n-command = \"npx\"\n+command = \"attache\"\n"},
		{"nothing", "x.json", "{}", ""},
		{"in one line", "x.json", `{"mcpServers": {"s": {"env": {"A": "SECRET", "B": 7}, "command": "npx", "args": [], "headers": {"C": "SECRET"}}}}`,
			`@line 1
-{"mcpServers": {"s": {"env": {"A": "[hidden]", "B": "[hidden]"}, "command": "npx", "args": [], "headers": {"C": "[hidden]"}}}}
+{"mcpServers": {"s": {"env": {"A": "[hidden]", "B": "[hidden]"}, "command": "attache", "args": ["--", "npx"], "headers": {"C": "[hidden]"}}}}
`},
		{"in one line of TOML", "x.toml", `mcp_servers.s = {env = {A = "SECRET", B = 7}, command = "npx", args = []}`,
			`@line 1
-mcp_servers.s = {env = {A = "[hidden]", B = "[hidden]"}, command = "npx", args = []}
+mcp_servers.s = {env = {A = "[hidden]", B = "[hidden]"}, command = "attache", args = ["--", "npx"]}
`},
	}
	tests = append(tests, secretArguments...)
	for _, test := range tests {
		if got := diffOf(t, test.path, test.from); got != test.want {
			t.Errorf("%s: %s", test.name, gocmp.Diff(test.want, got))
		}
	}
	got := diffOf(t, "x.json", long)
	if len(got) > 700 || !strings.Contains(got, `"command": "attache", "args": ["--", "npx", "x"]`) || !strings.Contains(got, "...") {
		t.Errorf("a long line is shown as %s", got)
	}
}

// secretArguments are servers with secrets among their arguments, and a long line, of which only the
// servers that change are shown.
var secretArguments = []struct{ name, path, from, want string }{
	{"a flag and its value", "x.json", "{\"mcpServers\": {\n\"s\": {\"command\": \"npx\", \"args\": [\"--figma-api-key\", \"SECRET\", \"--token=SECRET\", \"--tokenizer\", \"x\", \"--key-file\", \"y\", \"looks-SECRET\"]}}}",
		"@line 2\n-\"s\": {\"command\": \"npx\", \"args\": [\"--figma-api-key\", \"[hidden]\", \"[hidden]\", \"--tokenizer\", \"x\", \"--key-file\", \"y\", \"[hidden]\"]}}}\n" +
			"+\"s\": {\"command\": \"attache\", \"args\": [\"--\", \"npx\", \"--figma-api-key\", \"[hidden]\", \"[hidden]\", \"--tokenizer\", \"x\", \"--key-file\", \"y\", \"[hidden]\"]}}}\n"},
	{"no secrets", "x.json", `{"mcpServers": {"s": {"command": "npx", "args": ["auth-server", "a", "--token-path", "b", "--token", "--verbose"]}}}`,
		"@line 1\n-" + `{"mcpServers": {"s": {"command": "npx", "args": ["auth-server", "a", "--token-path", "b", "--token", "--verbose"]}}}` + "\n+" + `{"mcpServers": {"s": {"command": "attache", "args": ["--", "npx", "auth-server", "a", "--token-path", "b", "--token", "--verbose"]}}}` + "\n"},
	{"the first argument", "x.json", `{"mcpServers": {"s": {"command": "npx", "args": ["looks-SECRET"]}}}`,
		"@line 1\n-" + `{"mcpServers": {"s": {"command": "npx", "args": ["[hidden]"]}}}` + "\n+" + `{"mcpServers": {"s": {"command": "attache", "args": ["--", "npx", "[hidden]"]}}}` + "\n"},
	{"a variable", "x.json", `{"mcpServers": {"s": {"command": "env", "args": ["API_TOKEN=SECRET", "PORT=1"]}}}`,
		"@line 1\n-" + `{"mcpServers": {"s": {"command": "env", "args": ["[hidden]", "PORT=1"]}}}` + "\n+" + `{"mcpServers": {"s": {"command": "attache", "args": ["--", "env", "[hidden]", "PORT=1"]}}}` + "\n"},
	{"a long line", "x.json", strings.Repeat(" ", 200) + `{"mcpServers": {"s": {"command": "npx", "args": ["` + strings.Repeat("x", 300) + `"]}}}`,
		"@line 1\n-..." + strings.Repeat(" ", 44) + `{"mcpServers": {"s": {"command": "npx", "args": ["` + strings.Repeat("x", 300) + `"]}}}` + "\n+..." + strings.Repeat(" ", 44) + `{"mcpServers": {"s": {"command": "attache", "args": ["--", "npx", "` + strings.Repeat("x", 300) + `"]}}}` + "\n"},
}

// Repair changes how attache is started, and keeps its flags and the server.
func TestRepair(t *testing.T) {
	checkEdits(t, "x.json", inJSON, []edit{
		{"the binary moved", `{"command": "/old/attache", "args": ["--trust", "sandboxed", "--", "npx", "-y"]}`, `{"command": "/opt/attache", "args": ["--trust", "sandboxed", "--", "npx", "-y"]}`, ""},
		{"by npx", `{"command": "npx", "args": ["-y", "attache-mcp@1.0.0", "--config", "x", "--", "srv"]}`, `{"command": "/opt/attache", "args": ["--config", "x", "--", "srv"]}`, ""},
		{"by npx on Windows", `{"command": "cmd", "args": ["/c", "npx", "-y", "attache-mcp", "--", "srv"]}`, `{"command": "/opt/attache", "args": ["--", "srv"]}`, ""},
		{"by npx, with a dash of its own", `{"command": "npx", "args": ["-p", "attache-mcp", "--", "attache", "--trust", "direct", "--", "srv"]}`, `{"command": "/opt/attache", "args": ["--trust", "direct", "--", "srv"]}`, ""},
		{"by npx, with an option for the package", `{"command": "npx", "args": ["-y", "--package=attache-mcp@1.0.0", "attache", "--", "srv"]}`, `{"command": "/opt/attache", "args": ["--", "srv"]}`, ""},
		{"by npx, with the package's other program", `{"command": "npx", "args": ["-p", "attache-mcp", "attache-mcp", "--", "srv"]}`, `{"command": "/opt/attache", "args": ["--", "srv"]}`, ""},
		{"by npx, with a dash before the package", `{"command": "npx", "args": ["-y", "--", "attache-mcp", "--", "srv"]}`, `{"command": "/opt/attache", "args": ["--", "srv"]}`, ""},
		{"by cmd", `{"command": "cmd", "args": ["/c", "attache", "--", "srv"]}`, `{"command": "/opt/attache", "args": ["--", "srv"]}`, ""},
		{"a comment", `{"command": "npx", "args": ["-y", /* ours */ "attache-mcp", "--", "srv"]}`, `{"command": "/opt/attache", "args": [ /* ours */ "--", "srv"]}`, ""},
		{"attache's own server", `{"command": "/old/attache", "args": ["teams", "--config", "x"]}`, `{"command": "/opt/attache", "args": ["teams", "--config", "x"]}`, ""},
		{"attache's own server by npx", `{"command": "npx", "args": ["-y", "attache-mcp", "teams"]}`, `{"command": "/opt/attache", "args": ["teams"]}`, ""},
		{"nothing to do", `{"command": "/opt/attache", "args": ["--", "srv"]}`, "", "it starts this attache already"},
		{"not attache", `{"command": "npx", "args": ["srv"]}`, "", "attache is not in front of it"},
		{"no server", `{"command": "/old/attache", "args": ["--trust", "direct"]}`, "", noServer},
	}, func(d *Document) *Plan { return d.Repair(Launch{Command: "/opt/attache"}, all) })
}

// Repair changes the version of the package, and only servers that are chosen.
func TestRepairVersion(t *testing.T) {
	const config = `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "attache-mcp@1.0.0", "--", "x"]}, "b": {"command": "npx", "args": ["-y", "attache-mcp@1.0.0", "--", "y"]}}}`
	d := mustRead(t, mcpclient.File{Path: "x.json"}, []byte(config))
	plan := d.Repair(Launch{Command: "npx", Args: []string{"-y", "attache-mcp@2.0.0"}}, func(name string) bool { return name == "a" })
	if want := strings.Replace(config, "@1.0.0", "@2.0.0", 1); string(plan.Content) != want {
		t.Errorf("got %s, want %s", plan.Content, want)
	}
}

// Unwrap takes out attache's own server as Repair has left it. A second attache stays.
func TestRepairTeams(t *testing.T) {
	repair := func(f mcpclient.File, content []byte) string {
		t.Helper()
		plan := mustRead(t, f, content).Repair(Launch{Command: "/opt/attache"}, all)
		return string(plan.Content)
	}
	second := `{"mcpServers": {"attache-teams": {"command": "/opt/attache-next", "args": ["teams"]}}}`
	if got := repair(mcpclient.File{Path: "x.json"}, []byte(second)); got != second {
		t.Errorf("a second attache became %s", got)
	}
	for path, from := range map[string]string{"x.json": `{"mcpServers": {"s": {"command": "srv"}}}`, "x.toml": "[mcp_servers.s]\ncommand = \"srv\"\n"} {
		f := mcpclient.File{Path: path}
		d := mustRead(t, f, []byte(from))
		old := Launch{Command: "npx", Args: []string{"-y", Package}}
		plan := d.Wrap(old, all)
		d.AddTeams(plan, f, old)
		repaired := repair(f, plan.Content)
		if strings.Contains(repaired, "npx") || strings.Count(repaired, "/opt/attache") != 2 {
			t.Errorf("repaired to %s", repaired)
		}
		d = mustRead(t, f, []byte(repaired))
		plan = d.Unwrap(Launch{}, all)
		if d.RemoveTeams(plan, f); string(plan.Content) != from {
			t.Errorf("unwrapped to %s", plan.Content)
		}
	}
}

// Repair can replace a binary by npx.
func TestRepairToNpx(t *testing.T) {
	d := mustRead(t, mcpclient.File{Path: "x.json"}, []byte(`{"mcpServers": {"s": {"command": "/old/attache", "args": ["--trust", "direct", "--", "srv"]}}}`))
	got := string(d.Repair(Launch{Command: "npx", Args: []string{"-y", Package}}, all).Content)
	if want := `{"mcpServers": {"s": {"command": "npx", "args": ["-y", "attache-mcp", "--trust", "direct", "--", "srv"]}}}`; got != want {
		t.Error(gocmp.Diff(want, got))
	}
}

// attache's own flags are between the arguments that start it and the server.
func TestWrapWithFlags(t *testing.T) {
	d := mustRead(t, mcpclient.File{Path: "x.json"}, []byte(`{"mcpServers": {"s": {"command": "srv"}}}`))
	launch := Launch{Command: "npx", Args: []string{"-y", Package}, Flags: []string{"--workspace", "/src/a b"}}
	plan := d.Wrap(launch, all)
	if want := `"args": ["-y","attache-mcp","--workspace","/src/a b","--","srv"]`; !strings.Contains(string(plan.Content), want) {
		t.Errorf("%s has not %s", plan.Content, want)
	}
}

func diffOf(t *testing.T, path, content string) string {
	t.Helper()
	d := mustRead(t, mcpclient.File{Path: path}, []byte(content))
	var b strings.Builder
	for _, l := range d.Wrap(Launch{Command: "attache"}, all).Diff(func(argument string) bool { return strings.HasPrefix(argument, "looks-") }) {
		b.WriteString(string(l.Op) + l.Text + "\n")
	}
	return b.String()
}

// Wrap changes only the chosen servers, and Read finds only those in the client's sections.
func TestWrapChoosesServersAndSections(t *testing.T) {
	const config = `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}, "servers": {"c": {"command": "x"}}}`
	d := mustRead(t, mcpclient.File{Client: clientNamed("cursor"), Path: "mcp.json"}, []byte(config))
	plan := d.Wrap(Launch{Command: "attache"}, func(name string) bool { return name == "b" })
	if want := strings.Replace(config, `"b": {"command": "x"}`, `"b": {"command": "attache", "args": ["--","x"]}`, 1); len(d.Entries) != 2 || string(plan.Content) != want {
		t.Errorf("%s", plan.Content)
	}
	d, err := Read(mcpclient.File{Path: "mcp.json"}, []byte(config))
	if err != nil || len(d.Entries) != 3 {
		t.Errorf("without a client %d entries are found, %v", len(d.Entries), err)
	}
}

// Read refuses files for which the parsers or Diff would take minutes or overflow the stack.
func TestReadHuge(t *testing.T) {
	for _, test := range []struct {
		name, begin, unit, end string
		units                  int
		want                   string
	}{
		{"config.toml", "", "[mcp_servers.s%d]\ncommand = \"c\"\n", "", 200_000, "more than 20000 keys and tables"},
		{"config.toml", "", "mcp_servers.s%d.command = \"c\"\n", "", 200_000, "more than 20000 keys and tables"},
		{"config.toml", "", "a%d = [[", "", 200_000, "more than 20000 keys and tables"},
		{"mcp.json", `{"mcpServers":{`, `"s%d":{"command":"c"},`, `}}`, 20_000, "more than 5000 servers"},
	} {
		text := strings.Builder{}
		text.WriteString(test.begin)
		for i := range test.units {
			fmt.Fprintf(&text, test.unit, i)
		}
		text.WriteString(test.end)
		if _, err := Read(mcpclient.File{Path: test.name}, []byte(text.String())); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.30s: %v", text.String(), err)
		}
	}
}
