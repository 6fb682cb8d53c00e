package assembly

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

// callOnce sends a call in a new connection, and returns the result that the client gets.
func callOnce(t *testing.T, shared *Shared, tool, arguments string) wire.Value {
	t.Helper()
	return callIn(t, shared.Connect(ConnOptions{}), tool, arguments)
}

// callIn is like callOnce, but makes the call in conn and closes conn.
func callIn(t *testing.T, conn *Conn, tool, arguments string) wire.Value {
	t.Helper()
	o := conn.Relay()
	in, client := io.Pipe()
	replies, out := io.Pipe()
	o.ClientIn, o.ClientOut = in, out
	o.Start = func(context.Context) (proxy.Upstream, error) { return mempipe.Serve(answer), nil }
	ended := make(chan error, 1)
	go func() {
		ended <- proxy.Run(t.Context(), o)
		out.Close()
	}()
	fmt.Fprintf(client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", tool, arguments)
	reply, err := bufio.NewReader(replies).ReadBytes('\n')
	client.Close()
	go func() { _, _ = io.Copy(io.Discard, replies) }()
	check(t, errors.Join(err, <-ended))
	conn.Close()
	return wire.Value{Raw: bytes.TrimSpace(reply)}.Get("result")
}

// answer answers each request from in with a result for all methods.
func answer(in io.Reader, out io.Writer) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		id := wire.Value{Raw: lines.Bytes()}.Get("id")
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[],"content":[{"type":"text","text":"done"}]}}`+"\n", id.Raw); err != nil {
			return err
		}
	}
	return nil
}

// compiled returns the Shared of a process for the configuration that p finds.
func compiled(t *testing.T, p cli.Process) *Shared {
	t.Helper()
	shared, err := Compile(Options{Process: p, Audit: true, UserTurns: true, Log: slog.New(slog.DiscardHandler)}, attachetest.Load(t, p))
	check(t, err)
	t.Cleanup(shared.Close)
	return shared
}

// All connections of a session use the tokens of one rate, also after a reload.
func TestRatesOfSeveralConnections(t *testing.T) {
	p := attachetest.WriteConfig(t, "session: {id: one}\naccess: {rates: [{tools: [x], per: session, limit: 2/h}]}\n")
	shared := compiled(t, p)
	for call, refused := range []bool{false, false, true} {
		if got := string(callOnce(t, shared, "x", "{}").Get("isError").Raw) == "true"; got != refused {
			t.Errorf("call %d is refused: %t, want %t", call+1, got, refused)
		}
		if _, err := shared.Current().Reload(attachetest.Load(t, p)); err != nil {
			t.Fatal(err)
		}
	}
}

// In a front, a dry run logs the client of each call.
func TestDryRunLogsForTheConnection(t *testing.T) {
	shared := compiled(t, attachetest.WriteConfig(t, "dry_run: true\naccess: {rules: [{tools: [x], deny: true}]}\n"))
	var log bytes.Buffer
	callIn(t, shared.Connect(ConnOptions{Log: slog.New(slog.NewTextHandler(&log, nil)).With("client", "a")}), "x", "{}")
	if text := log.String(); !strings.Contains(text, "would refuse the call") || !strings.Contains(text, "client=a") {
		t.Errorf("the log of the connection has %q", text)
	}
}

// audit.arguments is obeyed, and no record has a known secret, wherever a client writes it.
func TestRecordedArguments(t *testing.T) {
	for mode, want := range map[string]string{
		"digest":   `"digest"`,
		"redacted": `"q":"find"`,
		"full":     `"q":"find"`,
	} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		p := attachetest.WriteConfig(t, "server: {env: {OUR_PASSWORD: moon-over-water}}\naudit: {file: "+path+", arguments: "+mode+"}\n")
		shared := compiled(t, p)
		callOnce(t, shared, "x-moon-over-water", `{"q":"find","password":"guess","note":"moon-over-water"}`)
		shared.Close()
		text, err := os.ReadFile(path)
		check(t, err)
		records := string(text)
		if strings.Contains(records, "find") != (mode != "digest") || strings.Contains(records, "guess") != (mode == "full") || mode != "digest" && !strings.Contains(records, want) {
			t.Errorf("arguments: %s records %s", mode, records)
		}
		if strings.Contains(records, "moon-over-water") {
			t.Errorf("arguments: %s records a secret: %s", mode, records)
		}
	}
}

// A file of the audit that is larger than audit.max_size is renamed.
func TestSizeOfAuditFile(t *testing.T) {
	dir := t.TempDir()
	p := attachetest.WriteConfig(t, "audit: {file: "+filepath.Join(dir, "audit.jsonl")+", arguments: full, max_size: 4KiB}\n")
	shared := compiled(t, p)
	for range 2 {
		callOnce(t, shared, "x", `{"a":"`+strings.Repeat("word ", 1000)+`"}`)
	}
	shared.Close()
	if files, err := filepath.Glob(filepath.Join(dir, "audit*.jsonl")); err != nil || len(files) != 2 {
		t.Errorf("the files are %q, %v", files, err)
	}
}

// briefed returns how many briefings are in a result, and their length.
func briefed(result wire.Value) (n, length int) {
	for block := range result.Get("content").Elements() {
		if text := block.Get("text").Text(); text != "done" {
			n, length = n+1, length+len(text)
		}
	}
	return n, length
}

// A session that was idle for session.ttl is a new one, and is briefed again.
func TestIdleSessionIsBriefedAgain(t *testing.T) {
	dir := t.TempDir()
	attachetest.WriteFile(t, filepath.Join(dir, "acme.yaml"), "scope: acme\nobjectives: [one]\n")
	p := attachetest.WriteConfig(t, "session: {id: one, ttl: 1h}\npolicy: {dir: "+dir+", scope: acme}\n", "MCP_USER_ID=ada")
	settings := attachetest.Load(t, p)
	synctest.Test(t, func(t *testing.T) {
		shared, err := Compile(Options{Process: p, Log: slog.New(slog.DiscardHandler)}, settings)
		check(t, err)
		defer shared.Close()
		for _, step := range []struct {
			idle time.Duration
			want int
		}{{0, 1}, {time.Minute, 0}, {59 * time.Minute, 0}, {61 * time.Minute, 1}, {0, 0}} {
			time.Sleep(step.idle)
			if n, _ := briefed(callOnce(t, shared, "x", "{}")); n != step.want {
				t.Errorf("after %v a call has %d briefings, want %d", step.idle, n, step.want)
			}
		}
	})
}

// The briefing comes once in a session, for all its servers or for each, and is no longer than its limit.
func TestBriefingsOfSeveralServers(t *testing.T) {
	dir := t.TempDir()
	attachetest.WriteFile(t, filepath.Join(dir, "acme.yaml"), "scope: acme\npolicies: [{name: long, position: append, text: "+strings.Repeat("word ", 400)+"}]\n")
	for _, test := range []struct {
		settings string
		want     []int
		most     int
	}{
		{"{wait: 1m}", []int{1, 0}, 16384},
		{"{wait: 1m, once_per: server}", []int{1, 1}, 16384},
		{"{wait: 1m, max_bytes: 600}", []int{1, 0}, 600},
	} {
		state := t.TempDir()
		for i, want := range test.want {
			p := attachetest.WriteConfig(t, "session: {id: one}\npolicy: {dir: "+dir+", scope: acme}\nbriefing: "+test.settings+"\n", "MCP_USER_ID=ada")
			p.StateDir = state
			n, length := briefed(callOnce(t, compiled(t, p), "x", "{}"))
			if n != want || length > test.most {
				t.Errorf("%s: server %d sends %d briefings of %d bytes, want %d of %d at most", test.settings, i+1, n, length, want, test.most)
			}
		}
	}
}
