package serve

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// Each limit of the configuration refuses the message or session that exceeds it.
func TestLimits(t *testing.T) {
	large := strings.Replace(initialize, `"params":{`, `"params":{"_meta":{"x":"`+strings.Repeat("x", 10_000)+`"},`, 1)
	for limit, test := range map[string]struct {
		then   string
		status int
	}{
		"body: 1KiB":  {large, http.StatusRequestEntityTooLarge},
		"sessions: 1": {initialize, http.StatusServiceUnavailable},
		"children: 1": {initialize, http.StatusServiceUnavailable},
	} {
		t.Run(limit, func(t *testing.T) {
			r := start(t, "serve: {limits: {"+limit+"}}\n")
			first, body := r.post(t, http.DefaultClient, initialize)
			if first.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", first.StatusCode, body)
			}
			if resp, body := r.post(t, http.DefaultClient, test.then); resp.StatusCode != test.status {
				t.Errorf("%d %s, want %d", resp.StatusCode, body, test.status)
			}
			// A session that has ended makes room for another one.
			q, err := http.NewRequest(http.MethodDelete, r.url, nil)
			check(t, err)
			q.Header.Set("Mcp-Session-Id", first.Header.Get("Mcp-Session-Id"))
			resp, err := http.DefaultClient.Do(q)
			check(t, err)
			resp.Body.Close()
			for end := time.Now().Add(time.Minute); ; {
				resp, body := r.post(t, http.DefaultClient, initialize)
				if resp.StatusCode == http.StatusOK {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("after the end of the session: %d %s", resp.StatusCode, body)
				}
			}
		})
	}
}

// A principal has no more sessions than it may, and leaves room to others.
func TestLimitOfPrincipal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	ada, _ := attachetest.CreateKey(t, file, identity.Attributes{User: "ada"})
	bob, _ := attachetest.CreateKey(t, file, identity.Attributes{User: "bob"})
	r := start(t, "identity: {keys_file: "+file+"}\nserve: {limits: {per_principal: 1}}\n")
	for i, step := range []struct {
		key  string
		want int
	}{{ada, http.StatusOK}, {ada, http.StatusTooManyRequests}, {bob, http.StatusOK}} {
		if resp, body := r.post(t, http.DefaultClient, initialize, "Authorization", "Bearer "+step.key); resp.StatusCode != step.want {
			t.Errorf("session %d: %d %s, want %d", i+1, resp.StatusCode, body, step.want)
		}
	}
}

// While as many requests are served as may be, another one is refused.
func TestLimitOfRequests(t *testing.T) {
	r := start(t, "serve: {limits: {in_flight: 1}}\n")
	answer := make(chan struct{})
	r.endpoints[0].start = func(front.Opening, func() []string) (proxy.Upstream, error) {
		return mempipe.Serve(func(in io.Reader, out io.Writer) error {
			for lines := bufio.NewScanner(in); lines.Scan(); {
				m := wire.Value{Raw: lines.Bytes()}
				if m.Get("method").Equals("tools/call") {
					<-answer
				}
				if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}`+"\n", m.Get("id").Raw); err != nil {
					return err
				}
			}
			return nil
		}), nil
	}
	session := r.open(t)
	call := func() int {
		resp, _ := r.post(t, http.DefaultClient, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, "Mcp-Session-Id", session)
		return resp.StatusCode
	}
	first := make(chan int, 1)
	go func() { first <- call() }()
	for n := 0; n == 0; { // until the first call is served
		_, n = r.limits.Counts()
	}
	resp, _ := r.post(t, http.DefaultClient, initialize)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("the second request gets %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	close(answer)
	if status := <-first; status != http.StatusOK {
		t.Errorf("the first call gets %d", status)
	}
}

// A request with an origin or a host name that the configuration does not name is refused.
func TestOriginsAndHosts(t *testing.T) {
	r := start(t, "serve: {origins: ['https://app.example'], hosts: [mcp.example]}\n")
	for _, test := range []struct {
		origin, host string
		want         int
	}{
		{"", "", http.StatusOK},
		{"https://app.example", "", http.StatusOK},
		{"https://evil.example", "", http.StatusForbidden},
		{"", "mcp.example", http.StatusOK},
		{"", "evil.example", http.StatusForbidden},
		{"https://app.example", "evil.example", http.StatusForbidden},
	} {
		q, err := http.NewRequest(http.MethodPost, r.url, strings.NewReader(initialize))
		check(t, err)
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		if q.Host = test.host; test.origin != "" {
			q.Header.Set("Origin", test.origin)
		}
		resp, err := http.DefaultClient.Do(q)
		check(t, err)
		resp.Body.Close()
		if resp.StatusCode != test.want {
			t.Errorf("origin %q, host %q: %d, want %d", test.origin, test.host, resp.StatusCode, test.want)
		}
	}
}

// The front obeys serve.idle, and its relays limits.hold.
func TestFrontOptions(t *testing.T) {
	for text, want := range map[string]struct {
		idle time.Duration
		hold int
	}{
		"{}":                   {30 * time.Minute, 8 << 20},
		"serve: {idle: 7m}":    {7 * time.Minute, 8 << 20},
		"limits: {hold: 4KiB}": {30 * time.Minute, 4 << 10},
	} {
		e := newTestService(t, attachetest.WriteConfig(t, text)).endpoints[0]
		relay, err := e.open(front.Opening{})
		check(t, err)
		relay.Closed()
		if idle, hold := e.frontOptions().Idle, relay.Options.Hold; idle != want.idle || hold != want.hold {
			t.Errorf("%s: idle %v, hold %d; want %+v", text, idle, hold, want)
		}
	}
}
