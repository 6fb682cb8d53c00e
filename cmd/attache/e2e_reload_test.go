//go:build e2e

package main_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testReload changes the configuration during a session with a real server, with and without SIGHUP.
func (l *lab) testReload(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal bool
	}{{"SIGHUP", true}, {"watched", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			config := filepath.Join(dir, "config.yaml")
			write := func(text string) { writeFiles(t, dir, map[string]string{"config.yaml": text}) }
			write("access: {rules: []}\n")
			s := l.start(t, append([]string{l.relay, "--config", config, "--"}, l.everything().command...))
			s.initialize(t)
			s.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			echo := `{"jsonrpc":"2.0","id":"echo","method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}`
			s.send(t, echo)
			if got := s.awaitLine(t, `"id":"echo"`); strings.Contains(got, "isError") {
				t.Fatalf("refused without a rule: %s", got)
			}
			write("access: {rules: [{tools: [echo], deny: true}]}\n")
			if c.signal {
				check(t, s.cmd.Process.Signal(syscall.SIGHUP))
			}
			s.awaitLine(t, `"notifications/tools/list_changed"`)
			s.send(t, echo)
			if got := s.awaitLine(t, `"id":"echo"`); !strings.Contains(got, "Permission denied") {
				t.Errorf("not refused by the new rule: %s", got)
			}
		})
	}
}

// awaitLine reads up to a frame that contains text, and returns the frame.
func (s *startedCommand) awaitLine(t *testing.T, text string) string {
	t.Helper()
	timer := time.AfterFunc(maxWait, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	for {
		line, err := s.stdout.ReadString('\n')
		if err != nil {
			t.Fatalf("no frame with %s: %v\n--- stderr\n%s", text, err, s.stderrTail())
		}
		if !json.Valid([]byte(line)) {
			t.Fatalf("stdout has a line that is not JSON: %q", line)
		}
		if strings.Contains(line, text) {
			return line
		}
	}
}
