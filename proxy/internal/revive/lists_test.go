package revive

import (
	"slices"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

// Clients take an empty cursor for the end of a list, and so does a list that is compared.
func TestEmptyCursor(t *testing.T) {
	var p Pages
	reply := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}],"nextCursor":""}}`))
	if next := p.Page("tools/list", nil, reply); next != nil || !slices.Equal(p.Methods(), []string{"tools/list"}) {
		t.Errorf("got the cursor %q and the lists %q", next, p.Methods())
	}
}
