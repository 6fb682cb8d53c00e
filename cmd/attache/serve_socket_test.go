//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
)

// listen returns a listener that is closed after the test.
func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// inheritSocket returns a command that runs attache serve with an inherited socket.
func inheritSocket(t *testing.T, l net.Listener, serve string) *exec.Cmd {
	t.Helper()
	file, err := l.(interface{ File() (*os.File, error) }).File()
	check(t, err)
	t.Cleanup(func() { file.Close() })
	cmd := exec.Command("sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec attache serve --log-format json "+serve)
	cmd.ExtraFiles = []*os.File{file} // descriptor 3
	return cmd
}

// postTo sends a message to the endpoint at the listener.
func postTo(t *testing.T, l net.Listener, session, body string) (resp *http.Response, text string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, l.Addr().Network(), l.Addr().String())
	}}}
	r, err := http.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	check(t, err)
	r.Header.Set("Content-Type", "application/json")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err = client.Do(r)
	check(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	check(t, err)
	return resp, string(b)
}

const openSession = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`

// attache serve uses an inherited socket, such as one from systemd, instead of serve.listen. Servers do not get
// its variables.
func TestServeInheritedSocket(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	socket := filepath.Join(t.TempDir(), "s")
	for _, at := range []struct{ network, address string }{{"tcp", "127.0.0.1:0"}, {"unix", socket}} {
		t.Run(at.network, func(t *testing.T) {
			l := listen(t, at.network, at.address)
			url := startServe(t, inheritSocket(t, l, `-- sh -c '[ -z "$LISTEN_PID$LISTEN_FDS" ] && exec echoserver'`))
			if want := l.Addr().String(); !strings.Contains(url, want) {
				t.Errorf("the URL is %s, want %s", url, want)
			}
			if resp, body := postTo(t, l, "", openSession); resp.StatusCode != http.StatusOK {
				t.Error(resp.Status, body)
			}
		})
	}
}

// attache serve tells systemd that it listens, so systemd sends it no SIGHUP before that. Servers do not
// get the variable.
func TestServeNotifiesSystemd(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("NOTIFY_SOCKET", socket)
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	check(t, err)
	defer c.Close()
	l := listen(t, "tcp", "127.0.0.1:0")
	startServe(t, inheritSocket(t, l, `-- sh -c '[ -z "$NOTIFY_SOCKET" ] && exec echoserver'`))
	message := make([]byte, 100)
	check(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	if n, err := c.Read(message); err != nil || string(message[:n]) != "READY=1" {
		t.Errorf("notified: %q, %v", message[:n], err)
	}
	if resp, body := postTo(t, l, "", openSession); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status, body)
	}
}

// attache serve refuses an inherited datagram socket.
func TestServeRefusesDatagrams(t *testing.T) {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(t, err)
	defer c.Close()
	file, err := c.File()
	check(t, err)
	defer file.Close()
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec attache serve -- echoserver`)
	cmd.ExtraFiles = []*os.File{file}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "socket 1 of those that systemd has opened takes no connections") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A session continues in another process of attache, however the first process ended. It is briefed once, and
// each new process reports that the server has lost its state.
func TestServeContinuesAfterRestart(t *testing.T) {
	for _, per := range []string{"session", "server"} {
		t.Run(per, func(t *testing.T) { testServeContinues(t, "briefing: {once_per: "+per+"}\n") })
	}
}

func testServeContinues(t *testing.T, settings string) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	config := filepath.Join(dir, "config.yaml")
	attachetest.WriteFile(t, config, "policy: {dir: policies, scope: acme}\n"+settings)
	attachetest.WriteFile(t, filepath.Join(dir, "policies", "acme.yaml"), "scope: acme\nobjectives: [Ship it]\n")
	l := listen(t, "tcp", "127.0.0.1:0")
	var session string
	for i, end := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM, nil} {
		cmd := inheritSocket(t, l, "--config "+config+" -- echoserver")
		if end == nil {
			startServe(t, cmd)
		} else if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if session == "" {
			resp, _ := postTo(t, l, "", openSession)
			session = resp.Header.Get("Mcp-Session-Id")
		}
		resp, body := postTo(t, l, session, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, `"result"`) {
			t.Errorf("process %d: %s %s", i+1, resp.Status, body)
		}
		if briefed := strings.Contains(body, "Ship it"); briefed != (i == 0) {
			t.Errorf("process %d: briefed: %t: %s", i+1, briefed, body)
		}
		if reported := strings.Contains(body, "the session with the server echoserver was opened again at"); reported != (i > 0) {
			t.Errorf("process %d: reported the server's loss: %t: %s", i+1, reported, body)
		}
		if end != nil {
			_ = cmd.Process.Signal(end)
			_ = cmd.Wait()
		}
	}
}

// Other fronts learn that this one ends, even if it waits for no call.
func TestServeDrainsAtOnce(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	config := filepath.Join(dir, "config.yaml")
	attachetest.WriteFile(t, config, "serve: {drain: 0s}\n")
	l := listen(t, "tcp", "127.0.0.1:0")
	cmd := inheritSocket(t, l, "--config "+config+" -- echoserver")
	var log bytes.Buffer
	cmd.Stderr = &log
	check(t, cmd.Start())
	postTo(t, l, "", openSession)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || !strings.Contains(log.String(), "ending:") || strings.Contains(log.String(), "other fronts do not learn") {
		t.Errorf("%v\n%s", err, log.String())
	}
}

// attache status shows the sessions of a front.
func TestServeStatus(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	l := listen(t, "tcp", "127.0.0.1:0")
	url := startServe(t, inheritSocket(t, l, "-- echoserver"))
	postTo(t, l, "", openSession)
	status := func(args ...string) string {
		out, err := exec.Command("attache", append([]string{"status"}, args...)...).Output()
		check(t, err)
		return string(out)
	}
	var report struct {
		Running []struct {
			Server string
			Front  struct {
				URLs     []string
				Sessions int
			}
		}
	}
	// The report is written a second after the session is opened.
	for end := time.Now().Add(5 * time.Minute); (len(report.Running) == 0 || report.Running[0].Front.Sessions == 0) && time.Now().Before(end); {
		check(t, json.Unmarshal([]byte(status("--json")), &report))
	}
	if r := report.Running; len(r) != 1 || r[0].Server != "echoserver" || !slices.Equal(r[0].Front.URLs, []string{url}) || r[0].Front.Sessions != 1 {
		t.Errorf("%+v", r)
	}
	if text := status(); !strings.Contains(text, "serves       "+url+"\n    sessions     1\n") || strings.Contains(text, "calls") {
		t.Error(text)
	}
}

// attache restart restarts the servers of attache serve, and their clients stay connected.
func TestServeRestart(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	l := listen(t, "tcp", "127.0.0.1:0")
	startServe(t, inheritSocket(t, l, "-- echoserver"))
	resp, _ := postTo(t, l, "", openSession)
	session := resp.Header.Get("Mcp-Session-Id")
	call := func() string {
		_, body := postTo(t, l, session, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`)
		return body
	}
	postTo(t, l, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if body := call(); strings.Contains(body, "restarted") {
		t.Fatal(body)
	}
	end := time.Now().Add(5 * time.Minute)
	for {
		out, err := exec.Command("attache", "restart", "--server", "echoserver").CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(end) { // attache serve writes its report a second after its start
			t.Fatalf("%v\n%s", err, out)
		}
	}
	body := call()
	for !strings.Contains(body, "attache: the server echoserver was restarted at") && time.Now().Before(end) {
		body = call()
	}
	if !strings.Contains(body, "was restarted at") {
		t.Error(body)
	}
}
