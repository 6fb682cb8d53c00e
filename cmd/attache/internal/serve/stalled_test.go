package serve

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// A request ends if its client no longer reads from the connection, also if that is one of HTTP/2 or a local
// socket, for which setTCPOptions does nothing.
func TestStalledClient(t *testing.T) {
	for name, request := range map[string]string{
		"HTTP/1.1": "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		// The preface, SETTINGS, and HEADERS with ":method: GET", ":scheme: http", ":path: /" and ":authority: a".
		"HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" +
			"\x00\x00\x06\x01\x05\x00\x00\x00\x01\x82\x86\x84\x41\x01a",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{Options: Options{Log: slog.New(slog.DiscardHandler)}, settings: &config.ServeSettings{}, quiet: quietTimer{quiet: func() {}}, counts: map[string]*counts{otherPaths: {}}}
			ended := make(chan time.Duration, 1)
			server := s.httpServer()
			server.Handler = s.logRequests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				began, rc := time.Now(), http.NewResponseController(w)
				for err := error(nil); err == nil; err = rc.Flush() {
					check(t, rc.SetWriteDeadline(time.Now().Add(writeTime)))
					_, _ = io.WriteString(w, "x")
				}
				ended <- time.Since(began)
			}))
			l := make(connListener, 1)
			go s.serveOn(server, l)
			ours, theirs := net.Pipe()
			l <- ours
			_, err := io.WriteString(theirs, request)
			check(t, err)
			select {
			case took := <-ended:
				if took > 2*writeTime {
					t.Errorf("%s: the request ended after %s", name, took)
				}
			case <-time.After(24 * time.Hour):
				t.Errorf("%s: the request does not end", name)
			}
			theirs.Close()
			server.Close()
		})
	}
}
