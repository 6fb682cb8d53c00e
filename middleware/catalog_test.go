package middleware_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// TestCatalog plays testdata/catalog.txt with a catalogue and a layer in front of it that
// notes, at each tools/call, the catalogue's entry for the tool. With "catalog=ask" that
// layer asks the server if the catalogue does not know the tool.
func TestCatalog(t *testing.T) {
	proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{
		"catalog": func(s *proxytest.Session, arg string) middleware.Layer {
			r := reader{catalog: new(middleware.Catalog), s: s, asks: arg == "ask"}
			return middleware.Layer{Name: "reader", Wrap: func(next middleware.Handler) middleware.Handler {
				return r.wrap(r.catalog.Layer().Wrap(next))
			}}
		},
	}}.Play(t, "testdata/catalog.txt")
}

type reader struct {
	catalog *middleware.Catalog
	s       *proxytest.Session
	asks    bool
}

func (r *reader) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if !m.MethodIs("tools/call") {
			return next(ctx, m)
		}
		tool, known := r.catalog.Tool(m.Name().Text())
		call := middleware.CallFrom(ctx)
		if ready := r.ask(call, m, known); ready != nil {
			call.Suspend(m, ready, 2*middleware.StartTimeout, func(ctx context.Context, m *wire.Message) error {
				tool, known := r.catalog.Tool(m.Name().Text())
				r.s.Note("%s", show(tool, known))
				return next(ctx, m)
			})
			return nil
		}
		r.s.Note("%s", show(tool, known))
		return next(ctx, m)
	}
}

func (r *reader) ask(call *middleware.Call, m *wire.Message, known bool) <-chan struct{} {
	if known || !r.asks {
		return nil
	}
	return r.catalog.Ask(call, m)
}

func show(t *middleware.Tool, known bool) string {
	switch {
	case !known:
		return "unknown"
	case t == nil:
		return "no such tool"
	}
	return fmt.Sprintf("%s in=%s out=%s hints=%s meta=%s passed=%t", t.Name, t.InputSchema, t.OutputSchema, t.Annotations, t.Meta, t.Passed)
}

// A catalogue uses bounded memory, and a tool that does not fit is unknown, not absent.
func TestCatalogBounds(t *testing.T) {
	entry := func(name, schema string) string { return `{"name":"` + name + `","inputSchema":` + schema + `}` }
	var many []string
	for i := range 10_001 {
		many = append(many, entry(fmt.Sprint("t", i), `{}`))
	}
	large := `"` + strings.Repeat("x", 3<<20) + `"`
	for _, test := range []struct {
		name     string
		tools    []string
		fits     string
		omitted  string
		oldKnown bool
	}{
		{"too many", many, "t0", "t10000", false},
		{"too large", []string{entry("a", large), entry("b", large), entry("c", `{}`)}, "c", "b", false},
		{"large once", []string{entry("a", large), entry("a", large)}, "a", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c middleware.Catalog
			learn(t, &c, entry("old", `{}`))
			for range 2 { // the room of removed tools is reused
				learn(t, &c, test.tools...)
				if tool, known := c.Tool(test.fits); tool == nil || !known {
					t.Errorf("%s is missing", test.fits)
				}
				if tool, known := c.Tool(test.omitted); tool != nil || known != test.oldKnown {
					t.Errorf("%s: present %v, known %v; want known %v", test.omitted, tool != nil, known, test.oldKnown)
				}
			}
		})
	}
}

// A tool that is listed again unchanged is the same Tool.
func TestCatalogKeepsTools(t *testing.T) {
	var c middleware.Catalog
	const a, b = `{"name":"a","inputSchema":{"x":1}}`, `{"name":"b"}`
	learn(t, &c, a, b)
	before, _ := c.Tool("a")
	learn(t, &c, b, a)
	if after, _ := c.Tool("a"); after != before {
		t.Error("the same entry became another Tool")
	}
	learn(t, &c, `{"name":"a","inputSchema":{"x":2}}`)
	if after, _ := c.Tool("a"); after == before || string(before.InputSchema) != `{"x":1}` {
		t.Errorf("a Tool was changed: %s", before.InputSchema)
	}
}

// A long cursor finds the next page. A request that the server does not answer keeps no long cursor.
func TestCatalogKeepsNoLongCursors(t *testing.T) {
	var c middleware.Catalog
	long := `"` + strings.Repeat("x", 1<<20)
	ask(t, &c, "")(`{"tools":[{"name":"a"}],"nextCursor":` + long + `1"}`)
	if _, known := c.Tool("b"); known {
		t.Error("the list is complete after its first page")
	}
	ask(t, &c, long+`2"`)(`{"tools":[]}`) // of another list
	if _, known := c.Tool("b"); known {
		t.Error("another list completes this one")
	}
	ask(t, &c, long+`1"`)(`{"tools":[{"name":"c"}]}`)
	if _, known := c.Tool("b"); !known {
		t.Error("the list is not complete after its last page")
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var unanswered []func(string)
	for range 50 {
		unanswered = append(unanswered, ask(t, &c, long+`"`))
	}
	runtime.GC()
	if runtime.ReadMemStats(&after); int(after.HeapAlloc)-int(before.HeapAlloc) > 10<<20 {
		t.Errorf("%d requests keep %d bytes", len(unanswered), after.HeapAlloc-before.HeapAlloc)
	}
	runtime.KeepAlive(unanswered)
}

// learn runs a complete list that the client asked for through a catalogue.
func learn(t *testing.T, c *middleware.Catalog, tools ...string) {
	t.Helper()
	ask(t, c, "")(`{"tools":[` + strings.Join(tools, ",") + `]}`)
}

// ask runs a request for the page with the raw cursor through a catalogue, and returns a function for its result.
func ask(t *testing.T, c *middleware.Catalog, cursor string) (answer func(result string)) {
	t.Helper()
	var params []byte
	if cursor != "" {
		params = []byte(`{"cursor":` + cursor + `}`)
	}
	handler := c.Layer().Wrap(func(context.Context, *wire.Message) error { return nil })
	call := new(relayed.Call)
	call.Reset(nil, true)
	ctx := &relayed.Context{Context: t.Context(), Call: call}
	testkit.Check(t, handler(ctx, wire.NewRequest(wire.Client, []byte("1"), "tools/list", params)))
	return func(result string) {
		t.Helper()
		reply := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":`+result+`}`))
		for _, hook := range call.Hooks() {
			testkit.Check(t, hook(ctx, reply))
		}
	}
}
