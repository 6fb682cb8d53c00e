package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// ratesConfig has a rate whose tokens do not return while a test runs.
const ratesConfig = `store: {url: %q}
rates: {down: %s}
access: {rates: [{tools: ["*"], per: tenant, limit: 10/day}]}
`

// The answers of a process to a call.
const (
	passed    = "passed"
	limited   = "Rate limit reached"
	uncertain = "cannot be checked"
)

// Two processes that share a database have one common limit, also when one of them is killed. While the
// database is down, rates.down decides.
func TestRatesOfTwoProcesses(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	dir, url := t.TempDir(), cluster.Database()
	for _, down := range []string{"closed", "share"} {
		attachetest.WriteFile(t, filepath.Join(dir, down+".yaml"), fmt.Sprintf(ratesConfig, url, down))
	}
	withStore(t, filepath.Join(dir, "closed.yaml"), "store", "migrate")

	one, two := startRated(t, dir, "closed"), startRated(t, dir, "closed")
	lost := 0 // loans whose answer was too late on a busy machine
	call := func(c *stepProcess) string {
		t.Helper()
		for {
			switch got := callRated(t, c); got {
			case uncertain:
				lost++
			default:
				return got
			}
		}
	}
	for range 2 {
		for _, c := range []*stepProcess{one, two} {
			if got := call(c); got != passed {
				t.Fatalf("a call under the limit: %s", got)
			}
		}
	}
	_ = one.cmd.Process.Kill()
	_ = one.cmd.Wait()
	three := startRated(t, dir, "closed")
	total := 4
	for open := []*stepProcess{two, three}; len(open) > 0; {
		c := open[0]
		open = open[1:]
		if call(c) == passed {
			total++
			open = append(open, c)
		}
	}
	if total > 10 || total+lost < 10 {
		t.Errorf("%d calls were allowed, want 10 (%d answers of the database came too late)", total, lost)
	}

	cluster.Kill()
	if got := callRated(t, startRated(t, dir, "closed")); got != uncertain {
		t.Errorf("rates.down closed, while the database is away: %s", got)
	}
	alone := startRated(t, dir, "share")
	for i := range 11 {
		if got := callRated(t, alone); got != passed && i < 10 || got != limited && i == 10 {
			t.Errorf("rates.down share, call %d while the database is away: %s", i+1, got)
		}
	}
}

// startRated starts a process that ends with the test.
func startRated(t *testing.T, dir, config string) *stepProcess {
	t.Helper()
	c, err := startStepped([]string{"attache", "--config", filepath.Join(dir, config+".yaml"), "--", "echoserver"})
	check(t, err)
	t.Cleanup(func() {
		_ = c.stdin.Close()
		_ = c.cmd.Wait()
	})
	check(t, c.step(">", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
	return c
}

// callRated makes a call, and returns which of the three answers it got.
func callRated(t *testing.T, c *stepProcess) string {
	t.Helper()
	check(t, c.step(">", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{"workspace":"w"}}}`))
	for _, text := range []string{limited, uncertain} {
		if bytes.Contains(c.reply, []byte(text)) {
			return text
		}
	}
	if bytes.Contains(c.reply, []byte(`"isError":true`)) {
		t.Fatalf("the answer is %s", c.reply)
	}
	return passed
}
