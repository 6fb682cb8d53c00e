//go:build e2e

package main_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A step is one line of a transcript: the result of one action of the client.
type step struct {
	Step   string
	Result json.RawMessage
	Error  json.RawMessage
}

// findSteps returns all steps with the name, in order.
func findSteps(t *testing.T, transcript, name string) []step {
	t.Helper()
	var found []step
	for line := range strings.Lines(transcript) {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("not a transcript: %v\n%s", err, line)
		}
		if s.Step == name {
			found = append(found, s)
		}
	}
	return found
}

func findStep(t *testing.T, transcript, name string) step {
	t.Helper()
	found := findSteps(t, transcript, name)
	if len(found) == 0 {
		t.Fatalf("no step %q in\n%s", name, tail(transcript, 4000))
	}
	return found[0]
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatalf("%v in %s", err, a)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return reflect.DeepEqual(x, y)
}

// testFill tests the most common use of attache: git_status without a path uses the session's workspace.
func (l *lab) testFill(t *testing.T) {
	config := filepath.Join(t.TempDir(), "attache.yaml")
	writeFiles(t, filepath.Dir(config), map[string]string{"attache.yaml": `
arguments:
  - {tools: ["git_*"], argument: path, value: session.workspace.path, mode: fill, schema: optional}
`})
	for _, c := range []client{v1, v2Legacy, v2Auto} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := l.git()
			dir := t.TempDir()
			direct := l.drive(t, c, s, dir, "fill", s.command)
			filled := l.drive(t, c, s, dir, "fill", l.through(s.command, "--config", config), "ATTACHE_WORKSPACE="+l.repo)

			var status struct {
				IsError           bool
				StructuredContent struct{ CurrentBranch string }
			}
			got := findStep(t, filled, "call git_status")
			if err := json.Unmarshal(got.Result, &status); err != nil {
				t.Fatalf("%v in %s%s", err, got.Result, got.Error)
			}
			if status.IsError || status.StructuredContent.CurrentBranch != repoBranch {
				t.Errorf("git_status with no path: %s, want the branch %s", got.Result, repoBranch)
			}
			for _, same := range []string{"call git_status with the path", "call a tool that has no path"} {
				if want, got := findStep(t, direct, same), findStep(t, filled, same); !sameJSON(t, want.Result, got.Result) {
					t.Errorf("%s:\n  direct  %s\n  relayed %s", same, want.Result, got.Result)
				}
			}
			requireNotRequired(t, findStep(t, filled, "list tools").Result)
		})
	}
}

// requireNotRequired checks that the path is optional in every tool that has one.
func requireNotRequired(t *testing.T, listed []byte) {
	t.Helper()
	type page struct {
		Tools []struct {
			Name        string
			InputSchema struct {
				Properties map[string]json.RawMessage
				Required   []string
			}
		}
	}
	var pages []page // the v1 driver returns the pages separately
	if err := json.Unmarshal(listed, &pages); err != nil {
		var one page
		check(t, json.Unmarshal(listed, &one))
		pages = []page{one}
	}
	with := 0
	for _, p := range pages {
		for _, tool := range p.Tools {
			if _, ok := tool.InputSchema.Properties["path"]; ok {
				with++
			}
			for _, name := range tool.InputSchema.Required {
				if name == "path" {
					t.Errorf("%s: path is still required", tool.Name)
				}
			}
		}
	}
	if with < 20 {
		t.Errorf("%d tools have a path, want at least 20: with schema: optional it stays in the schema", with)
	}
}

// testBriefing checks that the policies are at the start of a session's first tool response, and nowhere else.
func (l *lab) testBriefing(t *testing.T) {
	policies := t.TempDir()
	writeFiles(t, policies, map[string]string{
		"acme.yaml": `
scope: acme
policies:
  - {name: require-tests, position: prepend, text: "All code changes must include tests."}
objectives:
  - Improve platform reliability
`,
		"platform.yaml": `
scope: acme/platform
parent: acme
policies:
  - {name: security-review, position: append, text: "Flag any credential handling for review."}
objectives:
  - Reduce deployment time to under 5 minutes
`})
	flags := []string{"--policy", policies, "--scope", "acme/platform"}
	for _, row := range []struct {
		server  server
		clients []client
	}{
		{l.everything(), []client{v1, v2Legacy, v2Auto}},
		{l.dual(), []client{v1, v2Legacy, v2Auto, v2Pin}},
		{l.gosdk(), []client{v1, v2Legacy, v2Auto, v2Pin}},
	} {
		for _, c := range row.clients {
			t.Run(row.server.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				direct := l.drive(t, c, row.server, dir, "briefing", row.server.command)
				briefed := l.drive(t, c, row.server, dir, "briefing", l.through(row.server.command, flags...))
				requireBriefing(t, findSteps(t, direct, "call echo"), findSteps(t, briefed, "call echo"))
				if a, b := findStep(t, direct, "list tools"), findStep(t, briefed, "list tools"); !sameJSON(t, a.Result, b.Result) {
					t.Errorf("tools/list changed:\n  direct  %s\n  relayed %s", a.Result, b.Result)
				}
			})
		}
	}
	t.Run("chained", func(t *testing.T) {
		t.Parallel()
		s := l.dual()
		direct := l.drive(t, v1, s, t.TempDir(), "briefing", s.command)
		briefed := l.drive(t, v1, s, t.TempDir(), "briefing", l.through(l.through(s.command, flags...), flags...))
		requireBriefing(t, findSteps(t, direct, "call echo"), findSteps(t, briefed, "call echo"))
	})
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
		for _, s := range []server{l.dual(), l.gosdk()} {
			t.Run(s.name+"/go-"+version, func(t *testing.T) {
				t.Parallel()
				direct := l.driveGo(t, version, s.command, briefingSteps)
				briefed := l.driveGo(t, version, l.through(s.command, flags...), briefingSteps)
				requireBriefing(t, findSteps(t, direct, "call echo"), findSteps(t, briefed, "call echo"))
			})
		}
	}
}

// requireBriefing compares a session's tool responses with and without attache: the first has one more block
// at its start, and the others are the same.
func requireBriefing(t *testing.T, direct, briefed []step) {
	t.Helper()
	if len(direct) != 2 || len(briefed) != 2 {
		t.Fatalf("%d and %d calls of echo, want two", len(direct), len(briefed))
	}
	if !sameJSON(t, direct[1].Result, briefed[1].Result) {
		t.Errorf("second result:\n  direct  %s\n  relayed %s", direct[1].Result, briefed[1].Result)
	}
	var without, with map[string]any
	for into, from := range map[*map[string]any]json.RawMessage{&without: direct[0].Result, &with: briefed[0].Result} {
		if err := json.Unmarshal(from, into); err != nil {
			t.Fatalf("%v in %s", err, from)
		}
	}
	content, _ := with["content"].([]any)
	if len(content) != 2 {
		t.Fatalf("first result has %d blocks, want the briefing and the server's one: %s", len(content), briefed[0].Result)
	}
	block, _ := content[0].(map[string]any)
	text, _ := block["text"].(string)
	for _, want := range []string{
		"SESSION CONTEXT (auto-injected)",
		"[prepend] require-tests: All code changes must include tests. (inherited)",
		"[append] security-review: Flag any credential handling for review. (local)",
		"- Improve platform reliability",
		"- Reduce deployment time to under 5 minutes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the briefing does not contain %q:\n%s", want, text)
		}
	}
	annotations, _ := block["annotations"].(map[string]any)
	if !reflect.DeepEqual(annotations["audience"], []any{"assistant"}) {
		t.Errorf("the briefing's annotations are %v, want the assistant as the audience", annotations)
	}
	with["content"] = content[1:]
	if !reflect.DeepEqual(with, without) {
		t.Errorf("the first result has another change than the briefing:\n  direct  %s\n  relayed %s", direct[0].Result, briefed[0].Result)
	}
}

// testEnvironment compares the environment of a server with and without attache: it gets the session's facts,
// but not the credential.
func (l *lab) testEnvironment(t *testing.T) {
	const key = "atk_e2e_0123456789abcdefghijABCDEFGHIJ01"
	s := l.everything()
	variables := func(transcript string) map[string]string {
		var result struct{ Content []struct{ Text string } }
		check(t, json.Unmarshal(findStep(t, transcript, "call get-env").Result, &result))
		var env map[string]string
		check(t, json.Unmarshal([]byte(result.Content[len(result.Content)-1].Text), &env))
		delete(env, "E2E_MARK")
		return env
	}
	direct := variables(l.drive(t, v1, s, t.TempDir(), "environment", s.command))
	got := variables(l.drive(t, v1, s, t.TempDir(), "environment", l.through(s.command),
		"ATTACHE_WORKSPACE="+l.repo, "ATTACHE_SESSION_ID=session-of-the-test", "ATTACHE_TRUST=sandboxed", "ATTACHE_API_KEY="+key))
	for name, want := range map[string]string{
		"ATTACHE_SESSION_ID":     "session-of-the-test",
		"ATTACHE_WORKSPACE_PATH": l.repo,
		"ATTACHE_TRUST_LEVEL":    "sandboxed",
	} {
		if got[name] != want {
			t.Errorf("%s=%q, want %q", name, got[name], want)
		}
	}
	for name, value := range got {
		if strings.Contains(value, key) {
			t.Errorf("the API key reached the server in %s", name)
		}
		if want, ok := direct[name]; (!ok || want != value) && !strings.HasPrefix(name, "ATTACHE_") {
			t.Errorf("%s=%q, which is %q without attache", name, value, want)
		}
	}
	for name := range direct {
		if _, ok := got[name]; !ok {
			t.Errorf("%s did not reach the server", name)
		}
	}
}
