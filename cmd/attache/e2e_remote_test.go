//go:build e2e

package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// testRemote runs one client against servers over HTTP, directly and through
// "attache -- URL", and compares the results.
func (l *lab) testRemote(t *testing.T) {
	for _, row := range []struct {
		server   string
		start    func(*testing.T) string
		versions []string
		steps    func(*goSession)
	}{
		{"go-sdk stateful", func(t *testing.T) string { return l.goHTTP(t, "-http") }, []string{"2025-11-25", "2025-06-18", "2025-03-26"}, statefulSteps},
		{"go-sdk stateless", func(t *testing.T) string { return l.goHTTP(t, "-http", "-stateless") }, []string{"2026-07-28", "2025-11-25"}, statelessSteps},
		{"server-everything", l.everythingHTTP, []string{"2025-11-25", "2025-06-18"}, everythingRemoteSteps},
	} {
		for _, version := range row.versions {
			t.Run(row.server+"/"+version, func(t *testing.T) {
				t.Parallel()
				direct := l.driveRemote(t, version, &mcp.StreamableClientTransport{Endpoint: row.start(t)}, row.steps)
				requireSame(t, "through attache", direct, l.driveRemote(t, version, l.behindAttache(t, row.start(t)), row.steps))
			})
		}
	}
	t.Run("killed", l.testRemoteKilled)
	// The go-sdk's HTTP client does not get these notifications, so there is nothing to compare with.
	t.Run("notifications", func(t *testing.T) {
		t.Parallel()
		got := l.driveRemote(t, "2025-11-25", l.behindAttache(t, l.goHTTP(t, "-http")), (*goSession).changes)
		if strings.Contains(got, "never came") || strings.Contains(got, `"error"`) {
			t.Error(got)
		}
	})
}

// behindAttache returns a transport through attache to the remote server at the address.
func (l *lab) behindAttache(t *testing.T, address string) mcp.Transport {
	t.Helper()
	command := exec.Command(l.relay, "--", address)
	command.Env = l.env(t)
	var stderr strings.Builder
	command.Stderr = &stderr
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("stderr:\n%s", stderr.String())
		}
	})
	return &mcp.CommandTransport{Command: command, TerminateDuration: 5 * time.Second}
}

// driveRemote runs the steps over a transport and returns the transcript.
func (l *lab) driveRemote(t *testing.T, version string, transport mcp.Transport, steps func(*goSession)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*maxWait)
	defer cancel()
	s := &goSession{ctx: ctx}
	s.wire = &recorder{Transport: transport}
	s.connect(s.wire, version)
	if s.session != nil {
		steps(s)
		_ = s.session.Close()
	}
	if ctx.Err() != nil || s.session == nil {
		t.Fatalf("%v\n%s", ctx.Err(), strings.Join(s.lines, "\n"))
	}
	return normaliseGo(strings.Join(s.lines, "\n") + "\n")
}

func statefulSteps(s *goSession) {
	statelessSteps(s)
	s.ask()
}

func statelessSteps(s *goSession) {
	s.calls()
	s.content()
	s.progress()
	s.step("progress came", nil, s.wire.await(s.ctx, `"recv"`, "notifications/progress", "a token of ours"))
}

func everythingRemoteSteps(s *goSession) {
	s.listTools()
	s.call("echo", map[string]any{"message": "ä € \u2028 <&>"})
	s.call("get-sum", map[string]any{"a": 1, "b": 2.5})
	s.call("get-structured-content", map[string]any{"location": "Chicago"})
	s.call("trigger-sampling-request", map[string]any{"prompt": "write a line"})
	s.call("trigger-elicitation-request", map[string]any{})
	prompt, err := s.session.GetPrompt(s.ctx, &mcp.GetPromptParams{Name: "args-prompt", Arguments: map[string]string{"city": "Bergen"}})
	s.step("prompt", prompt, err)
}

// goHTTP starts the fixture server over HTTP and returns its address.
func (l *lab) goHTTP(t *testing.T, flags ...string) string {
	t.Helper()
	cmd := exec.Command(l.goserver, flags...)
	cmd.Env = l.env(t)
	out, err := cmd.StdoutPipe()
	check(t, err)
	l.startHTTP(t, cmd)
	address, err := bufio.NewReader(out).ReadString('\n')
	check(t, err)
	return strings.TrimSpace(address)
}

// testRemoteKilled kills a remote server and restarts it at the same address. The new server answers a call made
// meanwhile, and the model gets a notice (docs/restart.md).
func (l *lab) testRemoteKilled(t *testing.T) {
	if l.standIn {
		t.Skip("needs attache")
	}
	conformance := l.build(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	for _, row := range []struct {
		name, path, tool string
		command          func(port int) *exec.Cmd
	}{
		{"go-sdk", "", "test_simple_text", func(port int) *exec.Cmd {
			return exec.Command(conformance, "-stateless=false", "-http", fmt.Sprintf("127.0.0.1:%d", port))
		}},
		{"server-everything", "/mcp", "get-tiny-image", func(int) *exec.Cmd { return l.overHTTP() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFiles(t, dir, map[string]string{"attache.yaml": "server: {restart: {hold: 60s}}\n"})
			config := filepath.Join(dir, "attache.yaml")
			port := freePort(t)
			start := func() *exec.Cmd {
				cmd := row.command(port)
				cmd.Env = l.env(t, fmt.Sprintf("PORT=%d", port))
				l.startHTTP(t, cmd)
				return cmd
			}
			server := start()
			awaitHTTP(t, fmt.Sprintf("http://127.0.0.1:%d%s", port, row.path))
			s := l.start(t, l.through([]string{fmt.Sprintf("http://127.0.0.1:%d%s", port, row.path)}, "--config", config))
			timer := time.AfterFunc(2*maxWait, func() { _ = s.cmd.Process.Kill() }) // a call that hangs fails the test
			defer timer.Stop()
			s.initialize(t)
			s.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			s.sendCall(t, 1, row.tool)
			if got := s.answerTo(t, 1); !strings.Contains(got, `"result"`) {
				t.Fatal(got)
			}
			for id := 2; id < 8; id += 3 {
				_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
				_ = server.Wait()
				s.sendCall(t, id, row.tool)
				server = start()
				got := s.answerTo(t, id)
				// The call may have been sent on the connection to the killed server.
				if !strings.Contains(got, `"result"`) && !strings.Contains(got, "may have executed the request") {
					t.Error(got)
				}
				for next := id + 1; next < id+3; next++ {
					s.sendCall(t, next, row.tool)
					got += s.answerTo(t, next)
				}
				if results, notices := strings.Count(got, `"result"`), strings.Count(got, "has lost the session"); results < 2 || notices != 1 {
					t.Errorf("%d results, and the model got %d notices:\n%s", results, notices, got)
				}
			}
		})
	}
}

func (s *startedCommand) sendCall(t *testing.T, id int, tool string) {
	t.Helper()
	s.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, id, tool))
}

// answerTo returns the shortened answer to a call.
func (s *startedCommand) answerTo(t *testing.T, id int) string {
	t.Helper()
	for {
		line, err := s.stdout.ReadString('\n')
		if err != nil {
			t.Fatalf("no answer to %d: %v\n--- stderr\n%s", id, err, s.stderrTail())
		}
		var m struct{ ID, Method any }
		if err := json.Unmarshal([]byte(line), &m); err == nil && m.Method == nil && m.ID == float64(id) {
			return line[:min(len(line), 1000)]
		}
	}
}

// overHTTP returns a command for server-everything over HTTP. Without the preloaded module it would listen on
// every interface.
func (l *lab) overHTTP() *exec.Cmd {
	return exec.Command("node", "--import", filepath.Join(l.scripts, "lib/loopback.mjs"), filepath.Join(l.scripts, "node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// everythingHTTP starts server-everything over HTTP and returns its address.
func (l *lab) everythingHTTP(t *testing.T) string {
	t.Helper()
	port := freePort(t)
	cmd := l.overHTTP()
	cmd.Env = l.env(t, fmt.Sprintf("PORT=%d", port))
	l.startHTTP(t, cmd)
	return awaitHTTP(t, fmt.Sprintf("http://127.0.0.1:%d/mcp", port))
}

// awaitHTTP waits until a server answers at the address, and returns the address.
func awaitHTTP(t *testing.T, address string) string {
	t.Helper()
	for deadline := time.Now().Add(maxWait); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(address)
		if err == nil {
			resp.Body.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func (l *lab) startHTTP(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
}
