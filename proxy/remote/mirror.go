package remote

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/internal/headername"
	"github.com/attache-mcp/attache/proxy/internal/headertext"
	"github.com/attache-mcp/attache/proxy/wire"
)

// versionKey is the member of _meta in which a request of 2026-07-28 names its revision.
const versionKey = "io.modelcontextprotocol/protocolVersion"

// A mirror records, from the lists of tools that the server has sent, which arguments are mirrored in
// headers (revision 2026-07-28, basic/transports/streamable-http, "Custom headers").
type mirror struct {
	mu    sync.Mutex
	tools map[string][]parameter
	all   bool // tools also has the tools without such arguments, so that forwardParams tells them from unknown ones
}

// A parameter is an argument that is mirrored in a header.
type parameter struct {
	header string   // Mcp-Param-…
	path   []string // of properties, from the arguments on
}

// maxMirrored is how many tools a mirror keeps, and maxMirror the estimated memory of each in bytes.
const maxMirrored, maxMirror = 10_000, 16 << 10

// mirrorMessage sets the headers of its trace context, and those that mirror a message of revision
// 2026-07-28. Earlier revisions have no such headers.
func (x *exchange) mirrorMessage(m *wire.Message) {
	meta := m.Get("params", "_meta")
	x.addTrace(m, meta)
	version := meta.Get(versionKey)
	switch {
	case version.IsString() && len(version.Raw) <= maxMirroredText:
		x.s.mu.Lock()
		x.s.modern = version.Text()
		x.s.mu.Unlock()
		x.version = version.Text()
	// generation is 0 as long as the client has not sent initialize, which 2026-07-28 does not have.
	case m.Kind() == wire.Notification && x.s.session.ticket().generation == 0:
		// A notification need not name the revision.
		x.s.mu.Lock()
		x.version = x.s.modern
		x.s.mu.Unlock()
	}
	if x.version == "" {
		return
	}
	params := m.Params()
	x.mirrorTexts(x.version, x.method, params.Get("name").Text(), params.Get("uri").Text())
	if strings.HasPrefix(x.method, "tasks/") { // SEP-2663
		setMirror(x.headers, "Mcp-Name", params.Get("taskId").Text())
	}
	if x.method == "tools/call" {
		known := x.s.mirror.arguments(x.headers, params.Get("name").Text(), params.Get("arguments"))
		if forward := x.s.o.Forward; forward != nil && known != nil {
			x.forwardParams(forward(m.ID()), known)
		}
	}
}

// paramPrefix is the prefix of headers that mirror arguments.
const paramPrefix = "Mcp-Param-"

// forwardParams copies the headers of the client of a front that mirror arguments which the tool does
// not have, because intermediaries must forward them. The others were computed from the body, in which
// an argument may be pinned.
func (x *exchange) forwardParams(sent http.Header, known []parameter) {
	for name, values := range sent {
		ours := slices.ContainsFunc(known, func(p parameter) bool { return p.header == name })
		if strings.HasPrefix(name, paramPrefix) && !ours {
			x.headers[name] = slices.Clone(values)
		}
	}
}

// mirrorTexts sets the headers for version, method, and name or uri.
func (x *exchange) mirrorTexts(version, method, name, uri string) {
	if !x.modern { // when it is sent again, cancelExchange may read modern at the same time
		x.modern = true
	}
	x.headers = http.Header{"Mcp-Protocol-Version": {headertext.Encode(version)}, "Mcp-Method": {headertext.Encode(method)}}
	switch method {
	case "tools/call", "prompts/get":
		setMirror(x.headers, "Mcp-Name", name)
	case "resources/read":
		setMirror(x.headers, "Mcp-Name", uri)
	}
}

// maxMirroredText is the length in bytes of the longest text that becomes a header. Most servers refuse longer
// headers, and attache keeps the headers of a request until the answer.
const maxMirroredText = 64 << 10

// setMirror sets a header to text, if text is not too long.
func setMirror(h http.Header, name, text string) {
	if len(text) <= maxMirroredText {
		h[name] = []string{headertext.Encode(text)}
	}
}

// arguments sets the headers that mirror the arguments of a call. An argument that is absent or null must
// have no header, and an array, an object or a fraction cannot have one. It returns the mirrored arguments
// of the tool, nil if they are not known.
func (v *mirror) arguments(h http.Header, tool string, arguments wire.Value) []parameter {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.tools[tool] {
		value := arguments.Get(p.path...)
		switch raw := string(value.Raw); {
		case value.IsString():
			setMirror(h, p.header, value.Text())
		case raw == "true" || raw == "false":
			h[p.header] = []string{raw}
		default:
			if n, ok := integer(value); ok {
				h[p.header] = []string{strconv.FormatInt(n, 10)}
			}
		}
	}
	return v.tools[tool]
}

// integer returns the value of a number that is an integer, such as 1 or 1.0.
func integer(v wire.Value) (int64, bool) {
	if n, err := strconv.ParseInt(string(v.Raw), 10, 64); err == nil {
		return n, true
	}
	if len(v.Raw) == 0 || v.Raw[0] != '-' && (v.Raw[0] < '0' || v.Raw[0] > '9') {
		return 0, false
	}
	const largest = 1<<53 - 1
	f, err := strconv.ParseFloat(string(v.Raw), 64)
	// In floating point, an integer beyond 2^53 - 1 may not be the one that was written.
	if err != nil || f != float64(int64(f)) || f > largest || f < -largest {
		return 0, false
	}
	return int64(f), true
}

// learn records the tools of a list, or of one page of it, so tools that are not on it stay. It removes
// from the list the tools whose annotations are not valid, as a client of the transport must.
func (v *mirror) learn(m *wire.Message, log *slog.Logger) {
	list := m.Get("result", "tools")
	bad := map[string]bool{}
	for tool := range list.Elements() {
		name := tool.Get("name").Text()
		found, ok := annotated(tool.Get("inputSchema"))
		if !ok {
			bad[name] = true
			continue
		}
		v.set(name, found)
	}
	if len(bad) == 0 {
		return // most often; the list passes as it came
	}
	log.Warn("tools of the remote server are not shown, because an x-mcp-header annotation is not valid, or a tool has more than 100",
		"tools", elided(strings.Join(slices.Sorted(maps.Keys(bad)), " ")))
	drop := func(tool wire.Value) bool { return bad[tool.Get("name").Text()] }
	_ = m.Apply(wire.RemoveElements(list, drop)...) // after an error the list is unchanged
}

// set records the mirrored arguments of a tool. Without any, the tool needs an entry only if all is set.
func (v *mirror) set(tool string, found []parameter) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.tools, tool) // it may have changed
	if len(found) == 0 && !v.all {
		return
	}
	if v.tools == nil {
		v.tools = map[string][]parameter{}
	}
	// The server chooses the names, so their number and their length are bounded.
	size := len(tool)
	for _, p := range found {
		const fixed, name = 40, 16 // of a parameter, and of a string in its path, without their text
		size += fixed + len(p.header) + name*len(p.path) + len(strings.Join(p.path, ""))
	}
	if len(v.tools) < maxMirrored && size <= maxMirror {
		v.tools[tool] = append([]parameter{}, found...) // not nil even if empty: the tool is known
	}
}

// annotated returns the mirrored parameters of a schema. It reports false if an annotation is not
// valid.
func annotated(schema wire.Value) ([]parameter, bool) {
	w := annotations{ok: true}
	w.walk(schema, nil, true, 0)
	return w.found, w.ok
}

type annotations struct {
	found []parameter
	ok    bool // false after an annotation that is not valid
}

// maxNesting is how deep annotations are looked for. Each level reads the text of those inside again,
// so a schema that a malicious server nests without limit would take forever.
const maxNesting = 100

// walk reads a part of a schema. reachable says that only properties lead to it from the root: an
// annotation elsewhere, such as below items or oneOf, makes the tool invalid.
func (w *annotations) walk(schema wire.Value, path []string, reachable bool, depth int) {
	if depth++; depth > maxNesting {
		return
	}
	if schema.IsArray() {
		for e := range schema.Elements() {
			w.walk(e, path, false, depth)
		}
	}
	for member := range schema.Members() {
		switch key := member.Key.Text(); key {
		case "x-mcp-header":
			w.add(schema, member.Value, path, reachable)
		case "properties":
			for p := range member.Value.Members() {
				w.walk(p.Value, append(slices.Clone(path), p.Key.Text()), reachable, depth)
			}
		case "default", "const", "enum", "examples": // values, not schemas
		default:
			w.walk(member.Value, path, false, depth)
		}
	}
}

// maxAnnotations is how many arguments of a tool may be mirrored. Each is a header of every call.
const maxAnnotations = 100

// add records the annotation with that name. It is not valid if it breaks one of the conditions of the
// specification: a token, each once whatever its case, on a text, an integer or a boolean that only
// properties lead to.
func (w *annotations) add(schema, name wire.Value, path []string, reachable bool) {
	if len(w.found) >= maxAnnotations {
		w.ok = false
		return
	}
	// In this form names that differ only in case are equal, as in HTTP, and twice finds them.
	header := http.CanonicalHeaderKey(paramPrefix + name.Text())
	kind := schema.Get("type").Text()
	twice := slices.ContainsFunc(w.found, func(p parameter) bool { return p.header == header })
	if !reachable || len(path) == 0 || !name.IsString() || !headername.IsValid(name.Text()) || twice || kind != "string" && kind != "integer" && kind != "boolean" {
		w.ok = false
		return
	}
	w.found = append(w.found, parameter{header, path})
}

const (
	// listPages is how many pages of a list learnAgain requests at most.
	listPages = 50
	// listTime is how long that may take.
	listTime = 10 * time.Second
)

// learnAgain requests the server's tools because the server has refused the headers of a call (-32020),
// and computes the headers again. It reports whether they have changed; else the server would refuse them
// again. Its own requests have the _meta of the call, because every request of 2026-07-28 needs one.
func (v *mirror) learnAgain(x *exchange) bool {
	ctx, cancel := context.WithTimeout(x.ctx, listTime)
	defer cancel()
	line := x.body.bytes()
	if line == nil {
		return false
	}
	before, meta, cursor := x.headers, string(wire.Parse(wire.Client, line).Get("params", "_meta").Raw), ""
	for range listPages {
		params := `{"_meta":` + meta
		if cursor != "" {
			params += `,"cursor":` + string(wire.Quote(cursor))
		}
		m := wire.NewRequest(wire.Client, []byte(`"attache-tools"`), "tools/list", []byte(params+"}"))
		h := http.Header{"Mcp-Protocol-Version": {headertext.Encode(x.version)}, "Mcp-Method": {"tools/list"}}
		reply, err := x.s.ask(ctx, m, h)
		// What the pages before this one said is learned all the same.
		if err != nil || reply.Kind() != wire.Result {
			break
		}
		cursor = reply.Get("result", "nextCursor").Text()
		v.learn(reply, x.s.log)
		if cursor == "" {
			break
		}
	}
	// From the bytes that will be sent: layers may have changed the arguments that the client wrote.
	x.mirrorMessage(wire.Parse(wire.Client, line))
	return !maps.EqualFunc(before, x.headers, slices.Equal[[]string])
}
