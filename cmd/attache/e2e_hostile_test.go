//go:build e2e

package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/proxytest"
)

// TestE2EHostile sends the frames of testdata/hostile to three real servers, through attache with a rule that
// denies one tool and one that pins an argument, and directly. Through attache the denied tool never runs, the
// server gets the pinned value, and a valid call works after each frame. Directly, many frames break the rules
// or end the server: otherwise the test would prove nothing.
func TestE2EHostile(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	frames := proxytest.Frames(t, "../../testdata/hostile/frames.txt")
	for _, row := range []struct {
		server server
		era    era
	}{
		{l.gosdk(), legacyEra}, {l.legacy(), legacyEra}, {l.dual(), legacyEra},
		{l.gosdk(), modernEra}, {l.dual(), modernEra},
	} {
		t.Run(row.server.name+"/"+row.era.name, func(t *testing.T) {
			t.Run("through attache", func(t *testing.T) {
				t.Parallel()
				l.sendFrames(t, row.server, row.era, frames)
			})
			t.Run("directly", func(t *testing.T) {
				t.Parallel()
				l.countViolations(t, row.server, row.era, frames)
			})
		})
	}
}

// An era has the handshake of a session and the members of every request.
type era struct {
	name  string
	hello []string // requests have the id "hello"
	meta  string   // in every request; "" for none
}

const listTools = `{"jsonrpc":"2.0","id":"hello","method":"tools/list","params":{}}`

var (
	legacyEra = era{"legacy", []string{
		// The only revision that has batches.
		`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		listTools,
	}, ""}
	modernEra = era{"modern", []string{listTools},
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`}
)

// addMeta adds the members that a request of the era needs to each params object in a frame.
func (e era) addMeta(frame string) string {
	if e.meta == "" {
		return frame
	}
	frame = strings.ReplaceAll(frame, `"params":{`, `"params":{`+e.meta+`,`)
	return strings.ReplaceAll(frame, e.meta+`,}`, e.meta+`}`)
}

// sendFrames sends all frames in one session through attache, and checks that the rules hold.
func (l *lab) sendFrames(t *testing.T, s server, e era, frames []proxytest.Frame) {
	rules, err := filepath.Abs("../../testdata/hostile/rules.yaml")
	check(t, err)
	c := l.connect(t, e, l.through(s.command, "--config", rules))
	for _, f := range frames {
		if err := c.try(f, maxWait); err != nil {
			t.Fatalf("%s: the session did not survive: %v", f.Name, err)
		}
		if ran := c.violation(t); ran != "" {
			t.Errorf("%s: the server ran %s", f.Name, ran)
		}
	}
	c.close(t)
	if ran := c.violation(t); ran != "" {
		t.Errorf("the server ran %s", ran)
	}
	if c.seen < len(frames) {
		t.Errorf("the server ran %d calls for %d frames, each followed by a valid call", c.seen, len(frames))
	}
}

// countViolations checks that without attache enough frames make the server break the rules.
func (l *lab) countViolations(t *testing.T, s server, e era, frames []proxytest.Frame) {
	const least = 50
	c := l.connect(t, e, s.command)
	violations, dead := 0, 0
	for _, f := range frames {
		err := c.try(f, 3*time.Second)
		if c.violation(t) != "" {
			violations++
		}
		if err != nil {
			dead++
			c.kill()
			c = l.connect(t, e, s.command)
		}
	}
	c.close(t)
	t.Logf("%d of %d frames made %s break a rule, and %d ended or blocked it", violations, len(frames), s.name, dead)
	if violations < least {
		t.Errorf("only %d frames made the server break a rule, so the test proves little", violations)
	}
}

// A rawClient sends lines and reads lines.
type rawClient struct {
	era   era
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	ran   string // the file to which the server writes its calls
	seen  int    // the number of lines checked
	calls int
}

// connect starts a server and opens a session.
func (l *lab) connect(t *testing.T, e era, command []string) *rawClient {
	t.Helper()
	c := &rawClient{era: e, cmd: exec.Command(command[0], command[1:]...), lines: make(chan string, 100), ran: filepath.Join(t.TempDir(), "ran")}
	c.cmd.Dir = l.scripts
	c.cmd.Env = l.env(t, "E2E_RAN="+c.ran)
	out, err := c.cmd.StdoutPipe()
	check(t, err)
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	check(t, c.cmd.Start())
	t.Cleanup(c.kill)
	go c.read(out)
	for _, line := range e.hello {
		io.WriteString(c.in, e.addMeta(line)+"\n")
		if !strings.Contains(line, `"hello"`) {
			continue
		}
		if _, err := c.await(`"hello"`, maxWait); err != nil {
			t.Fatalf("the session was not opened: %v", err)
		}
	}
	return c
}

func (c *rawClient) read(out io.Reader) {
	defer close(c.lines)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		c.lines <- line
	}
}

// await reads up to the line that contains text.
func (c *rawClient) await(text string, limit time.Duration) (string, error) {
	late := time.After(limit)
	for {
		select {
		case line, open := <-c.lines:
			switch {
			case !open:
				return "", errors.New("the server has ended")
			case strings.Contains(line, text):
				return line, nil
			}
		case <-late:
			return "", fmt.Errorf("no answer to %s within %s", text, limit)
		}
	}
}

// try sends a frame, and then a valid call, which must work.
func (c *rawClient) try(f proxytest.Frame, limit time.Duration) error {
	c.calls++
	id := fmt.Sprintf(`"good-%d"`, c.calls)
	good := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"keep","arguments":{"tenant":"acme"}}}`
	go io.WriteString(c.in, c.era.addMeta(string(f.Bytes)+"\n"+good+"\n")) // a blocked server does not read
	reply, err := c.await(id, limit)
	if err == nil && !strings.Contains(reply, `"ran"`) {
		err = fmt.Errorf("the valid call was answered with %.300s", reply)
	}
	return err
}

// violation returns a call that the server has run against the rules since the last check, or "".
func (c *rawClient) violation(t *testing.T) (what string) {
	t.Helper()
	data, err := os.ReadFile(c.ran)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1] // the last line may be incomplete
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, line := range lines[min(c.seen, len(lines)):] {
		var ran struct {
			Tool   string
			Tenant any
		}
		if line == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &ran); err != nil {
			t.Fatalf("the server wrote %q", line)
		}
		if c.seen++; ran.Tool != "keep" || ran.Tenant != "acme" {
			what = line
		}
	}
	return what
}

// close closes the server's stdin and waits until it exits.
func (c *rawClient) close(t *testing.T) {
	t.Helper()
	c.in.Close()
	late := time.After(maxWait)
	for {
		select {
		case _, open := <-c.lines:
			if !open {
				return
			}
		case <-late:
			t.Error("the session did not end")
			return
		}
	}
}

func (c *rawClient) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}
