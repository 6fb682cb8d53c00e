package clientconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
	"github.com/attache-mcp/attache/internal/testkit"
)

func all(string) bool { return true }

func mustRead(t *testing.T, file mcpclient.File, content []byte) *Document {
	t.Helper()
	d, err := Read(file, content)
	check(t, err)
	return d
}

// launches returns different ways for clients to start attache.
func launches() []Launch {
	return []Launch{
		{Command: "/usr/local/bin/attache"},
		{Command: "attache"},
		{Command: "uvx"}, // also the command of a server
		{Command: `C:\Program Files\attache\attache.exe`},
		{Command: "/odd \"path\"/with\nall,of it/at#tach\u2028\x7fé"},
		{Command: "npx", Args: []string{"-y", "attache-mcp"}},
		{Command: "cmd", Args: []string{"/c", "npx", "-y", "attache-mcp@1.2.3"}},
	}
}

// corpus returns the files of the corpus, with their clients.
func corpus(t testing.TB) map[mcpclient.File][]byte {
	t.Helper()
	files := map[mcpclient.File][]byte{}
	for _, c := range mcpclient.All() {
		paths, err := filepath.Glob("testdata/corpus/" + c.Name + "/*")
		if err != nil || paths == nil {
			t.Fatalf("no corpus for %s: %v", c.Name, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			check(t, err)
			files[mcpclient.File{Client: &c, Path: path}] = data
		}
	}
	return files
}

// Unwrapping a wrapped file restores its bytes, whatever the file looks like.
func TestUnwrapAfterWrapIsTheIdentity(t *testing.T) {
	for file, data := range corpus(t) {
		for name, variant := range variants(file.Path, data) {
			for i, launch := range launches() {
				t.Run(fmt.Sprintf("%s/%s/%d", strings.TrimPrefix(file.Path, "testdata/corpus/"), name, i), func(t *testing.T) {
					t.Cleanup(func() {
						if t.Skipped() {
							t.Error("a file of the corpus has attache in it")
						}
					})
					checkRoundTrip(t, file, variant, launch)
				})
			}
		}
	}
}

// variants returns data in the forms that other editors and systems write.
func variants(path string, data []byte) map[string][]byte {
	v := map[string][]byte{"as it is": data}
	bare := bytes.TrimPrefix(data, []byte(mark))
	unix := bytes.ReplaceAll(bare, []byte("\r\n"), []byte("\n"))
	v["lf"] = unix
	v["crlf"] = bytes.ReplaceAll(unix, []byte("\n"), []byte("\r\n"))
	v["bom"] = append([]byte(mark), unix...)
	v["tabs"] = bytes.ReplaceAll(unix, []byte("  "), []byte("\t"))
	if strings.HasSuffix(path, ".json") {
		if min, err := hujson.Minimize(bytes.Clone(bare)); err == nil {
			v["minimal"] = min
		}
		if pretty, err := hujson.Format(bytes.Clone(bare)); err == nil {
			v["formatted"] = pretty
		}
	}
	return v
}

// checkRoundTrip checks that wrapping and unwrapping data restores it, and other invariants.
func checkRoundTrip(t *testing.T, file mcpclient.File, data []byte, launch Launch) {
	t.Helper()
	before := mustRead(t, file, data)
	kept := bytes.Clone(data)
	plan := before.Wrap(launch, all)
	if !bytes.Equal(data, kept) {
		t.Fatal("the content that was read was written to")
	}
	for _, e := range before.Entries {
		if _, wrapped := e.Wrapped(launch); wrapped {
			t.Skipf("%s is wrapped already, and would be unwrapped", e.Name)
		}
	}
	after, err := Read(file, plan.Content)
	if err != nil {
		t.Fatalf("the wrapped file cannot be read: %v\n%s", err, plan.Content)
	}
	for i, e := range after.Entries {
		checkWrapped(t, before.Entries[i], e, plan.Steps[i], launch)
	}
	checkRest(t, file, data, plan.Content)
	if again := after.Wrap(launch, all); again.Changed() {
		t.Errorf("wrapped twice:\n%s", again.Content)
	}
	back := after.Unwrap(launch, all)
	if got := back.Content; !bytes.Equal(got, data) {
		t.Errorf("not restored: %s\nwrapped:\n%s", cmp.Diff(string(data), string(got)), plan.Content)
	}
	checkShown(t, plan)
	checkShown(t, back)
	checkTeams(t, file, data, launch)
}

// checkShown checks that a diff is shown if the plan changes something.
func checkShown(t *testing.T, p *Plan) {
	t.Helper()
	if lines := p.Diff(nil); len(lines) > 0 != p.Changed() {
		t.Errorf("of %d edits %d lines are shown", len(p.splices), len(lines))
	}
}

// checkTeams checks that attache's own server is added once, and that removing it and unwrapping the
// others restores data.
func checkTeams(t *testing.T, file mcpclient.File, data []byte, launch Launch) {
	t.Helper()
	doc := mustRead(t, file, data)
	plan := doc.Wrap(launch, all)
	doc.AddTeams(plan, file, launch)
	last := Step{Done: true}
	if len(plan.Steps) > 0 {
		last = plan.Steps[len(plan.Steps)-1]
	}
	noRoom := last.Entry != nil && last.Entry.Name == TeamsServer && !last.Done
	after, err := Read(file, plan.Content)
	if err != nil {
		t.Fatalf("the file with teams cannot be read: %v\n%s", err, plan.Content)
	}
	own := 0
	for _, e := range after.Entries {
		if e.IsTeams() {
			own++
		}
	}
	if own == 0 && len(doc.Entries) > 0 && !noRoom {
		t.Errorf("no server was added:\n%s", plan.Content)
	}
	again := after.Wrap(launch, all)
	after.AddTeams(again, file, launch)
	if again.Changed() {
		t.Errorf("wrapped twice:\n%s", again.Content)
	}
	back := after.Unwrap(launch, all)
	after.RemoveTeams(back, file)
	if !bytes.Equal(back.Content, data) {
		t.Errorf("not restored: %s\nwrapped:\n%s", cmp.Diff(string(data), string(back.Content)), plan.Content)
	}
	checkShown(t, plan)
	checkShown(t, back)
}

// checkWrapped checks that attache in after starts the server of before.
func checkWrapped(t *testing.T, before, after *Entry, step Step, l Launch) {
	t.Helper()
	if !step.Done {
		if step.Text == "" {
			t.Errorf("%s: skipped without a reason", before.Name)
		}
		if before.Command != after.Command || !slices.Equal(before.Args, after.Args) {
			t.Errorf("%s: changed, although %s", before.Name, step.Text)
		}
		return
	}
	want := slices.Concat(l.Args, []string{"--", before.Command}, before.Args)
	if before.Remote {
		want = slices.Concat(l.Args, []string{"--", before.remote.address.value.value})
	}
	if before.Remote && before.toml != nil && before.toml.bearer.exists() {
		want = slices.Insert(want, len(l.Args), bearerFlag, before.toml.bearer.value.value)
	}
	if after.Command != l.Command || !slices.Equal(after.Args, want) {
		t.Errorf("%s: starts %q %q, want %q %q", before.Name, after.Command, after.Args, l.Command, want)
	}
}

// checkRest checks with another parser that only commands and arguments differ.
func checkRest(t *testing.T, file mcpclient.File, before, after []byte) {
	t.Helper()
	// Compare text: then NaN equals NaN, and deep nesting is not slow.
	was, is := fmt.Sprintf("%#v", decode(t, file, before)), fmt.Sprintf("%#v", decode(t, file, after))
	if was != is {
		t.Errorf("more than commands and arguments changed: %s", cmp.Diff(was, is))
	}
}

// decode returns data as a client decodes it, without commands and arguments.
func decode(t *testing.T, file mcpclient.File, data []byte) any {
	t.Helper()
	data = bytes.TrimPrefix(bytes.Clone(data), []byte(mark))
	var v any
	var err error
	if strings.HasSuffix(file.Path, ".toml") {
		err = toml.Unmarshal(data, &v)
	} else if len(bytes.TrimSpace(data)) == 0 {
		return nil
	} else if data, err = hujson.Standardize(append(data, '\n')); err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber() // one of them may be larger than a float64
		err = d.Decode(&v)
	}
	if err != nil {
		t.Fatalf("a client cannot read it: %v\n%s", err, data)
	}
	return withoutCommands(v, file.IsTOML())
}

func withoutCommands(v any, isTOML bool) any {
	switch v := v.(type) {
	case map[string]any:
		withoutAddress(v, isTOML)
		if _, ok := v["command"].(string); ok {
			delete(v, "command")
			delete(v, "args")
		}
		if _, ok := v["path"].(string); ok {
			delete(v, "path")
			delete(v, "args")
		}
		for k := range v {
			v[k] = withoutCommands(v[k], isTOML)
		}
	case []any:
		for i := range v {
			v[i] = withoutCommands(v[i], isTOML)
		}
	}
	return v
}

// withoutAddress removes from a server the members that wrapping a remote server changes, and
// restores the names of its headers.
func withoutAddress(server map[string]any, isTOML bool) {
	if list, ok := server["command"].([]any); ok && len(list) > 0 && server["args"] == nil {
		if program, ok := list[0].(string); ok {
			server["command"], server["args"] = program, list[1:]
		}
		if variables, ok := server["environment"]; ok {
			server["env"] = variables
			delete(server, "environment")
		}
	}
	if _, there := server["bearer_token_env_var"]; isTOML && (there || server["http_headers"] != nil || server["env_http_headers"] != nil || server["env_vars"] != nil) {
		withoutTOMLAddress(server)
		return
	}
	headers := map[string]any{}
	note := func(key, prefix string) (all bool) {
		all = true
		values, _ := server[key].(map[string]any)
		for name, value := range values {
			header, ok := strings.CutPrefix(name, prefix)
			if ok = ok && name != EntryVariable; ok {
				if prefix != "" {
					header = HeaderOf(header)
				}
				headers[header] = value
			}
			all = all && (ok || name == EntryVariable)
		}
		return all
	}
	args, _ := server["args"].([]any)
	at := slices.Index(args, any("--")) + 1
	address := ""
	if at > 0 && at < len(args) {
		address, _ = args[at].(string)
	}
	for _, key := range slices.Sorted(maps.Keys(server)) { // always choose the same of several addresses
		if text, ok := server[key].(string); ok && isAddress(key) && isHTTP(text) {
			note("headers", "")
			delete(server, key)
			delete(server, "headers")
			delete(server, "type")
			server["all headers"], server["address"] = headers, text
			return
		}
	}
	if isHTTP(address) && note("env", HeaderPrefix) {
		delete(server, "env")
		delete(server, "type")
		server["all headers"], server["address"] = headers, address
	}
}

// withoutTOMLAddress is withoutAddress for a Codex server with headers or a token.
func withoutTOMLAddress(server map[string]any) {
	args, _ := server["args"].([]any)
	last := ""
	if len(args) > 0 {
		last, _ = args[len(args)-1].(string)
	}
	if server["url"] == nil && !isHTTP(last) {
		return // a local server that has such keys nevertheless
	}
	headers := map[string]any{}
	for key, prefixes := range map[string][]string{"http_headers": {""}, "env_http_headers": {""}, "env": {HeaderPrefix, EnvHeaderPrefix}} {
		values, _ := server[key].(map[string]any)
		for name, value := range values {
			for _, prefix := range prefixes {
				if variable, ok := strings.CutPrefix(name, prefix); ok && prefix != "" {
					name = HeaderOf(variable)
				}
			}
			headers[name] = value
		}
		delete(server, key)
	}
	if i := slices.Index(args, any(bearerFlag)) + 1; i > 0 && i < len(args) {
		headers["the token"] = args[i]
	}
	if token, ok := server["bearer_token_env_var"]; ok {
		headers["the token"] = token
	}
	if address, ok := server["url"]; ok {
		args = []any{address}
	}
	if server["all headers"] = headers; len(args) > 0 {
		server["address"] = args[len(args)-1]
	}
	for _, key := range []string{"url", "command", "args", "bearer_token_env_var", "env_vars"} {
		delete(server, key)
	}
}

// If a client has reformatted its file since Wrap, Unwrap leaves entries that start the same servers.
func TestUnwrapOfReformattedFile(t *testing.T) {
	for file, data := range corpus(t) {
		if !strings.HasSuffix(file.Path, ".json") {
			continue
		}
		for _, launch := range launches() {
			before := mustRead(t, file, data)
			printed, err := hujson.Format(append(bytes.TrimPrefix(before.Wrap(launch, all).Content, []byte(mark)), '\n'))
			check(t, err)
			wrapped := mustRead(t, file, printed)
			after := mustRead(t, file, wrapped.Unwrap(launch, all).Content)
			if len(after.Entries) != len(before.Entries) {
				t.Fatalf("%s: %d servers, were %d", file.Path, len(after.Entries), len(before.Entries))
			}
			for i, e := range after.Entries {
				if was := before.Entries[i]; e.Command != was.Command || !slices.Equal(e.Args, was.Args) {
					t.Errorf("%s: %s starts %q %q, was %q %q", file.Path, e.Name, e.Command, e.Args, was.Command, was.Args)
				}
			}
			checkRest(t, file, data, wrapped.Unwrap(launch, all).Content)
		}
	}
}

// Unwrapping any wrapped text restores it.
func FuzzUnwrapAfterWrap(f *testing.F) {
	for file, data := range corpus(f) {
		f.Add(strings.HasSuffix(file.Path, ".toml"), data)
	}
	for _, text := range []string{
		"mcp_servers = {s = {command = \"x\"}}", "[mcp_servers.s]\ncommand = \"x\"\nlimit = nan\ndeep = " + strings.Repeat("[", 60) + strings.Repeat("]", 60),
		"[mcp_servers.s.http_headers]\nA = \"b\"\n", "[mcp_servers.s]\nhttp_headers = {}\nargs = [\"--bearer-env\"]\n",
		"mcp_servers.s.command = \"npx\"\nservers.s.args = [\"-y\", \"x\"]\n",
		"[mcp_servers.s]\ncommand = \"npx\"\n\n[servers.s]\ncommand = \"uvx\"\nargs = [\"x\"]\n",
	} {
		f.Add(true, []byte(text))
	}
	for _, entry := range []string{
		`{"command": "x", "timeout": 1e999}`, `{"type": "http", "url": "https://a.example.com/mcp", "args": []}`,
		`{"u\u0072l": "https://x", "type": "http"}`, `{"serverUrl": "https://x", "env_vars": ["A"]}`, `{"url": "https://x", "h\u0065aders": {"A\u002dB": "c"}}`,
	} {
		f.Add(false, []byte(`{"mcpServers": {"s": `+entry+`}}`))
	}
	f.Add(false, []byte(`{"projects": {"p": {"mcpServers": {"s": {"command": "x"}}}}, "mcp": {"no": {},"t": {"type": "local", "command": ["x"]}}}`))
	f.Fuzz(func(t *testing.T, isTOML bool, data []byte) {
		file := mcpclient.File{Path: "x.json"}
		if isTOML {
			file.Path = "x.toml"
		}
		if _, err := Read(file, data); err != nil {
			t.Skip(err)
		}
		checkRoundTrip(t, file, data, launches()[len(data)%len(launches())])
	})
}

var check = testkit.Check
