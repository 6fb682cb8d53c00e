package remote_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/remote"
	"github.com/attache-mcp/attache/proxy/wire"
)

// modernMeta is the _meta member of a request of revision 2026-07-28.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// A modern server answers each request with a result, and records the headers.
type modern struct {
	mu     sync.Mutex
	tools  string // the result of tools/list
	sent   []http.Header
	answer func(w http.ResponseWriter, r request) bool
}

func (s *modern) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m := wire.Parse(wire.Client, body)
	s.mu.Lock()
	s.sent = append(s.sent, r.Header)
	s.mu.Unlock()
	if s.answer != nil && s.answer(w, request{r.Header, r.Method, m.Method(), string(body)}) {
		return
	}
	result := `{"resultType":"complete"}`
	if m.Method() == "tools/list" {
		result = s.tools
	}
	w.Header().Set("Content-Type", asJSON)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID(), result)
}

// mirrored returns the headers in the last request that mirror its body.
func (s *modern) mirrored() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.sent[len(s.sent)-1]
	var all []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if strings.HasPrefix(name, "Mcp-") {
			all = append(all, name+": "+h.Get(name))
		}
	}
	return strings.Join(all, "\n")
}

// annotatedTools is a list with one tool, whose arguments are mirrored in headers.
const annotatedTools = `{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{` +
	`"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"},` +
	`"deep":{"type":"object","properties":{"er":{"type":"string","x-mcp-header":"Deeper"}}},"plain":{"type":"string"}}}}]}`

// U18 and U19: the headers mirror the body that is sent.
func TestU18U19Mirror(t *testing.T) {
	for _, c := range []struct{ name, method, params, want string }{
		{"list", "tools/list", ``, ``},
		{"call", "tools/call", `"name":"x","arguments":{"region":"eu"},`, "Mcp-Name: x"},
		{"read", "resources/read", `"uri":"file:///a",`, "Mcp-Name: file:///a"},
		{"prompt", "prompts/get", `"name":"p",`, "Mcp-Name: p"},
		{"task", "tasks/get", `"taskId":"9",`, "Mcp-Name: 9"},
		{"name that is not ASCII", "tools/call", `"name":"café",`, "Mcp-Name: =?base64?Y2Fmw6k=?="},
		{"escaped name", "tools/call", `"name":"a\u0062",`, "Mcp-Name: ab"},
		{"text", "tools/call", `"name":"t","arguments":{"region":"eu west"},`, "Mcp-Name: t\nMcp-Param-Region: eu west"},
		{"empty text", "tools/call", `"name":"t","arguments":{"region":""},`, "Mcp-Name: t\nMcp-Param-Region: =?base64??="},
		{"edge spaces", "tools/call", `"name":"t","arguments":{"region":" a"},`, "Mcp-Name: t\nMcp-Param-Region: =?base64?IGE=?="},
		{"line break", "tools/call", `"name":"t","arguments":{"region":"a\nb"},`, "Mcp-Name: t\nMcp-Param-Region: =?base64?YQpi?="},
		{"tab inside", "tools/call", `"name":"t","arguments":{"region":"a\tb"},`, "Mcp-Name: t\nMcp-Param-Region: a\tb"},
		{"like the sentinel", "tools/call", `"name":"t","arguments":{"region":"=?base64?x?="},`, "Mcp-Name: t\nMcp-Param-Region: =?base64?PT9iYXNlNjQ/eD89?="},
		{"null", "tools/call", `"name":"t","arguments":{"region":null},`, "Mcp-Name: t"},
		{"absent", "tools/call", `"name":"t","arguments":{},`, "Mcp-Name: t"},
		{"numbers", "tools/call", `"name":"t","arguments":{"n":9007199254740991,"b":false},`, "Mcp-Name: t\nMcp-Param-B: false\nMcp-Param-N: 9007199254740991"},
		{"smallest", "tools/call", `"name":"t","arguments":{"n":-9007199254740991,"b":true},`, "Mcp-Name: t\nMcp-Param-B: true\nMcp-Param-N: -9007199254740991"},
		{"42.0", "tools/call", `"name":"t","arguments":{"n":42.0},`, "Mcp-Name: t\nMcp-Param-N: 42"},
		{"nested", "tools/call", `"name":"t","arguments":{"deep":{"er":"x"}},`, "Mcp-Name: t\nMcp-Param-Deeper: x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &modern{tools: annotatedTools}
			cl := connect(t, s.ServeHTTP)
			cl.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
			cl.expect(`{"jsonrpc":"2.0","id":1,"result":` + annotatedTools + `}`)
			cl.send(`{"jsonrpc":"2.0","id":2,"method":"` + c.method + `","params":{` + c.params + modernMeta + `}}`)
			cl.expect(`{"jsonrpc":"2.0","id":2,…`)
			want := "Mcp-Method: " + c.method + "\n" + c.want + "\nMcp-Protocol-Version: 2026-07-28"
			got := s.mirrored()
			if sorted(got) != sorted(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			cl.close()
		})
	}
}

func sorted(lines string) string {
	all := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(lines, " ", "␠"), "\t", "␉"))
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// A tool with invalid annotations is removed from the list; other tools are unchanged. In the revisions before
// 2026-07-28, which have no annotations, nothing is removed.
func TestU20Annotations(t *testing.T) {
	good := `{"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`
	for name, schema := range map[string]string{
		"not a token":       `{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`,
		"empty":             `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`,
		"not a string":      `{"properties":{"a":{"type":"string","x-mcp-header":1}}}`,
		"number":            `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
		"array":             `{"properties":{"a":{"type":"array","x-mcp-header":"A"}}}`,
		"twice":             `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
		"in items":          `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`,
		"in oneOf":          `{"oneOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`,
		"in a definition":   `{"$defs":{"x":{"type":"string","x-mcp-header":"A"}}}`,
		"on the schema":     `{"type":"string","x-mcp-header":"A"}`,
		"line break inside": `{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nB: c"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := &modern{tools: `{"tools":[` + good + `, {"name":"bad","inputSchema":` + schema + `} ],"ttlMs":0}`}
			c := connect(t, s.ServeHTTP)
			c.send(`{"jsonrpc":"2.0","id":0,"method":"tools/list"}`)
			c.expect(`{"jsonrpc":"2.0","id":0,"result":` + s.tools + `}`)
			c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
			if got := c.receive(); strings.Contains(got, `"bad"`) || !strings.Contains(got, good) || !strings.Contains(got, `"ttlMs":0`) {
				t.Errorf("got %s", got)
			}
			c.close()
			if !strings.Contains(c.log.String(), "tools of the remote server are not shown") {
				t.Errorf("logged %s", c.log)
			}
		})
	}
}

// A schema that a malicious server nests deeply passes without delay.
func TestDeepSchemas(t *testing.T) {
	for name, nested := range map[string][3]string{
		"objects": {`{"a":`, `1`, `}`},
		"arrays":  {`[`, ``, `]`},
	} {
		t.Run(name, func(t *testing.T) {
			const depth = 200_000
			deep := strings.Repeat(nested[0], depth) + nested[1] + strings.Repeat(nested[2], depth)
			s := &modern{tools: `{"tools":[{"name":"deep","inputSchema":{"properties":{"a":` + deep + `}}}]}`}
			c := connect(t, s.ServeHTTP)
			began := time.Now()
			c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
			if got := c.receive(); !strings.Contains(got, deep) {
				t.Errorf("got %d bytes", len(got))
			}
			if took := time.Since(began); took > 30*time.Second { // without a limit: a minute or more; with it: 0.1 s
				t.Errorf("it took %v", took)
			}
			c.close()
		})
	}
}

// If the server refuses the headers of a call, attache lists its tools, and sends the call once
// more if the list has changed.
func TestU21HeaderMismatch(t *testing.T) {
	const refused = `{"jsonrpc":"2.0","id":2,"error":{"code":-32020,"message":"Header mismatch"}}`
	for _, c := range []struct {
		name, tools, want string
		calls             int32
	}{
		{"tools changed", annotatedTools, `{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete"}}`, 2},
		{"tools unchanged", `{"tools":[]}`, refused, 1},
		// The client did not request the list, and must not see a part of it.
		{"list too long", `{"tools":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`, refused, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &modern{tools: c.tools}
			var calls atomic.Int32
			s.answer = func(w http.ResponseWriter, r request) bool {
				if r.method != "tools/call" {
					return false
				}
				calls.Add(1)
				if r.Get("Mcp-Param-Region") == "eu" {
					return false
				}
				w.WriteHeader(400)
				io.WriteString(w, refused)
				return true
			}
			cl := connect(t, s.ServeHTTP, func(o *remote.Options) { o.Hold = 128 << 10 })
			cl.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"region":"eu"},` + modernMeta + `}}`)
			cl.expect(c.want)
			cl.close()
			if n := calls.Load(); n != c.calls {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// A modern request has no session header, and is cancelled by closing its stream, not by a
// message.
func TestModernCancelled(t *testing.T) {
	ended := make(chan struct{})
	s := &modern{}
	s.answer = func(w http.ResponseWriter, r request) bool {
		if r.method != "subscriptions/listen" {
			return false
		}
		writeEvents(w, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}`+"\n\n")
		<-ended
		return true
	}
	closed := make(chan struct{})
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		go func() {
			<-r.Context().Done()
			if strings.HasPrefix(r.Header.Get("Mcp-Method"), "subscriptions") {
				close(closed)
				close(ended)
			}
		}()
		s.ServeHTTP(w, r)
	})
	c.send(`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{` + modernMeta + `}}`)
	c.expect(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	<-closed
	c.send(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"x",` + modernMeta + `}}`)
	c.expect(`{"jsonrpc":"2.0","id":8,…`)
	c.close()
	for _, h := range s.sent {
		if h.Get("Mcp-Session-Id") != "" || h.Get("Mcp-Method") == "notifications/cancelled" {
			t.Errorf("sent %v", h)
		}
	}
}
