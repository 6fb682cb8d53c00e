package proxy_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
)

// Messages that the layers do not see are reported to Options.Aside, whether the relay refuses
// them or sends them on.
func TestAside(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}`
	twin := strings.Replace(call, `"name":"a"`, `"name":"a","Name":"b"`, 1)
	long := strings.Replace(call, `"a"`, `"`+strings.Repeat("x", 70_000)+`"`, 1)
	tests := []struct{ name, line, why string }{
		{"plain", call, ""},
		{"a reply", `{"jsonrpc":"2.0","id":7,"result":{},"error":{}}`, ""},
		{"a reply that some parsers read as a request", `{"jsonrpc":"2.0","id":7,"result":{},"Method":"tools/call"}`, "result: a name differs from one that matters only in letter case, blanks or invisible characters"},
		{"ambiguous", twin, "request: a name differs from one that matters only in letter case, blanks or invisible characters"},
		{"unreadable", `{"jsonrpc"`, "unreadable: not one JSON value"},
		{"long", long, "request: longer than the hold limit"},
		{"in a batch", `[` + twin + `]`, "request: a name differs from one that matters only in letter case, blanks or invisible characters"},
		{"a batch with too many members", `[{}` + strings.Repeat(",{}", 1000) + `]`, "batch: an array of more members than the proxy takes apart"},
	}
	for _, enforce := range []bool{false, true} {
		for _, test := range tests {
			t.Run(fmt.Sprintf("%s, enforce %t", test.name, enforce), testInBubble(func(t *testing.T) {
				var got []string
				s := proxytest.Setup{Options: proxy.Options{
					Layers: []middleware.Layer{{Name: "enforce", Enforces: enforce}},
					Hold:   64 << 10,
					Aside: func(a proxy.Aside) {
						if (a.Code != 0) != enforce {
							t.Errorf("Code is %d, enforce %t", a.Code, enforce)
						}
						got = append(got, a.Message.Kind().String()+": "+a.Why)
					},
				}}.Start(t)
				s.Client.Send(test.line)
				s.Client.Close()
				s.Server.Close()
				s.Wait()
				if text := strings.Join(got, "; "); text != test.why {
					t.Errorf("reported %q, want %q", text, test.why)
				}
			}))
		}
	}
}

// If Aside panics, the frame is sent on or refused all the same, and the session continues.
func TestAsidePanics(t *testing.T) {
	const twins = `{"jsonrpc":"2.0","id":1,"method":"x","Method":"y"}`
	for _, enforce := range []bool{false, true} {
		s := proxytest.Setup{Options: proxy.Options{
			Layers: []middleware.Layer{{Name: "enforce", Enforces: enforce}},
			Aside:  func(proxy.Aside) { panic("broken aside") },
		}}.Start(t)
		s.Client.Send(twins)
		if enforce {
			s.Client.Next()
		} else {
			s.Server.Expect(twins)
		}
		s.Client.Send(`{"jsonrpc":"2.0","method":"z"}`)
		s.Server.Expect(`{"jsonrpc":"2.0","method":"z"}`)
	}
}

// testInBubble returns a test that runs in a bubble of testing/synctest, where the time-outs at the
// end of a session cost no time.
func testInBubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}
