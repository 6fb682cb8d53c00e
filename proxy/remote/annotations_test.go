package remote

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A malicious server cannot make attache compare very many annotations, or names of tools, with each other.
func TestManyAnnotations(t *testing.T) {
	var properties, tools strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&properties, `,"p%d":{"type":"string","x-mcp-header":"h%d"}`, i, i)
		fmt.Fprintf(&tools, `,{"name":"t%d","inputSchema":{"x-mcp-header":1}}`, i)
	}
	many := `{"name":"many","inputSchema":{"properties":{` + properties.String()[1:] + `}}}`
	m := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`+many+tools.String()+`,{"name":"good","inputSchema":{}}]}}`+"\n"))
	began := time.Now()
	for tool := range m.Get("result", "tools").Elements() {
		for range tool.Get("inputSchema", "properties").Members() {
		}
	}
	once := time.Since(began) // to read the list once is the measure: it takes longer on a slow or busy machine, too
	began = time.Now()
	new(mirror).learn(m, slog.New(slog.DiscardHandler))
	// It takes about 10 times as long. Without its bounds it would compare each annotation with all others.
	if learn := time.Since(began); learn > 100*once {
		t.Errorf("learn took %v, and reading the list once %v", learn, once)
	}
	if got := string(m.Get("result", "tools").Raw); got != `[{"name":"good","inputSchema":{}}]` {
		t.Errorf("%d bytes of tools are left", len(got))
	}
}
