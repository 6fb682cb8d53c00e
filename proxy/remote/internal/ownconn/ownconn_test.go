package ownconn

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
)

// newTransport returns a Transport whose last GET had a response of unknown length.
func newTransport(proxy func(*http.Request) (*url.URL, error)) *Transport {
	t := New(&http.Transport{DialContext: new(net.Dialer).DialContext, Proxy: proxy})
	t.streams.Store(true)
	return t
}

func get(t *testing.T, ctx context.Context, transport *Transport, address string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	check(t, err)
	r.Header.Set("X-Test", "sent")
	return transport.RoundTrip(r)
}

func TestResponses(t *testing.T) {
	for _, test := range []struct {
		name    string
		answer  func(w http.ResponseWriter)
		status  int
		body    string
		streams bool // the next GET also gets its own connection
	}{
		{"a stream", func(w http.ResponseWriter) {
			for range 3 {
				_, _ = io.WriteString(w, strings.Repeat("x", 1500))
				_ = http.NewResponseController(w).Flush()
			}
		}, 200, strings.Repeat("x", 4500), true},
		{"a known length", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "all") }, 200, "all", false},
		{"a refusal", func(w http.ResponseWriter) { w.WriteHeader(http.StatusMethodNotAllowed) }, 405, "", false},
		{"early hints", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusEarlyHints)
			_ = http.NewResponseController(w).Flush()
		}, 200, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.Header.Get("X-Test") != "sent" {
					t.Errorf("got %s %v", r.Method, r.Header)
				}
				test.answer(w)
			}))
			defer server.Close()
			transport, wrote := newTransport(nil), 0
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { wrote++ }})
			resp, err := get(t, ctx, transport, server.URL)
			check(t, err)
			b, err := io.ReadAll(resp.Body)
			_, own := resp.Body.(*body)
			if resp.StatusCode != test.status || string(b) != test.body || err != nil || wrote != 1 || !own {
				t.Errorf("%d with %d bytes (%v), sent %d times, on its own connection: %v", resp.StatusCode, len(b), err, wrote, own)
			}
			if resp.Body.Close() != nil || transport.streams.Load() != test.streams {
				t.Errorf("the next GET gets its own connection: %v", transport.streams.Load())
			}
		})
	}
}

// The connection is closed when the context of its request is done.
func TestCancel(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	transport := newTransport(nil)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := get(t, ctx, transport, server.URL)
	check(t, err)
	in := bufio.NewReader(resp.Body)
	if line, err := in.ReadString('\n'); line != "begun\n" || err != nil {
		t.Fatalf("got %q (%v)", line, err)
	}
	cancel()
	if _, err := in.ReadString('\n'); !errors.Is(err, context.Canceled) {
		t.Errorf("a read after the cancellation: %v", err)
	}
	resp.Body.Close()
	if _, err := get(t, ctx, transport, server.URL+"/late"); !errors.Is(err, context.Canceled) {
		t.Errorf("a request after the cancellation: %v", err)
	}
}

// An unreachable host gives the same errors as with http.Transport.
func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	_, err := get(t, t.Context(), newTransport(nil), server.URL)
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("got %v", err)
	}
}

// A GET to a server with TLS is encrypted, also after a stream.
func TestStreamsWithTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush() // so that its length is unknown
	}))
	defer server.Close()
	transport := newTransport(nil)
	transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	for range 2 {
		resp, err := get(t, t.Context(), transport, server.URL)
		check(t, err)
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("got status %d", resp.StatusCode)
		}
	}
	transport.CloseIdleConnections()
}

// Requests with a proxy or TLS are sent by http.Transport.
func TestDirect(t *testing.T) {
	direct := func(*http.Request) (*url.URL, error) { return nil, nil }
	proxied := func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy") }
	invalid := func(*http.Request) (*url.URL, error) { return nil, errors.New("an invalid proxy") }
	for _, test := range []struct {
		address string
		proxy   func(*http.Request) (*url.URL, error)
		want    bool
	}{
		{"http://host/mcp", nil, true},
		{"http://host/mcp", direct, true},
		{"http://host/mcp", proxied, false},
		{"http://host/mcp", invalid, false},
		{"https://host/mcp", nil, false},
		{"http://höst/mcp", nil, false},
	} {
		r, err := http.NewRequest(http.MethodGet, test.address, nil)
		check(t, err)
		if got := newTransport(test.proxy).direct(r); got != test.want {
			t.Errorf("%s: %v", test.address, got)
		}
	}
}

var check = testkit.Check
