package proxy_test

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/proxytest"
)

// A reply is matched to its call even in an array with thousands of members, and even if the
// client did not send the call in an array. The other members pass unchanged.
func TestReplyInALargeArray(t *testing.T) {
	s := proxytest.Start(t, editLayer(nil, "a"))
	rest := strings.Repeat(`,{"jsonrpc":"2.0","method":"notifications/x"} ,1`, 3000)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`
	s.Client.Send(call)
	s.Server.Next()
	s.Server.Send(`[{}` + rest + `,{"jsonrpc":"2.0","id":1,"result":{}}` + rest + `]`)
	s.Client.Expect(`[{}` + rest + `,{"jsonrpc":"2.0","id":1,"result":{"a":true}}` + rest + `]`)
	s.Client.Send(call)
	s.Server.Next()
	s.Server.Send(`[{}` + rest + `]`)
	s.Client.Expect(`[{}` + rest + `]`)
}

// An array of many members takes only a little more memory than its bytes.
func TestLargeArrayMemory(t *testing.T) {
	const size = 2 << 20
	s := proxytest.Start(t, editLayer(nil, "a"))
	s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	s.Server.Next()
	line := `[{}` + strings.Repeat(",{}", size/3) + `,{"jsonrpc":"2.0","method":"notifications/x"}]`
	before := totalAlloc()
	s.Server.Send(line)
	s.Client.Expect(line)
	if grown := totalAlloc() - before; grown > 20*size {
		t.Errorf("a line of %d MiB made the process allocate %d MiB", size>>20, grown>>20)
	}
}
