package mirrored

import (
	"fmt"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

// The memory for names that a server chooses is bounded. Tools with short names keep their headers.
func TestLearnedNamesAreBounded(t *testing.T) {
	var p Params
	learn := func(tool string) {
		p.Learn(wire.Value{Raw: fmt.Appendf(nil, `{"result":{"tools":[{"name":%q,"inputSchema":{"properties":{"q":{"x-mcp-header":"Q"}}}}]}}`, tool)})
	}
	learn("search")
	for i := range 4 {
		learn(strings.Repeat("n", maxBytes/2) + fmt.Sprint(i))
	}
	kept := 0
	for tool := range p.tool {
		kept += len(tool)
	}
	if kept > maxBytes || p.tool["search"] == nil {
		t.Errorf("%d bytes of names are kept, and the first tool is known: %t", kept, p.tool["search"] != nil)
	}
	for i := range 4 { // listed again
		learn(strings.Repeat("n", maxBytes/2) + fmt.Sprint(i))
	}
	if p.n > maxBytes || len(p.tool) != 2 {
		t.Errorf("%d bytes are counted for %d tools", p.n, len(p.tool))
	}
}
