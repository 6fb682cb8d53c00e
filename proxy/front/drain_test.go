package front

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/remote"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A draining front refuses a call from an attache client and reports that nothing was executed. The
// client sends the call again, to the front that now serves the session, and it is executed once.
func TestDrainRetriesCall(t *testing.T) {
	var calls, refused atomic.Int32
	store := &memoryStore{saved: map[sessions.Key]sessions.Session{}, own: map[sessions.Key]bool{}}
	newFront := func() *Front {
		return New(Options{Store: store, Open: func(Opening) (Relay, error) {
			return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
				return countingServer(&calls), nil
			}}}, nil
		}})
	}
	first, second := newFront(), newFront()
	var current atomic.Pointer[Front]
	current.Store(first)
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &statusWriter{ResponseWriter: w}
		current.Load().ServeHTTP(s, r)
		if r.Method == http.MethodPost && s.status == http.StatusServiceUnavailable {
			refused.Add(1)
			current.Store(second)
		}
	}))
	transport := remote.NewTransport(remote.TransportOptions{})
	client, err := remote.Start(remote.Options{URL: balancer.URL, Transport: transport, Wait: time.Minute})
	check(t, err)
	defer func() {
		client.Stop()
		transport.CloseIdleConnections()
		second.Drain(t.Context())
		balancer.Close()
	}()
	answers := bufio.NewReader(client.Stdout())
	request := func(line string) string {
		io.WriteString(client.Stdin(), line+"\n")
		answer, err := answers.ReadString('\n')
		check(t, err)
		return answer
	}
	request(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	io.WriteString(client.Stdin(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	const answer = `{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}` + "\n"
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`
	if got := request(fmt.Sprintf(call, 1)); got != fmt.Sprintf(answer, 1) {
		t.Errorf("before the drain: %s", got)
	}
	first.Drain(t.Context())
	if got := request(fmt.Sprintf(call, 2)); got != fmt.Sprintf(answer, 2) {
		t.Errorf("after the drain: %s", got)
	}
	if calls.Load() != 2 || refused.Load() != 1 {
		t.Errorf("%d calls were executed and %d refused, want 2 and 1", calls.Load(), refused.Load())
	}
}

// countingServer answers each request and counts tool calls.
func countingServer(calls *atomic.Int32) *mempipe.Server {
	return mempipe.Serve(func(in io.Reader, out io.Writer) error {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			root := wire.Value{Raw: lines.Bytes()}
			if root.Get("method").Equals("tools/call") {
				calls.Add(1)
			}
			if id := root.Get("id").Raw; id != nil {
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}`+"\n", id)
			}
		}
		return nil
	})
}

// A front that has ended a session gets a GET for it. If no other front can have the session, it breaks the
// connection: after a 503, go-sdk 1.8 would end its session, but without an answer it tries again.
func TestDrainBreaksGet(t *testing.T) {
	store := &memoryStore{saved: map[sessions.Key]sessions.Session{}, own: map[sessions.Key]bool{}}
	f := New(Options{Store: store, Open: func(Opening) (Relay, error) {
		return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) { return countingServer(new(atomic.Int32)), nil }}}, nil
	}})
	server := httptest.NewServer(f)
	defer server.Close()
	session := ""
	send := func(method, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader(body))
		check(t, err)
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			response.Body.Close()
		}
		return response, err
	}
	response, err := send(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	check(t, err)
	session = response.Header.Get("Mcp-Session-Id")
	f.Drain(t.Context())
	if response, err := send(http.MethodGet, ""); err == nil {
		t.Errorf("GET: status %d, want a broken connection", response.StatusCode)
	}
	if response, err := send(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err != nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("POST: %v %v, want status 503", response, err)
	}
}
