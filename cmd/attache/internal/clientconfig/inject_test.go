package clientconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
)

// parachute returns the injection of a session's context.
func parachute(session, workspace, trust string) Injection {
	return Injection{Variables: []Variable{
		{"PARACHUTE_SESSION_ID", session}, {"PARACHUTE_WORKSPACE_ID", workspace}, {"PARACHUTE_TRUST_LEVEL", trust},
	}}
}

func TestInject(t *testing.T) {
	out := func(names ...string) func(string) string {
		return func(name string) string {
			if slices.Contains(names, name) {
				return "not for this session"
			}
			return ""
		}
	}
	short := Injection{Variables: []Variable{{"A", "1"}, {"B", "2"}}}
	tests := []struct {
		name     string
		in       Injection
		from, to string
	}{
		{"creates the environment", parachute("sess_123", "ws", "direct"),
			`{"mcpServers": {"test": {"command": "python"}}}`,
			`{"mcpServers": {"test": {"command": "python", "env": {"PARACHUTE_SESSION_ID": "sess_123", "PARACHUTE_WORKSPACE_ID": "ws", "PARACHUTE_TRUST_LEVEL": "direct"}}}}`},
		{"preserves what is in it", parachute("sess_123", "", "sandboxed"),
			`{"mcpServers": {"test": {"command": "python", "env": {"CUSTOM_VAR": "keep_me"}}}}`,
			`{"mcpServers": {"test": {"command": "python", "env": {"CUSTOM_VAR": "keep_me", "PARACHUTE_SESSION_ID": "sess_123", "PARACHUTE_WORKSPACE_ID": "", "PARACHUTE_TRUST_LEVEL": "sandboxed"}}}}`},
		{"no workspace is an empty text", parachute("sess_123", "", "direct"),
			`{"mcpServers":{"test":{"env":{}}}}`,
			`{"mcpServers":{"test":{"env":{"PARACHUTE_SESSION_ID": "sess_123", "PARACHUTE_WORKSPACE_ID": "", "PARACHUTE_TRUST_LEVEL": "direct"}}}}`},
		{"several servers", short,
			`{"mcpServers": {"mcp1": {"command": "python"}, "mcp2": {"command": "node"}}}`,
			`{"mcpServers": {"mcp1": {"command": "python", "env": {"A": "1", "B": "2"}}, "mcp2": {"command": "node", "env": {"A": "1", "B": "2"}}}}`},
		{"does not overwrite context that is there", parachute("sess_123", "", "direct"),
			`{"mcpServers": {"test": {"command": "python", "env": {"PARACHUTE_SESSION_ID": "custom_session"}}}}`,
			`{"mcpServers": {"test": {"command": "python", "env": {"PARACHUTE_SESSION_ID": "custom_session", "PARACHUTE_WORKSPACE_ID": "", "PARACHUTE_TRUST_LEVEL": "direct"}}}}`},

		{"spaced as the file is", short,
			"{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\r\n\t\t\t\"command\": \"x\",\r\n\t\t\t\"env\": {\r\n\t\t\t\t\"K\": \"v\"\r\n\t\t\t}\r\n\t\t}\r\n\t}\r\n}",
			"{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\r\n\t\t\t\"command\": \"x\",\r\n\t\t\t\"env\": {\r\n\t\t\t\t\"K\": \"v\",\r\n\t\t\t\t\"A\": \"1\",\r\n\t\t\t\t\"B\": \"2\"\r\n\t\t\t}\r\n\t\t}\r\n\t}\r\n}"},
		{"comments and a mark", short,
			mark + "// all\n{\"mcpServers\": {\"a\": { /* in */ \"command\": \"x\", /* behind */ }, }, } // end",
			mark + "// all\n{\"mcpServers\": {\"a\": { /* in */ \"command\": \"x\", \"env\": {\"A\": \"1\", \"B\": \"2\"}, /* behind */ }, }, } // end"},
		{"null is no environment", short,
			`{"mcpServers": {"a": {"env": null}, "b": {}}}`,
			`{"mcpServers": {"a": {"env": {"A": "1", "B": "2"}}, "b": {"env": {"A": "1", "B": "2"}}}}`},
		{"quotes what needs it", Injection{Variables: []Variable{{"A", "a\"b\\c\n<é>"}}},
			`{"mcpServers": {"a": {}}}`, `{"mcpServers": {"a": {"env": {"A": "a\"b\\c\n<é>"}}}}`},
		{"remote servers too", short,
			`{"mcpServers": {"a": {"url": "https://example.com"}}}`, `{"mcpServers": {"a": {"url": "https://example.com", "env": {"A": "1", "B": "2"}}}}`},
		{"nothing else is looked at", short,
			`{"servers": {"a": {}}, "mcpServers": {}, "x": {"mcpServers": {"a": {}}}}`, `{"servers": {"a": {}}, "mcpServers": {}, "x": {"mcpServers": {"a": {}}}}`},

		{"first left out", Injection{LeaveOut: out("a")}, `{"mcpServers": { "a": {}, "b": {"env": {}} }}`, `{"mcpServers": { "b": {"env": {}} }}`},
		{"middle left out", Injection{LeaveOut: out("b")}, `{"mcpServers": {"a": {"env": {}}, "b": {}, "c": {"env": {}}}}`, `{"mcpServers": {"a": {"env": {}}, "c": {"env": {}}}}`},
		{"last left out", Injection{LeaveOut: out("b", "c")}, `{"mcpServers": {"a": {"env": {}} , "b": {} , "c": {} }}`, `{"mcpServers": {"a": {"env": {}}  }}`},
		{"last left out, with a comma behind", Injection{LeaveOut: out("b")}, `{"mcpServers": {"a": {"env": {}}, "b": {} , }}`, `{"mcpServers": {"a": {"env": {}}, }}`},
		{"all left out", Injection{LeaveOut: out("a", "b")}, `{"mcpServers": {"a": {}, "b": {},}}`, `{"mcpServers": {}}`},
		{"left out under any spelling", Injection{LeaveOut: out("git")}, `{"mcpServers": {"g\u0069t": {}, "x": {"env": {}}, "git": {}}}`, `{"mcpServers": { "x": {"env": {}}}}`},

		{"overrides in the end", Injection{Variables: short.Variables, Overrides: map[string]map[string]string{"a": {"K": "new", "A": "own", "Z": "added"}, "none": {"Q": "q"}}},
			`{"mcpServers": {"a": {"env": {"K": "old", "B": "kept"}}, "b": {"env": {"K": "old"}}}}`,
			`{"mcpServers": {"a": {"env": {"K": "new", "B": "kept", "A": "own", "Z": "added"}}, "b": {"env": {"K": "old", "A": "1", "B": "2"}}}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kept := strings.Clone(test.from)
			data := []byte(test.from)
			done, err := Inject(data, test.in)
			check(t, err)
			if diff := cmp.Diff(test.to, string(done.Content)); diff != "" {
				t.Error(diff)
			}
			if string(data) != kept {
				t.Error("the content that was read was written to")
			}
			if _, err := hujson.Parse(append(bytes.TrimPrefix(done.Content, []byte(mark)), '\n')); err != nil {
				t.Errorf("no reader can read it: %v", err)
			}
		})
	}
}

func TestInjectRefuses(t *testing.T) {
	for from, want := range map[string]string{
		`{"mcpServers": {"a": {}}`:                      "it is not valid JSON: it ends too early",
		`{"mcpServers": {"a": {"env": {"T": sesame}}}}`: "a value that JSON does not have",
		`[]`:              "it is not an object",
		`{"servers": {}}`: `there is no "mcpServers" in it`,
		"{\"mcpServers\": {},\n\"mcpServers\": {}}":              `line 2: "mcpServers" appears twice`,
		"{\"mcpServers\": {},\n\"mcpSeRvers\": {}}":              `line 2: "mcpSeRvers" is "mcpServers" to readers that do not mind case`,
		"{\"mcpServers\": {\"a\": {\"env\": {},\n\"Env\": {}}}}": `line 2: "Env" is "env" to readers`,
		`{"mcpServers": []}`:                                     `line 1: "mcpServers" is not an object`,
		"{\"mcpServers\": {\n\"a\": 1}}":                         `line 2: the server "a" is not an object`,
		"{\"mcpServers\": {\n\"a\": {\"env\": []}}}":             `line 2: the env of "a" is not an object`,
		"{\"mcpServers\": {\"a\": {\"env\": {},\n\"env\": {}}}}": `line 2: "env" appears twice`,
		"\xff\xfe{\x00":                      "it is in UTF-16: save it as UTF-8",
		"\xfe\xff\x00{":                      "it is in UTF-16: save it as UTF-8",
		"{\n\"mcpServers\": {\"\xff\": {}}}": "line 2: a byte that is not UTF-8",
		`{"mcpServers": ` + strings.Repeat(`{"a":`, 1_000_000):         "nested more than 1000 deep",
		`{"mcpServers": {"a": ` + strings.Repeat("[", 5_000_000) + "}": "nested more than 1000 deep",
	} {
		_, err := Inject([]byte(from), Injection{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %s", from, err, want)
		} else if strings.Contains(err.Error(), "sesame") {
			t.Errorf("the error shows what is in the file: %v", err)
		}
	}
}

// The result names all servers, those that were removed, and the variables that keep another value.
func TestInjectReports(t *testing.T) {
	done, err := Inject([]byte(`{"mcpServers": {"a": {"env": {"A": "1", "B": "own", "C": "own"}}, "b": {}}}`), Injection{
		Variables: []Variable{{"A", "1"}, {"B", "2"}, {"C", "3"}},
		LeaveOut:  func(name string) string { return strings.TrimPrefix(name, "a") },
		Overrides: map[string]map[string]string{"a": {"C": "4"}},
	})
	check(t, err)
	want := InjectResult{Content: done.Content, Servers: []string{"a", "b"}, LeftOut: []OmittedServer{{"b", "b"}}, Kept: []KeptVariable{{"a", "B"}}}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
}

// Sessions that are prepared at the same time do not affect each other.
func TestInjectIsolatesSessions(t *testing.T) {
	data := []byte(`{"mcpServers": {"a": {"command": "x", "env": {"K": "v"}}}}`)
	for i := range 50 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			id := fmt.Sprintf("session-%d", i)
			done, err := Inject(data, parachute(id, "", "direct"))
			check(t, err)
			if n := strings.Count(string(done.Content), "session-"); n != 1 || !strings.Contains(string(done.Content), `"`+id+`"`) {
				t.Errorf("%s", done.Content)
			}
		})
	}
}

// JSON parsers read the injected values correctly, whatever the file looks like.
func FuzzInject(f *testing.F) {
	for file, data := range corpus(f) {
		if strings.HasSuffix(file.Path, ".json") {
			f.Add(data, "value")
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, value string) {
		value = strings.ToValidUTF8(value, "")
		in := Injection{
			Variables: []Variable{{"ATTACHE_A", value}},
			LeaveOut: func(name string) string {
				if len(name)%2 == 0 {
					return "even"
				}
				return ""
			},
		}
		done, err := Inject(data, in)
		if err != nil {
			t.Skip(err)
		}
		var got struct {
			MCPServers map[string]struct{ Env map[string]json.RawMessage }
		}
		plain, err := hujson.Standardize(append(bytes.TrimPrefix(bytes.Clone(done.Content), []byte(mark)), '\n'))
		if err != nil {
			t.Fatalf("no reader can read it: %v\n%s", err, done.Content)
		}
		if err := json.Unmarshal(plain, &got); err != nil {
			t.Fatalf("encoding/json cannot: %v\n%s", err, plain)
		}
		for name, server := range got.MCPServers {
			if len(name)%2 == 0 {
				t.Errorf("%q is not left out", name)
			}
			var v string
			if json.Unmarshal(server.Env["ATTACHE_A"], &v); v != value && done.Kept == nil {
				t.Errorf("%q has the value %q, want %q", name, v, value)
			}
		}
		if again, err := Inject(done.Content, in); err != nil || !bytes.Equal(again.Content, done.Content) {
			t.Errorf("injected twice it is another: %v\n%s\n%s", err, done.Content, again.Content)
		}
	})
}

// manyServers returns a configuration of n servers.
func manyServers(n int) []byte {
	var b bytes.Buffer
	b.WriteString("{\n  \"mcpServers\": {")
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n    \"server-%d\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"@example/server-%d\"],\n      \"env\": {\n        \"TOKEN\": \"secret-%d\"\n      }\n    }", i, i, i)
	}
	b.WriteString("\n  }\n}\n")
	return b.Bytes()
}

// BenchmarkInject measures the time for 10,000 servers. It should be less than 100 ms.
func BenchmarkInject(b *testing.B) {
	data := manyServers(10_000)
	in := parachute("sess_123", "ws", "sandboxed")
	in.LeaveOut = func(name string) string {
		if strings.HasSuffix(name, "7") {
			return "direct alone"
		}
		return ""
	}
	in.Overrides = map[string]map[string]string{"server-1": {"TOKEN": "other"}}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Inject(data, in); err != nil {
			b.Fatal(err)
		}
	}
}
