package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// servedConfig is the configuration of the attache that all sessions share.
const servedConfig = `
identity: {keys_file: keys.yaml}
policy: {dir: policies}
serve: {limits: {sessions: 10000, per_principal: 1000, children: 10000}}
arguments:
  - {tools: ["*"], argument: user, value: principal.user, mode: pin}
  - {tools: ["*"], argument: tenant, value: principal.tenant, mode: pin}
  - {tools: ["*"], argument: workspace, value: session.workspace.path}
`

// number returns the number in an environment variable, or a default value.
func number(t *testing.T, name string, value int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return value
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Many sessions of several principals use one attache serve, in both eras: each answer has the user, tenant,
// workspace and briefing of its own session only. Neighbours have the same conversation key and different
// principals. Environment variables set the numbers.
func TestServedSessionsAreIsolated(t *testing.T) {
	t.Parallel()
	sessions, principals := number(t, "ATTACHE_ISOLATION_SESSIONS", 16), number(t, "ATTACHE_ISOLATION_PRINCIPALS", 4)
	calls := number(t, "ATTACHE_ISOLATION_CALLS", 1500)
	dir := t.TempDir()
	attachetest.WriteFile(t, filepath.Join(dir, "config.yaml"), servedConfig)
	keys := make([]string, principals)
	for n := range principals {
		key, _ := attachetest.CreateKey(t, filepath.Join(dir, "keys.yaml"), identity.Attributes{
			User: fmt.Sprintf("user-%d", n), Tenant: fmt.Sprintf("tenant-%d", n), Scope: fmt.Sprintf("scope-%d", n),
		})
		keys[n] = key
		attachetest.WriteFile(t, filepath.Join(dir, "policies", fmt.Sprintf("%d.yaml", n)), fmt.Sprintf("scope: scope-%d\nobjectives: [Work for goal-%d]\n", n, n))
	}
	url := serveEcho(t, filepath.Join(dir, "config.yaml"))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * sessions}}
	defer client.CloseIdleConnections()
	var crowd sync.WaitGroup
	var made atomic.Int64
	for i := range sessions {
		s := &servedSession{
			t: t, client: client, url: url, modern: i%2 == 1, thread: fmt.Sprintf("thread-%d", i/principals),
			key: keys[i%principals], foreign: keys[(i+1)%principals],
			facts: map[string]string{"user": strconv.Itoa(i % principals), "tenant": strconv.Itoa(i % principals), "goal": strconv.Itoa(i % principals), "ws": strconv.Itoa(i)},
		}
		crowd.Go(func() { s.run(calls/sessions, &made) })
	}
	crowd.Wait()
	t.Logf("%d calls of %d sessions of %d principals", made.Load(), sessions, principals)
}

// serveEcho starts attache serve in front of echo servers, and returns its URL.
func serveEcho(t *testing.T, config string) string {
	t.Helper()
	return startServe(t, exec.Command("attache", "serve", "--config", config, "--log-format", "json", "--listen", "127.0.0.1:0", "--", "echoserver"))
}

// startServe starts attache serve with a log in JSON, and returns the URL that it logs. It stops the process when
// the test ends.
func startServe(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("attache serve: %v", err)
		}
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var line struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			go io.Copy(io.Discard, stderr)
			return line.URL
		}
		t.Logf("%s", lines.Bytes())
	}
	t.Fatal("attache serve ended before it served")
	return ""
}

// A servedSession is a client with the facts that its answers must contain.
type servedSession struct {
	t            *testing.T
	client       *http.Client
	url          string
	modern       bool
	thread       string
	key, foreign string
	id           string            // the id of a legacy session
	facts        map[string]string // numbers by the word before them
	briefings    atomic.Int64
}

// run makes n calls, two at a time.
func (s *servedSession) run(n int, made *atomic.Int64) {
	if !s.modern {
		status, header, body := s.post(s.key, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"},"_meta":{"io.github.attache-mcp/workspace":"/ws-%s"}}}`, s.facts["ws"]))
		if s.id = header.Get("Mcp-Session-Id"); status != http.StatusOK || s.id == "" {
			s.t.Errorf("initialize: %d %s", status, body)
			return
		}
		s.post(s.key, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	var both sync.WaitGroup
	for half := range 2 {
		both.Go(func() {
			for i := range n / 2 {
				if !s.call(2*i + half + 1) {
					return
				}
				made.Add(1)
			}
		})
	}
	both.Wait()
	if got := s.briefings.Load(); got != 1 {
		s.t.Errorf("session %s: %d briefings", s.facts["ws"], got)
	}
}

// fact matches a fact of a session.
var fact = regexp.MustCompile(`\b(user|tenant|goal|ws)-(\d+)`)

// call makes one call and reports whether its answer is right. For some calls it first tries the key of
// another principal, to whom the legacy session must not exist.
func (s *servedSession) call(id int) bool {
	meta := ""
	if s.modern {
		meta = fmt.Sprintf(`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"threadId":"%s","io.github.attache-mcp/workspace":"/ws-%s"}`,
			s.thread, s.facts["ws"])
	}
	frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"whoami","arguments":{"user":"nobody"}%s}}`, id, meta)
	if !s.modern && rand.IntN(20) == 0 {
		if status, _, body := s.post(s.foreign, frame); status != http.StatusNotFound {
			s.t.Errorf("session %s: another principal's key: %d %s", s.facts["ws"], status, body)
			return false
		}
	}
	status, _, body := s.post(s.key, frame)
	found := map[string]bool{}
	for _, m := range fact.FindAllSubmatch(body, -1) {
		if word, n := string(m[1]), string(m[2]); s.facts[word] != n {
			s.t.Errorf("session %v: the answer has %s-%s: %s", s.facts, word, n, body)
			return false
		}
		found[string(m[1])] = true
	}
	if status != http.StatusOK || !found["user"] || !found["tenant"] || !found["ws"] || !bytes.Contains(body, fmt.Appendf(nil, `"id":%d,`, id)) {
		s.t.Errorf("session %v: %d %s", s.facts, status, body)
		return false
	}
	if found["goal"] {
		s.briefings.Add(1)
	}
	return true
}

// post sends a message with a key.
func (s *servedSession) post(key, frame string) (int, http.Header, []byte) {
	r, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(frame))
	if err != nil {
		s.t.Error(err)
		return 0, nil, nil
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + key},
	}
	switch {
	case s.modern:
		r.Header["Mcp-Protocol-Version"], r.Header["Mcp-Method"], r.Header["Mcp-Name"] = []string{"2026-07-28"}, []string{"tools/call"}, []string{"whoami"}
	case s.id != "":
		r.Header["Mcp-Session-Id"] = []string{s.id}
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Error(err)
		return 0, http.Header{}, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Error(err)
	}
	return resp.StatusCode, resp.Header, slices.Clip(body)
}
