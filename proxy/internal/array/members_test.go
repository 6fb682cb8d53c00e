package array

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

func TestCrowded(t *testing.T) {
	for n, want := range map[int]bool{0: false, Most: false, Most + 1: true} {
		line := "[" + strings.TrimSuffix(strings.Repeat("{},", n), ",") + "]\n"
		if got := Crowded(wire.Parse(wire.Client, []byte(line))); got != want {
			t.Errorf("an array of %d members is crowded: %v", n, got)
		}
	}
}

func TestRepliesOnly(t *testing.T) {
	const reply, failure, request = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{}}`, `{"jsonrpc":"2.0","id":1,"method":"x"}`
	for line, want := range map[string]bool{
		reply: true, failure: true, request: false,
		"[" + reply + "," + failure + "]": true, "[" + reply + "," + request + "]": false, "[" + request + "," + reply + "]": false,
	} {
		if got := RepliesOnly(wire.Parse(wire.Client, []byte(line+"\n"))); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
