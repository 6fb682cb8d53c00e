//go:build e2e

package main_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
)

// testProxies puts the reverse proxies of packaging, with other addresses and files, in front of attache serve,
// if they are installed: in both eras, events arrive one by one, a call may take long, and a reload of Caddy breaks none.
func (l *lab) testProxies(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"front.yaml": "serve: {hosts: [mcp.example.com]}\n"})
	f := l.startFront(t, []string{l.goserver}, "--config", filepath.Join(dir, "front.yaml"))
	t.Cleanup(func() { f.end(t) })
	upstream := strings.TrimSuffix(strings.TrimPrefix(f.url, "http://"), "/mcp")
	for _, row := range []struct {
		program string
		command func(t *testing.T, listen, upstream string) []string
	}{
		{"nginx", func(t *testing.T, listen, upstream string) []string {
			return attachetest.Nginx(t, listen, []string{upstream})
		}},
		{"caddy", caddyCommand},
	} {
		t.Run(row.program, func(t *testing.T) {
			if _, err := exec.LookPath(row.program); err != nil {
				t.Skip(row.program + " is not installed")
			}
			t.Parallel()
			var command []string
			address := l.listen(t, func(address string) []string {
				command = row.command(t, address, upstream)
				return command
			})
			awaitCertificate(t, address)
			t.Run("events", func(t *testing.T) {
				for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
					t.Run(protocol, func(t *testing.T) {
						t.Parallel()
						p := newProxyClient(t, protocol, address)
						p.legacy()
						p.modern()
					})
				}
			})
			if row.program == "caddy" {
				reloadCaddy(t, command, address)
			}
		})
	}
}

func caddyCommand(t *testing.T, listen, upstream string) []string {
	dir := t.TempDir()
	_, port, _ := net.SplitHostPort(listen)
	settings := " {"
	if out, err := exec.Command("caddy", "adapt", "--config", "../../packaging/Caddyfile").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if version, _ := exec.Command("caddy", "version").Output(); strings.Contains(string(version), "2.6.2") {
		settings += "\n\t\tbuffer_requests" // as the comments in the file advise
	}
	replacements := []string{"mcp.example.com {", "https://mcp.example.com:" + port + " {", "127.0.0.1:8333 {", upstream + settings}
	writeFiles(t, dir, map[string]string{"Caddyfile": `
{
	admin unix//` + dir + `/admin
	auto_https disable_redirects
	skip_install_trust
	local_certs
	default_bind 127.0.0.1
	storage file_system ` + dir + `
}
` + attachetest.Packaged(t, "Caddyfile", replacements...)})
	return []string{"caddy", "run", "--config", dir + "/Caddyfile", "--adapter", "caddyfile"}
}

// reloadCaddy reloads Caddy, started with command, in the middle of a call, which must still get its answer.
func reloadCaddy(t *testing.T, command []string, address string) {
	p := newProxyClient(t, "HTTP/1.1", address)
	session := p.open()
	call := p.block(session)
	config := command[3]
	reload := exec.Command("caddy", "reload", "--force", "--config", config, "--adapter", "caddyfile",
		"--address", "unix/"+filepath.Dir(config)+"/admin")
	if out, err := reload.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	newProxyClient(t, "HTTP/1.1", address).cancel(session) // on a connection of the new configuration
	until(t, call, `"id":2,`)
}

// awaitCertificate waits until the proxy has a certificate: Caddy creates it after it starts to listen.
func awaitCertificate(t *testing.T, address string) {
	t.Helper()
	var err error
	for end := time.Now().Add(maxWait); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var c *tls.Conn
		if c, err = tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, ServerName: "mcp.example.com"}); err == nil {
			c.Close()
			return
		}
	}
	t.Fatal(err)
}

// proxiedClient returns a client that uses one version of HTTP with the proxy at address and accepts any
// certificate.
func proxiedClient(protocol, address string) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(protocol == "HTTP/1.1")
	protocols.SetHTTP2(protocol == "HTTP/2.0")
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: protocols,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		},
	}}
}

const proxiedURL = "https://mcp.example.com/mcp"

// A proxyClient sends messages through a reverse proxy.
type proxyClient struct {
	*testing.T
	protocol string
	client   *http.Client
}

func newProxyClient(t *testing.T, protocol, address string) *proxyClient {
	return &proxyClient{T: t, protocol: protocol, client: proxiedClient(protocol, address)}
}

func (p *proxyClient) post(body string, headers ...string) *http.Response {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, proxiedURL, strings.NewReader(body))
	check(p, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := p.client.Do(r)
	check(p, err)
	p.Cleanup(func() { resp.Body.Close() })
	if resp.Proto != p.protocol {
		p.Errorf("%s, want %s", resp.Proto, p.protocol)
	}
	return resp
}

// until reads a response up to the line that contains text, and returns the line.
func until(t *testing.T, from *bufio.Reader, text string) string {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		if err != nil {
			t.Fatalf("no %q before %v", text, err)
		}
	}
}

// open opens a session and returns its id.
func (p *proxyClient) open() (session string) {
	first := p.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	session = first.Header.Get("Mcp-Session-Id")
	if b, err := io.ReadAll(first.Body); err != nil || session == "" {
		p.Fatalf("%d %s %v", first.StatusCode, b, err)
	}
	p.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session)
	return session
}

// block starts a silent call with the id 2, and returns its stream after the first comment.
func (p *proxyClient) block(session string) *bufio.Reader {
	silent := bufio.NewReader(p.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"block","arguments":{}}}`, "Mcp-Session-Id", session).Body)
	until(p.T, silent, ":")
	return silent
}

// cancel ends the call of block.
func (p *proxyClient) cancel(session string) {
	p.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, "Mcp-Session-Id", session)
}

// legacy opens a session with a stream, which starts with a comment. The server sends a request during a call,
// and the call ends only if that request was not delayed. During a silent call, comments keep the connection
// alive.
func (p *proxyClient) legacy() {
	session := p.open()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, proxiedURL, nil)
	check(p, err)
	r.Header.Set("Mcp-Session-Id", session)
	r.Header.Set("Accept", "text/event-stream")
	get, err := p.client.Do(r)
	check(p, err)
	defer get.Body.Close()
	until(p.T, bufio.NewReader(get.Body), ":")

	call := bufio.NewReader(p.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"elicit","arguments":{"question":"Go on?"}}}`, "Mcp-Session-Id", session).Body)
	id := regexp.MustCompile(`"id":("[^"]*"|\d+)`).FindStringSubmatch(until(p.T, call, "elicitation/create"))
	if id == nil {
		p.Fatal("the elicitation has no id")
	}
	p.post(`{"jsonrpc":"2.0","id":`+id[1]+`,"result":{"action":"accept","content":{"ok":true}}}`, "Mcp-Session-Id", session)
	until(p.T, call, `"id":1,`)

	silent := p.block(session)
	p.cancel(session)
	until(p.T, silent, `"id":2,`)
}

// modern opens a stream in version 2026-07-28, and calls a tool while it is open.
func (p *proxyClient) modern() {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	listen := p.post(`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	until(p.T, bufio.NewReader(listen.Body), "notifications/subscriptions/acknowledged")
	echo := p.post(`{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"},`+meta+`}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo")
	until(p.T, bufio.NewReader(echo.Body), "echo: hi")
}
