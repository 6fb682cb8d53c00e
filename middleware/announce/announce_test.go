package announce_test

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/proxy/proxytest"
)

// TestChanged plays the messages of a session, and checks the notifications of changed tools and
// prompts.
func TestChanged(t *testing.T) {
	const (
		tools = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"`
		hello = `> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
		able  = `< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":"true"}}}}`
		ready = `> {"jsonrpc":"2.0","method":"notifications/initialized"}`

		listen = `> {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}`
		acked  = `< {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"notifications":{"toolsListChanged":true}}}`
		tagged = tools + `,"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`
	)
	for _, c := range []struct {
		name    string
		session []string
		want    string
	}{
		{"no message", nil, ""},
		{"legacy", []string{hello, able, ready}, tools + `}`},
		{"not initialized", []string{hello, able}, ""},
		{"not declared", []string{hello, `< {"jsonrpc":"2.0","id":0,"result":{"capabilities":{"tools":{}}}}`, ready}, ""},
		{"refused", []string{hello, `< {"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}`, ready}, ""},
		{"initialized again", []string{hello, able, ready, hello, `< {"jsonrpc":"2.0","id":0,"result":{"capabilities":{}}}`, ready}, ""},
		{"subscribed", []string{listen, acked}, tagged},
		{"not acknowledged", []string{listen}, ""},
		{"granted less", []string{listen, strings.Replace(acked, `"toolsListChanged":true`, `"toolsListChanged":false`, 1)}, ""},
		{"an id that is a number", []string{strings.Replace(listen, `"l"`, "7", 1), strings.Replace(acked, `"l"`, "7", 1)}, strings.Replace(tagged, `"l"`, "7", 1)},
		{"cancelled", []string{listen, acked, `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}`}, ""},
		{"cancelled before it is acknowledged", []string{listen, `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}`, acked}, ""},
		{"acknowledged twice", []string{listen, acked, acked}, tagged},
		{"another cancelled", []string{listen, acked, `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"k"}}`}, tagged},
		{"cancelled by the server", []string{listen, acked, `< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}`}, ""},
		{"closed", []string{listen, acked, `< {"jsonrpc":"2.0","id":"l","result":{"resultType":"complete"}}`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a announce.Announce
			s := proxytest.Start(t, a.Layer())
			for _, line := range c.session {
				way, frame, _ := strings.Cut(line, " ")
				from, to := s.Client, s.Server
				if way == "<" {
					from, to = s.Server, s.Client
				}
				from.Send(frame)
				to.Expect(frame)
			}
			var got []string
			for _, m := range a.Changed(announce.Tools, announce.Prompts) {
				got = append(got, string(m.Frame()))
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("got\n%s\nwant\n%s", text, c.want)
			}
		})
	}
}
