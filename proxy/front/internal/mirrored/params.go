package mirrored

import (
	"bytes"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	annotation    = "x-mcp-header"
	paramPrefix   = "Mcp-Param-"
	maxAnnotated  = 10_000 // tools of a session whose annotations are kept
	maxAnnotation = 16     // how deep the properties of a schema may nest
)

// An annotated is an argument of a tool that its clients repeat in a header.
type annotated struct {
	header string
	path   []string
}

// Params has the arguments of the tools of a session that come in headers too. The zero value
// has none. Its methods may be called from any goroutine.
type Params struct {
	mu   sync.Mutex
	tool map[string][]annotated
}

// Learn reads in the reply to tools/list which arguments come in headers too. Servers check
// them, and what stands behind attache gets none of the headers.
func (p *Params) Learn(frame wire.Value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tool) == 0 && !bytes.Contains(frame.Raw, []byte(annotation)) {
		return
	}
	for tool := range frame.Get("result", "tools").Elements() {
		name := tool.Get("name").Text()
		found := annotations(tool.Get("inputSchema"), nil)
		if len(found) == 0 {
			delete(p.tool, name)
			continue
		}
		if p.tool == nil {
			p.tool = map[string][]annotated{}
		}
		if len(p.tool) < maxAnnotated {
			p.tool[name] = found
		}
	}
}

// annotations returns the annotated properties of a schema, also those within objects.
func annotations(schema wire.Value, path []string) (all []annotated) {
	if len(path) >= maxAnnotation {
		return nil
	}
	for p := range schema.Get("properties").Members() {
		at := append(path[:len(path):len(path)], p.Key.Text())
		if name := p.Value.Get(annotation); name.IsString() && name.Text() != "" {
			all = append(all, annotated{strings.Clone(name.Text()), at})
		}
		all = append(all, annotations(p.Value, at)...)
	}
	return all
}

// Mismatch says which header of an argument differs from the body of a call, "" if none does.
func (p *Params) Mismatch(h http.Header, m *wire.Message) string {
	if !m.MethodIs("tools/call") {
		return ""
	}
	p.mu.Lock()
	params := p.tool[m.Get("params", "name").Text()]
	p.mu.Unlock()
	for _, a := range params {
		value := m.Get(append([]string{"params", "arguments"}, a.path...)...)
		if why := compareParam(h, paramPrefix+a.header, value); why != "" {
			return why
		}
	}
	return ""
}

// compareParam says how a header differs from the value of an argument, "" if it does
// not. An integer is compared as a number.
func compareParam(h http.Header, name string, value wire.Value) string {
	values := h.Values(name)
	switch {
	case len(values) == 0 && (!value.Exists() || value.IsNull()):
		return ""
	case !value.Exists() || value.IsNull():
		return fmt.Sprintf("the header %s is there, and the argument is not", name)
	case value.IsObject() || value.IsArray():
		return ""
	case value.IsString():
		return compare(h, name, value.Text())
	case len(values) == 1 && sameNumber(values[0], string(value.Raw)):
		return ""
	}
	return compare(h, name, string(value.Raw))
}

// maxNumber is how long numbers are that are compared, in bytes: an exponent makes a
// short text a long number.
const maxNumber = 32

func sameNumber(a, b string) bool {
	if len(a) > maxNumber || len(b) > maxNumber || strings.ContainsAny(a+b, "eE/_") {
		return false
	}
	x, ok := new(big.Rat).SetString(a)
	y, also := new(big.Rat).SetString(b)
	return ok && also && x.Cmp(y) == 0
}
