//go:build e2e

package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serve starts attache as a front of the server, on a port of the loopback interface that is
// free, and returns its URL. When the test ends the front has to leave with everything that
// it has started.
func (l *lab) serve(t *testing.T, server []string, flags ...string) string {
	t.Helper()
	command := slices.Concat([]string{l.relay, "serve", "--log-format", "json", "--listen", "127.0.0.1:0"}, flags, []string{"--"}, server)
	stderr := l.background(t, command, 0)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var line struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			go io.Copy(io.Discard, stderr)
			return line.URL
		}
		t.Logf("attache serve: %s", lines.Bytes())
	}
	t.Fatalf("%s: ended before it served", strings.Join(command, " "))
	return ""
}

// listen starts a server that is told where to listen, and returns its address once it does.
func (l *lab) listen(t *testing.T, command func(address string) []string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	stderr := l.background(t, command(address), -1)
	go io.Copy(io.Discard, stderr)
	for range 500 {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return address
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%v does not listen", command(address))
	return ""
}

// background starts a program and returns its stderr. The test's end has SIGTERM sent to it
// and waits until it and its children have left. It has to exit with this status, unless that
// is -1, the status of a program that does not handle the signal.
func (l *lab) background(t *testing.T, command []string, status int) io.Reader {
	t.Helper()
	mark := newMark()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = l.scripts
	cmd.Env = l.env(t, mark.variable())
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // its status is looked at below
		kill.Stop()
		if got := cmd.ProcessState.ExitCode(); got != status {
			t.Errorf("%s: exit status %d after SIGTERM, want %d", command[0], got, status)
		}
		if left := mark.gone(5 * time.Second); len(left) > 0 {
			t.Errorf("still running after %s has left:\n%s", command[0], strings.Join(left, "\n"))
		}
	})
	return stderr
}

// localhost returns the URL with the name in place of the address, as the check for DNS
// rebinding wants it.
func localhost(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }

// httpServer starts go-sdk's everything-server over HTTP and returns its URL.
func (l *lab) httpServer(t *testing.T, program string, stateless bool) string {
	return "http://" + l.listen(t, func(address string) []string {
		return []string{program, "-http", address, fmt.Sprintf("-stateless=%t", stateless)}
	})
}

// testChain has an attache over stdio use an attache that serves, both with the same rules: the
// session is briefed once, and what the first has filled in the second leaves alone.
func (l *lab) testChain(t *testing.T) {
	if l.standIn {
		t.Skip("needs attache")
	}
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir, copies := t.TempDir(), t.TempDir()
			writeFiles(t, dir, map[string]string{
				"policies/acme.yaml": "scope: acme\nobjectives: [" + briefed + "]\n",
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
					briefings += strings.Count(line, briefed)
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
