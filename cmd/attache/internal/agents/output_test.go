//go:build unix

package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The output of agents' programs becomes a result. Output in another format becomes its text.
func TestResult(t *testing.T) {
	for _, test := range []struct {
		name, form, text string
		want             result
	}{
		{"claude", claudeJSON, `{"result":"done","is_error":false,"total_cost_usd":0.031200000000000002}` + "\n", result{text: "done", cost: "0.0312"}},
		{"claude, next to nothing", claudeJSON, `{"result":"done","total_cost_usd":0.000047999999999999994}`, result{text: "done", cost: "0.000048"}},
		{"claude, failed", claudeJSON, `{"result":"no","is_error":true}`, result{text: "no", failed: true}},
		{"claude, out of budget", claudeJSON, `{"subtype":"error_max_budget_usd","errors":["Reached maximum budget ($2)"],"is_error":true,"total_cost_usd":2.5}`, result{text: "Reached maximum budget ($2)", cost: "2.5", failed: true}},
		{"claude, older", claudeJSON, `{"subtype":"error_during_execution","is_error":false,"total_cost_usd":0.1,"errors":[{"code":1}]}`, result{text: "map[code:1]", cost: "0.1", failed: true}},
		{"claude, two errors", claudeJSON, `{"type":"result","is_error":true,"errors":["one","two"]}`, result{text: "one\ntwo", failed: true}},
		{"claude, failed without a reason", claudeJSON, `{"subtype":"error_during_execution","is_error":true,"total_cost_usd":0.1}`, result{text: "error_during_execution", cost: "0.1", failed: true}},
		{"claude, verbose", claudeJSON, `[{"type":"system","tools":[]},{"type":"assistant","error":"no"},{"type":"result","result":"done","total_cost_usd":0.5},{"type":"system"}]`, result{text: "done", cost: "0.5"}},
		{"claude, verbose, failed", claudeJSON, `[{"type":"result","result":"no","is_error":true}]`, result{text: "no", failed: true}},
		{"claude, an array without a result", claudeJSON, `[{"type":"system"},1]`, result{text: `[{"type":"system"},1]`}},
		{"claude, other JSON", claudeJSON, `{"answer":42}`, result{text: `{"answer":42}`}},
		{"claude, other", claudeJSON, "Usage: claude\n", result{text: "Usage: claude"}},
		{"gemini", geminiJSON, `{"response":"done","stats":{}}`, result{text: "done"}},
		{"claude, another type of error", claudeJSON, `{"result":"done","is_error":"no"}`, result{text: `{"result":"done","is_error":"no"}`}},
		{"claude, another type of errors", claudeJSON, `{"subtype":"error_x","errors":"no"}`, result{text: `{"subtype":"error_x","errors":"no"}`}},
		{"gemini, another type of error", geminiJSON, `{"response":"done","error":"no"}`, result{text: `{"response":"done","error":"no"}`}},
		{"gemini, another type of message", geminiJSON, `{"error":{"message":5}}`, result{text: `{"error":{"message":5}}`}},
		{"gemini, other JSON", geminiJSON, `{"answer":42}`, result{text: `{"answer":42}`}},
		{"codex, reasoning", codexJSONL, `{"type":"item.completed","item":{"type":"agent_message","text":"done"}}` + "\n" + `{"type":"item.completed","item":{"type":"reasoning","text":"why"}}`, result{text: "done"}},
		{"gemini, failed", geminiJSON, `{"error":{"message":"no key"}}`, result{text: "no key", failed: true}},
		{"codex", codexJSONL, `{"type":"thread.started","thread_id":"t"}` + "\n" + `{"type":"item.completed","item":{"type":"agent_message","text":"done"}}` + "\n" + `{"type":"turn.completed"}`, result{text: "done"}},
		{"codex, killed while it had no network", codexJSONL, `{"type":"turn.started"}` + "\n" + `{"type":"error","message":"Reconnecting... waiting for network"}`, result{text: "Reconnecting... waiting for network"}},
		{"codex, after an error", codexJSONL, `{"type":"error","message":"Reconnecting... 1/5"}` + "\n" + `{"type":"item.completed","item":{"type":"agent_message","text":"done"}}`, result{text: "done"}},
		{"codex, failed", codexJSONL, `{"type":"turn.failed","error":{"message":"no"}}`, result{text: "no", failed: true}},
		{"codex, a long answer", codexJSONL, `{"type":"item.completed","item":{"type":"agent_message","text":"` + strings.Repeat("x", 100<<10) + `"}}`, result{text: strings.Repeat("x", 100<<10)}},
		{"codex, killed while it answered", codexJSONL, `{"type":"item.updated","item":{"type":"agent_message","text":"do"}}`, result{}},
		{"codex, after a failed turn", codexJSONL, `{"type":"turn.failed","error":{"message":"no"}}` + "\n" + `{"type":"item.completed","item":{"type":"agent_message","text":"done"}}` + "\n" + `{"type":"turn.completed"}`, result{text: "done"}},
		{"codex, after an error without an answer", codexJSONL, `{"type":"error","message":"Reconnecting... 1/5"}` + "\n" + `{"type":"turn.completed"}`, result{}},
		{"codex, another message", codexJSONL, `{"type":"notice","message":"old"}`, result{}},
		{"text like claude's", "text", `{"result":"done"}`, result{text: `{"result":"done"}`}},
		{"text like claude's, failed", "text", `{"subtype":"error"}`, result{text: `{"subtype":"error"}`}},
		{"text like claude's, verbose", "text", `[{"type":"result"}]`, result{text: `[{"type":"result"}]`}},
		{"text like gemini's", "text", `{"response":"done"}`, result{text: `{"response":"done"}`}},
		{"text like gemini's, failed", "text", `{"error":{"message":"no"}}`, result{text: `{"error":{"message":"no"}}`}},
		{"text", "text", " done\xff\n", result{text: "done\ufffd"}},
		{"nothing", claudeJSON, "", result{}},
	} {
		o, err := newOutput(filepath.Join(t.TempDir(), "out"))
		if err == nil {
			_, err = o.Write([]byte(test.text))
		}
		check(t, err)
		if got := o.result(test.form); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
		_ = o.file.Close()
	}
}

// Codex writes the id of its thread to stdout.
func TestFindThread(t *testing.T) {
	const line = `{"type":"thread.started","thread_id":"t1"}` + "\n"
	for text, want := range map[string]string{
		line: "t1",
		"a warning\n{\"type\":\"turn.started\"}\n" + line:        "t1",
		`{"type":"thread.started"}` + "\n":                       "",
		`{"type":"turn.started","thread_id":"t0"}` + "\n" + line: "t1",
		strings.Repeat("x", 2*maxThreadLine) + "\n" + line:       "",
		"": "",
	} {
		if got := findThread(strings.NewReader(text)); got != want {
			t.Errorf("%.50s: the thread is %q, want %q", text, got, want)
		}
	}
}

// When a run begins, old outputs of other sessions are removed. Spooled ends are not.
func TestBeginRun(t *testing.T) {
	outputs := t.TempDir()
	old := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"s_new", "s_old", "s_resumed", spoolName} {
		dir := filepath.Join(outputs, name)
		check(t, os.Mkdir(dir, 0o700))
		if name == "s_new" {
			continue
		}
		check(t, os.Chtimes(dir, old, old))
	}
	dir, err := beginRun(outputs, "s_resumed", 24*time.Hour)
	check(t, err)
	if dir != filepath.Join(outputs, "s_resumed") {
		t.Errorf("the directory is %s", dir)
	}
	var left []string
	entries, err := os.ReadDir(outputs)
	check(t, err)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"s_new", "s_resumed", spoolName}; !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
}

// The file contains only the beginning of a long output, and the agent sees no error.
func TestOutputIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	o, err := newOutput(path)
	check(t, err)
	defer o.file.Close()
	for range 3 {
		if n, err := o.Write(make([]byte, maxOutput/2+1)); n != maxOutput/2+1 || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() != maxOutput || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
}

// If the output cannot be kept, the result says so: an agent may have written its answer there.
func TestOutputIsLost(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	db := openRegistry(t, dir, 0)
	parent, child := createAgent(t, db, db)
	check(t, os.MkdirAll(filepath.Join(dir, child.ID), 0o700))
	check(t, os.Symlink("/dev/full", filepath.Join(dir, child.ID, "run-1.out")))
	check(t, supervise(t, dir, child, order{Argv: []string{"echo", "the answer"}}))
	if got := onlyMessage(t, db, parent); !strings.Contains(got, "(exit status 0, its output is incomplete: no space left on device)") {
		t.Errorf("the parent was told %.200q", got)
	}
}

// If the output is longer than what is kept of it, the result says so: the agent writes its answer last.
func TestOutputIsCut(t *testing.T) {
	dir := t.TempDir()
	db := openRegistry(t, dir, 0)
	parent, child := createAgent(t, db, db)
	const script = `echo '{"type":"item.completed","item":{"type":"agent_message","text":"I begin"}}'; head -c 10485760 /dev/zero; echo`
	check(t, supervise(t, dir, child, order{Argv: []string{"sh", "-c", script}, Result: codexJSONL}))
	if got := onlyMessage(t, db, parent); !strings.Contains(got, "(exit status 0, its output is incomplete: only its first 10 MiB are kept)") {
		t.Errorf("the parent was told %.200q", got)
	}
}
