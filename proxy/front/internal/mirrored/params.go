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
	maxBytes      = 1 << 20 // estimated memory of the arguments of a session that are kept
	paramBytes    = 100     // estimated memory of an argument without its names
	maxAnnotation = 16      // how deep the properties of a schema may nest
)

// A param is an argument of a tool that clients repeat in a header. Its path leads through objects only: an element of an
// array has no name.
type param struct {
	header string
	path   []string
}

// Params has the arguments of the tools of a session that clients repeat in headers. The zero
// value has none. Any goroutine may call its methods: the goroutine of the relay calls Learn, and those of the
// handlers call Mismatch.
type Params struct {
	mu   sync.Mutex
	tool map[string][]param
	n    int // estimated memory of tool in bytes
}

// Learn records the annotated arguments in a reply to tools/list (SEP-2243). A front must check their headers
// itself, because the server behind attache gets none of them. A tool that
// is not in a list of this session is not checked.
func (p *Params) Learn(frame wire.Value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tool) == 0 && !bytes.Contains(frame.Raw, []byte(annotation)) {
		return
	}
	for tool := range frame.Get("result", "tools").Elements() {
		name := tool.Get("name").Text()
		found := annotations(tool.Get("inputSchema"), nil)
		p.n -= size(name, p.tool[name]) // the tool may have been listed before, with others
		delete(p.tool, name)
		n := size(name, found)
		if n == 0 || p.n+n > maxBytes {
			continue
		}
		if p.tool == nil {
			p.tool = map[string][]param{}
		}
		p.tool[name] = found
		p.n += n
	}
}

// size estimates how many bytes of memory the annotated arguments of a tool need, 0 without any.
func size(tool string, params []param) (n int) {
	for _, a := range params {
		n += paramBytes + len(tool) + len(a.header)
		for _, name := range a.path {
			n += len(name)
		}
	}
	return n
}

// annotations returns the annotated properties of a schema, also those of nested objects.
func annotations(schema wire.Value, path []string) (all []param) {
	if len(path) >= maxAnnotation {
		return nil
	}
	for p := range schema.Get("properties").Members() {
		at := append(path[:len(path):len(path)], p.Key.Text())
		if name := p.Value.Get(annotation); name.IsString() && name.Text() != "" {
			all = append(all, param{name.Text(), at})
		}
		all = append(all, annotations(p.Value, at)...)
	}
	return all
}

// Mismatch describes the first header of an argument that differs from the body of a call, "" if
// there is none. It reads the body as the client sent it, before rules edit it.
func (p *Params) Mismatch(h http.Header, m *wire.Message) string {
	if !m.MethodIs("tools/call") {
		return ""
	}
	p.mu.Lock()
	params := p.tool[m.Get("params", "name").Text()]
	p.mu.Unlock() // Learn replaces a list and does not change it
	for _, a := range params {
		value := m.Get(append([]string{"params", "arguments"}, a.path...)...)
		if why := compareParam(h, paramPrefix+a.header, value); why != "" {
			return why
		}
	}
	return ""
}

// compareParam describes how a header differs from the value of an argument, "" if it does
// not. It compares numbers by value.
func compareParam(h http.Header, name string, value wire.Value) string {
	values := h.Values(name)
	switch {
	case len(values) == 0 && (!value.Exists() || value.IsNull()):
		return ""
	case !value.Exists() || value.IsNull():
		return fmt.Sprintf("there is a header %s, but no such argument", name)
	// An object or an array cannot be mirrored. A header that was sent all the same says nothing.
	case value.IsObject() || value.IsArray():
		return ""
	case value.IsString():
		return compare(h, name, value.Text())
	case len(values) == 1 && sameNumber(values[0], string(value.Raw)):
		return ""
	}
	return compare(h, name, string(value.Raw))
}

// maxNumber is the length in bytes of the longest number that is compared by value.
const maxNumber = 32

// sameNumber reports whether two numbers are equal. It does not compare numbers with an exponent,
// because a short text could be a very long number.
func sameNumber(a, b string) bool {
	if len(a) > maxNumber || len(b) > maxNumber || strings.ContainsAny(a+b, "eE/_") {
		return false
	}
	x, ok := new(big.Rat).SetString(a)
	y, also := new(big.Rat).SetString(b)
	return ok && also && x.Cmp(y) == 0
}
