package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/internal/testkit"
)

// A GET is logged and counted when its stream ends, although its handler returns immediately.
func TestGetIsLoggedAtItsEnd(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		config := ""
		if encrypted {
			dir := t.TempDir()
			attachetest.WriteCertificate(t, dir, 1)
			config = "serve: {tls: {cert: " + dir + "/cert.pem, key: " + dir + "/key.pem}}\n"
		}
		logged := make(chan map[string]slog.Value, 1)
		r := startLogging(t, slog.New(testkit.LogHandler(func(_ context.Context, r slog.Record) {
			all := map[string]slog.Value{}
			r.Attrs(func(a slog.Attr) bool { all[a.Key] = a.Value; return true })
			if r.Message == "request" && all["method"].String() == http.MethodGet {
				logged <- all
			}
		})), config)
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // without HTTP/2
		resp, _ := r.post(t, c, initialize)
		session := resp.Header.Get("Mcp-Session-Id")
		stream := r.request(t, c, http.MethodGet, session)
		body := bufio.NewReader(stream.Body)
		if line, err := body.ReadString('\n'); line != ":\n" || err != nil || stream.Proto != "HTTP/1.1" {
			t.Fatalf("the stream begins with %q (%v) over %s", line, err, stream.Proto)
		}
		if !stream.Close || stream.Header.Get("Date") == "" {
			t.Errorf("the connection of the stream can be used again: %t; %v", !stream.Close, stream.Header)
		}
		if r.counts["/mcp"].of(http.MethodGet, 200) != 0 {
			t.Error("the GET was counted before its end")
		}
		r.request(t, c, http.MethodDelete, session).Body.Close()
		if rest, err := io.ReadAll(body); string(rest) != "\n" || err != nil {
			t.Errorf("the stream ends with %q (%v)", rest, err)
		}
		line := <-logged
		if line["status"].Int64() != 200 || line["path"].String() != "/mcp" || line["bytes"].Int64() < 100 {
			t.Errorf("the GET was logged as %v", line)
		}
		if n := r.counts["/mcp"].of(http.MethodGet, 200); n != 1 {
			t.Errorf("the GET was counted %d times", n)
		}
	}
}

// The function is called once when the connection is closed, or at once if it is closed already.
func TestWhenClosed(t *testing.T) {
	for _, steps := range []string{"f", "c", "fc", "cf", "fcc", "ccf"} {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c, calls := &hijackedConn{Conn: ours}, 0
		for _, step := range steps {
			if step == 'f' {
				c.whenClosed(func(int64) { calls++ })
			} else {
				_ = c.Close()
			}
		}
		if (calls == 1) != (len(steps) > 1) {
			t.Errorf("%s: called %d times", steps, calls)
		}
	}
}

// of returns the number of requests with a method and a status.
func (c *counts) of(method string, status int) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[slices.Index(methods[:], method)][status]
}

// request sends a request without a body in a session.
func (r *runningService) request(t *testing.T, c *http.Client, method, session string) *http.Response {
	t.Helper()
	q, err := http.NewRequest(method, r.url, nil)
	check(t, err)
	q.Header.Set("Accept", "text/event-stream")
	q.Header.Set("Mcp-Session-Id", session)
	resp, err := c.Do(q)
	check(t, err)
	return resp
}

// A client that sends Connection: close and a large body gets the answer that refuses it, although
// nothing of the body is needed for that.
func TestRefusalOfLargeBody(t *testing.T) {
	r := start(t, "{}")
	at := strings.TrimPrefix(r.url, "http://")
	host, path, _ := strings.Cut(at, "/")
	for range 5 {
		c, err := net.Dial("tcp", host)
		check(t, err)
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		const size = 5 << 20
		fmt.Fprintf(c, "POST /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", path, host, size)
		for range size / 4096 {
			if _, err := c.Write(make([]byte, 4096)); err != nil {
				t.Fatal("the connection was closed: ", err)
			}
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusUnsupportedMediaType {
			t.Fatal(resp, err)
		}
	}
}
