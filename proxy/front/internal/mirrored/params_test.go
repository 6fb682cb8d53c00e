package mirrored

import (
	"fmt"
	"net/http"
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

// A header of an argument says the same as the body, where both are compared by value.
func TestParamMismatch(t *testing.T) {
	var p Params
	p.Learn(wire.Value{Raw: []byte(`{"result":{"tools":[{"name":"f","inputSchema":{"properties":{"q":{"x-mcp-header":"Q"},"e":{"x-mcp-header":""}}}}]}}`)})
	for _, row := range []struct {
		headers   []string
		arguments string
		same      bool
	}{
		{nil, `{}`, true},
		{nil, `{"q":null}`, true},
		{nil, `{"q":"a"}`, false},
		{[]string{"a"}, `{}`, false},
		{[]string{"a"}, `{"q":null}`, false},
		{[]string{"a"}, `{"q":"a"}`, true},
		{[]string{"b"}, `{"q":"a"}`, false},
		{[]string{"a", "a"}, `{"q":"a"}`, false},
		{[]string{"1.0"}, `{"q":"1"}`, false},
		{[]string{"1.0"}, `{"q":1}`, true},
		{[]string{"1.0", "1.0"}, `{"q":1}`, false},
		{[]string{"2"}, `{"q":1}`, false},
		{[]string{"x"}, `{"q":1}`, false},
		{[]string{"1e1"}, `{"q":10}`, false},
		{[]string{"1e1"}, `{"q":1e1}`, true},
		{[]string{strings.Repeat("0", maxNumber) + "1"}, `{"q":1}`, false},
		{[]string{"true"}, `{"q":true}`, true},
		{[]string{"a"}, `{"q":{}}`, true},
		{[]string{"a"}, `{"q":[]}`, true},
	} {
		var m wire.Message
		m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f","arguments":`+row.arguments+"}}\n"))
		new(wire.Scanner).Look(&m)
		h := http.Header{}
		for _, value := range row.headers {
			h.Add("Mcp-Param-Q", value)
		}
		if why := p.Mismatch(h, &m); (why == "") != row.same {
			t.Errorf("%q and %s: %q", row.headers, row.arguments, why)
		}
	}
}
