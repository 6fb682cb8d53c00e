//go:build e2e

package main_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// testStructured tests the briefing in structuredContent for all tools of real servers, with clients that
// validate it against the output schema from tools/list.
func (l *lab) testStructured(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"policies/acme.yaml": "scope: acme\nobjectives: [" + briefingText + "]\n",
		"attache.yaml":       "policy: {dir: policies, scope: acme}\nbriefing: {structured: member}\n",
	})
	for _, c := range []client{v1, v2Auto} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			briefings := 0
			files, state := t.TempDir(), t.TempDir() // the clients' conversations have the same names
			for _, s := range []server{l.memory(), l.filesystem(files), l.git()} {
				// The git server changes the repository's index.
				repo := l.newRepoAt(t, filepath.Join(t.TempDir(), "repo"))
				transcript := l.drive(t, c, s, t.TempDir(), "structured", l.through(s.command, "--config", filepath.Join(dir, "attache.yaml")), "E2E_REPO="+repo, "XDG_STATE_HOME="+state)
				briefings += countBriefings(t, s.name, transcript)
			}
			if briefings < 40 {
				t.Errorf("%d results had the briefing in structuredContent, want 40", briefings)
			}
		})
	}
}

// countBriefings checks that each call succeeds and has the briefing in structuredContent, and returns the
// number of briefings.
func countBriefings(t *testing.T, server, transcript string) int {
	t.Helper()
	briefings := 0
	for line := range strings.Lines(transcript) {
		var s step
		if json.Unmarshal([]byte(line), &s) != nil || !strings.HasPrefix(s.Step, "call ") {
			continue
		}
		var result struct {
			IsError           bool
			StructuredContent struct {
				SessionContext string `json:"session_context"`
			}
		}
		switch {
		case s.Error != nil:
			t.Errorf("%s, %s: the client refused the result: %s", server, s.Step, s.Error)
		case json.Unmarshal(s.Result, &result) != nil || result.IsError:
			t.Errorf("%s, %s failed: %s", server, s.Step, cut(string(s.Result), 0))
		case strings.Contains(result.StructuredContent.SessionContext, briefingText):
			briefings++
		default:
			t.Errorf("%s, %s has no briefing: %s", server, s.Step, cut(string(s.Result), 0))
		}
	}
	return briefings
}
