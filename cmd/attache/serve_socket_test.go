//go:build unix

package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A socket that was opened for attache serve, as systemd does, is served in place of
// serve.listen, and its variables are not for the servers.
func TestServeInheritedSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	for _, at := range []struct{ network, address string }{{"tcp", "127.0.0.1:0"}, {"unix", socket}} {
		t.Run(at.network, func(t *testing.T) {
			l, err := net.Listen(at.network, at.address)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			file, err := l.(interface{ File() (*os.File, error) }).File()
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec attache serve --log-format json -- sh -c '[ -z "$LISTEN_PID$LISTEN_FDS" ] && exec echoserver'`)
			cmd.ExtraFiles = []*os.File{file} // descriptor 3
			url := startServe(t, cmd)
			if want := l.Addr().String(); !strings.Contains(url, want) {
				t.Errorf("it serves %s, want %s", url, want)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, at.network, l.Addr().String())
			}}}
			r, err := http.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Error(resp.Status)
			}
		})
	}
}

// A socket without connections cannot be served.
func TestServeRefusesDatagrams(t *testing.T) {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec attache serve -- echoserver`)
	cmd.ExtraFiles = []*os.File{file}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "socket 1 of those that systemd has opened takes no connections") {
		t.Errorf("%v\n%s", err, out)
	}
}
