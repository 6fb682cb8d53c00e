package proxy_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// The end of a session waits for work that runs, and not for work that has ended.
func TestEndDoesNotWait(t *testing.T) {
	call := func(s *proxytest.Session, name string, reaches bool) {
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q}}`, name)
		s.Client.Send(line)
		time.Sleep(2 * time.Second)
		if reaches {
			s.Server.Expect(line)
			s.Server.Send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
			time.Sleep(2 * time.Second)
		}
	}
	for _, test := range []struct {
		name, layer, arg string
		work             func(*proxytest.Session, *proxy.Control)
		answers          int // lines that the client gets
	}{
		{"nothing", "see", "", func(*proxytest.Session, *proxy.Control) {}, 0},
		{"a call", "see", "", func(s *proxytest.Session, _ *proxy.Control) { call(s, "x", true) }, 1},
		{"a notification", "see", "", func(_ *proxytest.Session, c *proxy.Control) {
			c.Notify(wire.NewNotification(wire.Server, "notifications/tools/list_changed", nil))
		}, 1},
		{"a suspended call", "hold", "1s", func(s *proxytest.Session, _ *proxy.Control) { call(s, "hold", true) }, 1},
		{"a suspended reply", "hold-reply", "1s", func(s *proxytest.Session, _ *proxy.Control) { call(s, "hold", true) }, 1},
		{"a deferred call", "later", "1s", func(s *proxytest.Session, _ *proxy.Control) { call(s, "later", false) }, 1},
		// The client gets the request, the cancellation of it, and the reply.
		{"a request without an answer", "ask", "client", func(s *proxytest.Session, _ *proxy.Control) { call(s, "ask", true) }, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				control := new(proxy.Control)
				layer := scriptLayers[test.layer](new(proxytest.Session), test.arg)
				s := proxytest.Setup{Options: proxy.Options{Control: control, Layers: []middleware.Layer{layer}}}.Start(t)
				synctest.Wait() // until Run has begun
				test.work(s, control)
				for range test.answers {
					s.Client.Next()
				}
				s.Client.Close()
				s.Exit(nil)
				began := time.Now()
				if err := s.Wait(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("the end took %v", took)
				}
			})
		})
	}
}
