package front

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/attache-mcp/attache/proxy/front/internal/answer"
	"github.com/attache-mcp/attache/proxy/front/internal/body"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// protocolKey is the member of _meta in which a request of revision 2026-07-28 names its revision.
const protocolKey = "io.modelcontextprotocol/protocolVersion"

// A message is the body of a POST.
type message struct {
	m        wire.Message
	members  []wire.Value // of an array
	id       []byte       // raw; nil unless it is one request
	request  *http.Request
	revision string // in _meta of a request of revision 2026-07-28 or later
	doubt    wire.Ambiguity
}

// scanners has scanners for reuse, because they are large.
var scanners = sync.Pool{New: func() any { return new(wire.Scanner) }}

// parse scans a body that ends in a newline, with names as wire.Scanner.ArgumentNames. It changes
// line ends within the body to spaces; after that nobody may change the body. If the body is not a
// message, code and text describe the error to answer with.
//
// Most bodies are plain, and one scan finds everything that the front needs. For other bodies, json.Valid checks
// the parts that the scan did not check, and LookEnvelope finds the members. The relay decides whether such a
// message may pass; the front uses the doubt only to compare headers.
func parse(data []byte, names [][]string) (p *message, code int, text string) {
	p = &message{}
	p.m.Reset(wire.Client, data)
	scanner := scanners.Get().(*wire.Scanner)
	scanner.ArgumentNames = names
	scanner.Look(&p.m) // faster than json.Valid
	if !p.m.Plain() {
		// A plain frame has no line end inside.
		body.OneLine(data)
		p.m.Reset(wire.Client, data)
		scanner.Look(&p.m)
	}
	scanners.Put(scanner)
	p.m.Fixed, p.doubt = true, p.m.Ambiguity() // LookEnvelope forgets it
	switch {
	case p.m.Plain() && p.m.Kind() != wire.Batch:
	case !json.Valid(p.m.Frame()):
		return nil, wire.CodeParseError, "the body is not JSON"
	case !p.m.LookEnvelope() || p.m.Kind() == wire.Unreadable:
		return nil, wire.CodeInvalidRequest, "the body is not a JSON-RPC message"
	case p.m.Kind() == wire.Batch:
		p.members = slices.Collect(p.m.Root().Elements())
		return p, 0, ""
	}
	if p.m.Kind() != wire.Request {
		return p, 0, ""
	}
	if p.id = p.m.Get("id").Raw; p.m.ID() == nil && !callid.HasOneID(p.m.Root()) {
		return p, wire.CodeInvalidRequest, "a request has one id, a string or a number"
	}
	p.revision = p.m.Get("params", "_meta", protocolKey).Text()
	return p, 0, ""
}

// calls returns a call for each request in the message. Their replies go to t, as the requests of one array are
// answered in one response.
func (p *message) calls(t *stream) (all []*call) {
	if p.m.Kind() != wire.Batch {
		if p.id == nil {
			return nil
		}
		return []*call{p.call(t, p.id, p.m.Get("method"), p.m.Get("params", "_meta", "progressToken"))}
	}
	for _, v := range p.members {
		id, method := v.Get("id"), v.Get("method")
		if id.Exists() && method.Exists() && !id.IsNull() {
			all = append(all, p.call(t, id.Raw, method, v.Get("params", "_meta", "progressToken")))
		}
	}
	return all
}

// call returns the call of one request. It copies the id, because the call outlives the body, whose memory may be lent:
// see body.Buffer.Lend.
func (p *message) call(t *stream, id []byte, method, token wire.Value) *call {
	if token.IsNull() { // as from clients that write every member
		token = wire.Value{}
	}
	return &call{
		Request: answer.Request{
			Raw:        bytes.Clone(id),
			Initialize: method.Equals("initialize"),
			Discovers:  method.Equals("server/discover"),
			Modern:     p.revision != "",
		},
		id: callid.Text(id), token: callid.Text(token.Raw), stream: t, request: p.request,
		listsTools: p.revision != "" && method.Equals("tools/list"),
		subscribes: method.Equals("subscriptions/listen"),
	}
}
