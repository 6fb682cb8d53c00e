//go:build e2e

package main_test

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve starts attache serve in front of a server and returns its URL. At the end of the test it checks that
// the front and all its processes end.
func (l *lab) serve(t *testing.T, server []string, flags ...string) string {
	t.Helper()
	f := l.startFront(t, server, flags...)
	t.Cleanup(func() { f.end(t) })
	return f.url
}

// listen starts a server on a free address, waits until it listens, and returns the address.
func (l *lab) listen(t *testing.T, command func(address string) []string) string {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	start := command(address)
	cmd := exec.Command(start[0], start[1:]...)
	cmd.Env = l.env(t)
	l.startHTTP(t, cmd)
	for end := time.Now().Add(maxWait); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return address
		}
	}
	t.Fatalf("%v does not listen", command(address))
	return ""
}

// localhost replaces the address in a URL with localhost, for the suite's test of DNS rebinding.
func localhost(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }

// httpServer starts the go-sdk everything-server over HTTP and returns its URL.
func (l *lab) httpServer(t *testing.T, program string, stateless bool) string {
	return "http://" + l.listen(t, func(address string) []string {
		return []string{program, "-http", address, fmt.Sprintf("-stateless=%t", stateless)}
	})
}

// testChain connects an attache over stdio to attache serve, both with the same rules: the session is briefed
// once, and the second attache does not change an argument that the first has filled.
func (l *lab) testChain(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir, copies := t.TempDir(), t.TempDir()
			writeFiles(t, dir, map[string]string{
				"policies/acme.yaml": "scope: acme\nobjectives: [" + briefingText + "]\n",
				"attache.yaml": `
policy: {dir: policies, scope: acme}
arguments: [{tools: [echo], argument: text, value: session.workspace.path}]
`})
			config := filepath.Join(dir, "attache.yaml")
			url := l.serve(t, []string{l.tee, copies, "server", l.goserver}, "--config", config, "--workspace", "/src/served")
			command := l.through([]string{url}, "--config", config, "--workspace", "/src/shop")
			briefings := 0
			l.driveGo(t, version, command, func(s *goSession) {
				s.listTools()
				for range 3 {
					s.call("echo", map[string]any{})
					line := s.lines[len(s.lines)-1]
					briefings += strings.Count(line, briefingText)
					if !strings.Contains(line, "echo: /src/shop") {
						t.Errorf("not filled by the first attache: %s", line)
					}
				}
			})
			if briefings != 1 {
				t.Errorf("%d briefings, want 1", briefings)
			}
			for _, in := range recordings(t, copies, "server", "in") {
				if strings.Contains(in, "/src/served") {
					t.Errorf("filled by the second attache:\n%s", in)
				}
			}
		})
	}
}
