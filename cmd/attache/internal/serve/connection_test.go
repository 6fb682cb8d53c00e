package serve

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// The end of a front waits for connections without a request, but not for longer than it may.
func TestAwaitArrivals(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx   context.Context
		n     int64
		after time.Duration // a request is handled
		want  time.Duration
	}{
		{t.Context(), 0, time.Hour, 0},
		{t.Context(), 1, time.Hour, time.Minute},
		{t.Context(), 1, time.Second, time.Second},
		{over, 1, time.Hour, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var a arrivals
			a.n.Store(test.n)
			defer time.AfterFunc(test.after, func() { a.n.Add(-1) }).Stop()
			began := time.Now()
			a.await(test.ctx, time.Minute)
			if took := time.Since(began).Truncate(10 * time.Millisecond); took != test.want {
				t.Errorf("%d connections: await took %v, want %v", test.n, took, test.want)
			}
		})
	}
}

// A connection counts as one without a request until it has had one or is closed, also under TLS and with
// HTTP/2. Only connections with HTTP/1 and without TLS are watched.
func TestArrivals(t *testing.T) {
	dir := t.TempDir()
	attachetest.WriteCertificate(t, dir, 1)
	secure := config.ServeSettings{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for _, c := range []struct {
		scheme   string
		settings config.ServeSettings
		version  int
		watched  bool
	}{
		{"http", config.ServeSettings{}, 1, true},
		{"http", config.ServeSettings{}, 2, false},
		{"https", secure, 1, false},
		{"https", secure, 2, false},
	} {
		s := &service{Options: Options{Log: slog.New(slog.DiscardHandler)}, settings: &c.settings, quiet: quietTimer{quiet: func() {}}, counts: map[string]*counts{otherPaths: {}}}
		watched := make(chan bool, 1)
		server := s.httpServer()
		server.Handler = s.logRequests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			watched <- r.Context().Value(connectionKey{}).(*connection).watch.handling.Load()
		}))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		go s.serveOn(server, l)
		defer server.Close()
		await := func(want int64) {
			t.Helper()
			for end := time.Now().Add(time.Minute); s.arrivals.n.Load() != want; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%+v: %d connections count as ones without a request, want %d", c, s.arrivals.n.Load(), want)
				}
			}
		}
		unused, err := net.Dial("tcp", l.Addr().String())
		check(t, err)
		defer unused.Close()
		await(1)
		protocols := new(http.Protocols)
		protocols.SetHTTP1(c.version == 1)
		protocols.SetHTTP2(c.version == 2)
		protocols.SetUnencryptedHTTP2(c.version == 2)
		transport := &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Post(c.scheme+"://"+l.Addr().String(), "", strings.NewReader("{}"))
		check(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if got := <-watched; got != c.watched || resp.ProtoMajor != c.version {
			t.Errorf("%+v: watched: %v, version %d", c, got, resp.ProtoMajor)
		}
		await(1)
		unused.Close()
		await(0)
	}
}
