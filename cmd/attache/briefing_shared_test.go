package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
)

// Five attaches of one session, started at the same time, each in front of a server, brief the model once in
// total. In every other round one of them is killed during its call; it may have been the one to brief.
func TestBriefingOnceASession(t *testing.T) {
	dir := t.TempDir()
	policies := filepath.Join(dir, "acme.yaml")
	attachetest.WriteFile(t, policies, "scope: acme\nobjectives: [Ship]\n")
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "LOCALAPPDATA", "HOME"} {
		t.Setenv(name, dir)
	}
	for round := range 10 {
		kill := round%2 == 1
		session := fmt.Sprint("session-", round)
		given := 0
		for _, client := range crowd(t, dir, session, kill) {
			if bytes.Contains(client.reply, []byte("SESSION CONTEXT")) {
				given++
			}
		}
		if given > 1 || given == 0 && !kill {
			t.Fatalf("round %d: the briefing was given %d times", round, given)
		}
	}
}

// crowd has five clients make a call at the same moment, and returns those that were
// left alive.
func crowd(t *testing.T, policies, session string, kill bool) []*stepProcess {
	t.Helper()
	const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{"workspace":"w"}}}`
	var started, done sync.WaitGroup
	var survivors []*stepProcess
	for i := range 5 {
		c, err := startStepped([]string{"attache", "--session", session, "--policy", policies, "--scope", "acme", "--", "echoserver"})
		check(t, err)
		victim := kill && i == 0
		if !victim {
			survivors = append(survivors, c)
		}
		started.Add(1)
		done.Go(func() {
			err := c.step(">", hello)
			started.Done()
			started.Wait()
			switch {
			case err != nil:
			case victim:
				_, err = fmt.Fprintln(c.stdin, call)
				_ = c.cmd.Process.Kill()
				_ = c.cmd.Wait()
			default:
				err = c.step(">", call)
				_ = c.stdin.Close()
				_ = c.cmd.Wait()
			}
			if err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	done.Wait()
	return survivors
}
