//go:build e2e

package main_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// testServe puts attache serve in front of stdio servers, and checks that clients over Streamable HTTP see the
// same as clients of the server itself over stdio.
func (l *lab) testServe(t *testing.T) {
	fixture := []string{"handshake", "tools", "content", "ask", "progress", "large"}
	for _, row := range []struct {
		server    server
		clients   []client
		scenarios []string
	}{
		{l.everything(), []client{v1}, []string{"handshake", "tools", "resources", "prompts", "completion", "sampling", "elicitation", "roots", "progress"}},
		{l.everything(), []client{v2Legacy, v2Auto}, []string{"handshake", "tools"}},
		{l.dual(), []client{v1, v2Auto, v2Pin}, fixture},
		{l.gosdk(), []client{v1, v2Pin}, []string{"tools", "ask"}},
		{l.git(), []client{v1}, []string{"survey"}},
	} {
		for _, c := range row.clients {
			t.Run(row.server.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				l.compareServed(t, c, row.server, row.scenarios)
			})
		}
	}
	for _, row := range []struct {
		server    server
		start     func(*testing.T) string // starts it over HTTP
		client    client
		scenarios []string
	}{
		{l.everything(), l.everythingHTTP, v1, []string{"tools", "resources", "prompts", "sampling", "elicitation", "roots", "progress"}},
		{l.gosdk(), func(t *testing.T) string { return l.goHTTP(t, "-http") }, v1, []string{"tools", "ask"}},
		{l.gosdk(), func(t *testing.T) string { return l.goHTTP(t, "-http", "-stateless") }, v2Pin, []string{"tools", "ask"}},
	} {
		t.Run("HTTP/"+row.server.name+"/"+row.client.name, func(t *testing.T) {
			t.Parallel()
			drive := func(address string) []string {
				return l.driveAll(t, row.client, row.server, t.TempDir(), row.scenarios, []string{address}, "E2E_UNORDERED=1")
			}
			direct := drive(row.start(t))
			f := l.startFront(t, []string{row.start(t)})
			served := drive(f.url)
			f.end(t)
			for i, scenario := range row.scenarios {
				requireSame(t, scenario+" through attache", withoutProcess(direct[i]), withoutProcess(served[i]))
			}
		})
	}
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
		t.Run("go/"+version, func(t *testing.T) { l.compareServedGo(t, version) })
	}
	t.Run("drain", l.testServeDrain)
}

// compareServed runs scenarios over stdio and over HTTP.
func (l *lab) compareServed(t *testing.T, c client, s server, scenarios []string) {
	dir := t.TempDir()
	direct := l.driveAll(t, c, s, dir, scenarios, s.command, "E2E_UNORDERED=1")
	config := filepath.Join(dir, "front.yaml")
	writeFiles(t, dir, map[string]string{"front.yaml": "serve: {limits: {body: 16MiB}}\n"})
	f := l.startFront(t, s.command, "--config", config)
	served := l.driveAll(t, c, s, dir, scenarios, []string{f.url}, "E2E_UNORDERED=1")
	f.end(t)
	for i, scenario := range scenarios {
		requireSame(t, scenario+" over HTTP", withoutProcess(direct[i]), withoutProcess(served[i]))
	}
}

// withoutProcess removes the lines that depend on a process from a transcript: its exit, and the probe, which
// uses a separate, unrecorded process over stdio.
func withoutProcess(transcript string) string {
	lines := slices.DeleteFunc(strings.Split(transcript, "\n"), func(line string) bool {
		return strings.HasPrefix(line, `{"exit":`) || strings.Contains(line, `"id":"server-discover-probe-`)
	})
	return strings.TrimSuffix(strings.Join(lines, "\n"), "\n")
}

// compareServedGo is compareServed with the go-sdk client.
func (l *lab) compareServedGo(t *testing.T, version string) {
	command := l.gosdk().command
	run := func(transport mcp.Transport) string {
		ctx, cancel := context.WithTimeout(t.Context(), 2*maxWait)
		defer cancel()
		g := &goSession{ctx: ctx}
		if g.connect(transport, version); g.session == nil {
			t.Fatal(g.lines)
		}
		g.listTools()
		g.call("echo", map[string]any{"text": "ä <b>"})
		g.content()
		g.ask()
		if err := g.session.Close(); err != nil {
			t.Error(err)
		}
		return normaliseGo(strings.Join(g.lines, "\n"))
	}
	direct := run(&mcp.CommandTransport{Command: exec.Command(command[0])})
	f := l.startFront(t, command)
	served := run(&mcp.StreamableClientTransport{Endpoint: f.url})
	f.end(t)
	requireSame(t, "over HTTP", direct, served)
}

// A runningFront is a running attache serve.
type runningFront struct {
	url  string
	cmd  *exec.Cmd
	mark mark

	mu  sync.Mutex
	log strings.Builder // guarded by mu
}

var servedURL = regexp.MustCompile(`url=(http://\S+)`)

// startFront starts attache serve in front of a server, and returns when it listens.
func (l *lab) startFront(t *testing.T, server []string, flags ...string) *runningFront {
	t.Helper()
	f := &runningFront{mark: newMark()}
	if !slices.Contains(flags, "--listen") {
		flags = append([]string{"--listen", "127.0.0.1:0"}, flags...)
	}
	args := slices.Concat([]string{"serve"}, flags, []string{"--"}, server)
	f.cmd = exec.Command(l.relay, args...)
	f.cmd.Dir = l.scripts
	f.cmd.Env = l.env(t, f.mark.variable())
	stderr, err := f.cmd.StderrPipe()
	check(t, err)
	check(t, f.cmd.Start())
	t.Cleanup(func() { _ = f.cmd.Process.Kill() })
	lines := bufio.NewScanner(stderr)
	for f.url == "" && lines.Scan() {
		f.note(lines.Text())
		if m := servedURL.FindStringSubmatch(lines.Text()); m != nil {
			f.url = m[1]
		}
	}
	if f.url == "" {
		t.Fatalf("attache does not listen:\n%s", f.log.String())
	}
	go func() {
		for lines.Scan() {
			f.note(lines.Text())
		}
		_, _ = io.Copy(io.Discard, stderr)
	}()
	return f
}

func (f *runningFront) note(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log.WriteString(line + "\n")
}

func (f *runningFront) logged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return tail(f.log.String(), 4000)
}

// end stops the front with SIGTERM and checks that no process is left.
func (f *runningFront) end(t *testing.T) {
	t.Helper()
	if err := f.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	err := f.cmd.Wait()
	if alive := f.mark.gone(maxWait); err != nil || len(alive) > 0 {
		t.Errorf("attache serve ended with %v; still running: %v\n%s", err, alive, f.logged())
	}
}

// testServeDrain stops a front during a call, and kills another.
func (l *lab) testServeDrain(t *testing.T) {
	f := l.startFront(t, l.everything().command)
	post := func(session, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, f.url, strings.NewReader(body))
		check(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(r)
		check(t, err)
		return resp
	}
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	first := post("", initialize)
	session := first.Header.Get("Mcp-Session-Id")
	if _, err := io.Copy(io.Discard, first.Body); err != nil { // a client that disconnects before that has no session
		t.Fatal(err)
	}
	_ = post(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
	// The first progress shows that the call is running; then the front is stopped.
	call := post(session, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"trigger-long-running-operation","arguments":{"duration":2,"steps":4},"_meta":{"progressToken":1}}}`)
	events := bufio.NewReader(call.Body)
	for line, all := "", ""; !strings.Contains(line, `"progress":1`); {
		var err error
		if line, err = events.ReadString('\n'); err != nil {
			t.Fatalf("%s: %v\n%s%s\n%s", call.Status, err, all, line, f.logged())
		}
		all += line
	}
	check(t, f.cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(events)
	if err != nil || !strings.Contains(string(rest), `"id":1`) || !strings.Contains(string(rest), `"result"`) {
		t.Errorf("the call was not answered: %v\n%s", err, rest)
	}
	if err := f.cmd.Wait(); err != nil {
		t.Error(err)
	}
	f.mark.requireGone(t, "the drain")

	f = l.startFront(t, l.everything().command)
	second := post("", initialize)
	if _, err := io.Copy(io.Discard, second.Body); err != nil {
		t.Fatal(err)
	}
	if len(f.mark.alive()) < 2 {
		t.Error("the server is not running")
	}
	_ = f.cmd.Process.Kill()
	_ = f.cmd.Wait()
	f.mark.requireGone(t, "SIGKILL")
}
