// Package toolresult puts texts of attache into the results of tools, where the client shows
// them to the model.
//
// Clients show the model different parts of a result. The package decides by a table of
// measurements ([Clients]) and by what it has learnt on the connection ([Memory]). A text is a
// block in front of content; where the client shows nothing but structuredContent, it is a
// member of that. Several layers may put a text into one result: the layer whose hook runs
// last has its text first.
package toolresult

import (
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Structured says what to do with a result that has structuredContent. Some clients show
// the model nothing else of such a result.
type Structured string

// The ways of Structured. Where one cannot be done, the text block is added, and whether
// the model sees that depends on the client.
const (
	// Auto goes by what the client is known to show; the default.
	Auto Structured = "auto"
	// Member adds the text to structuredContent, and to the output schema in tools/list.
	Member Structured = "member"
	// TextOnly drops structuredContent where the tool declares no outputSchema.
	TextOnly Structured = "text-only"
	// Defer adds the text block and nothing else.
	Defer Structured = "defer"
)

// A Response is where a reply has the result of a tool.
type Response struct {
	Tool   string // "" if it is not known
	inTask bool   // the result is that of a task, which the reply has
}

// Expect returns where the reply to a request will have the result of a tool. It reports
// false for a request that asks for none. It is called in the client's direction.
func (k *Memory) Expect(m *wire.Message) (r Response, ok bool) {
	switch {
	case m.MethodIs("tools/call"):
		return Response{Tool: k.toolName(m.Name())}, true
	case m.MethodIs("tasks/result"):
		return Response{Tool: k.tool(m)}, true
	case m.MethodIs("tasks/get"):
		return Response{Tool: k.tool(m), inTask: true}, true
	}
	return Response{}, false
}

// Get returns a member of the result.
func (r Response) Get(reply *wire.Message, keys ...string) wire.Value {
	return reply.Get(r.Path(keys...)...)
}

// Path returns the path of a member of the result.
func (r Response) Path(keys ...string) []string {
	if r.inTask {
		return append([]string{"result", "result"}, keys...)
	}
	return append([]string{"result"}, keys...)
}

// Handle reports whether reply is the handle of a task in place of a result, which has content, and
// remembers the task's tool: of a legacy task, or of one of the modern era.
func (k *Memory) Handle(r Response, reply *wire.Message) bool {
	if reply.Get("result", "content").Exists() {
		return false
	}
	id := reply.Get("result", "task", "taskId").Text()
	if id == "" && reply.Get("result", "resultType").Equals("task") {
		id = reply.Get("result", "taskId").Text()
	}
	k.learnTask(id, r.Tool)
	return id != ""
}

// IsError is what Unfit says of an error.
const IsError = "the reply is an error"

// Unfit says why a reply cannot carry a text, "" if it can: then it has a finished tool
// result for the model.
func (r Response) Unfit(catalog *middleware.Catalog, reply *wire.Message) string {
	kind := r.Get(reply, "resultType")
	switch {
	case r.appOnly(catalog):
		return "the tool is for a user interface, the model does not see its results"
	case !reply.Plain():
		return "the reply is ambiguous or too large, and is not edited"
	case reply.Kind() != wire.Result:
		return IsError
	case !isEmpty(kind) && !kind.Equals("complete"), !isEmpty(r.Get(reply, "task")), !isEmpty(r.Get(reply, "inputRequests")):
		return "the result is not the last word on the call"
	case !r.Get(reply, "content").IsArray():
		return "the result has no content"
	}
	return ""
}

// isEmpty reports whether v is absent, null, or a text, array or object with nothing in it.
func isEmpty(v wire.Value) bool {
	for range v.Elements() {
		return false
	}
	for range v.Members() {
		return false
	}
	return !v.Exists() || v.IsNull() || v.IsArray() || v.IsObject() || v.Equals("")
}

// appOnly reports whether calls of the tool come from a user interface alone.
func (r Response) appOnly(catalog *middleware.Catalog) bool {
	t, _ := catalog.Tool(r.Tool)
	if t == nil {
		return false
	}
	visibility := wire.Value{Raw: t.Meta}.Get("ui", "visibility")
	for e := range visibility.Elements() {
		if !e.Equals("app") {
			return false
		}
	}
	return visibility.IsArray()
}

// A Carrier is how a result takes a text.
type Carrier uint8

const (
	// InBlock: as a block of content.
	InBlock Carrier = iota
	// InMember: as a member of structuredContent.
	InMember
	// InsteadOf: as a block of content, and structuredContent goes.
	InsteadOf
)

// Unseen says why a result may not show its model a text.
const Unseen = "the client may show structuredContent alone"

// A Plan says how a result takes a text, and whether the client shows it there.
type Plan struct {
	How  Carrier
	Seen bool
}

// Plan returns the plan for a reply.
func (k *Memory) Plan(call *middleware.Call, way Structured, catalog *middleware.Catalog, r Response, reply *wire.Message) Plan {
	structured := r.Get(reply, "structuredContent")
	if !structured.Exists() || structured.IsNull() || string(r.Get(reply, "isError").Raw) == "true" {
		return Plan{InBlock, true}
	}
	client := k.Client()
	switch {
	case way == Member || way == Auto && client.StructuredAlone:
		free := !structured.Get(memberName).Exists() || call.Value(memberKey{}) != nil
		if k.hasMember(r.Tool) && structured.IsObject() && free {
			return Plan{InMember, true}
		}
	case way == TextOnly:
		if t, _ := catalog.Tool(r.Tool); t != nil && t.Passed && t.OutputSchema == nil {
			return Plan{InsteadOf, true}
		}
	}
	// With auto, a client that is not known counts as one that shows the block.
	return Plan{InBlock, client.ContentAlone || way == Auto && !client.StructuredAlone}
}

// A Text is what a layer puts into a result.
type Text struct {
	Text string
	Meta []byte // the _meta of its block, raw JSON
	// Why is why the text goes into this result, and Source where it came from, for notes
	// of the layer Layer under its rule Rule.
	Layer, Rule, Why, Source string
}

// Put puts the text into the reply as planned. protocol is the revision in use.
func (p Plan) Put(call *middleware.Call, r Response, reply *wire.Message, t Text, protocol string) error {
	if p.How == InMember {
		quoted, err := addMember(call, r, reply, t.Text)
		if err == nil {
			t.note(call, "the client shows the model nothing but structuredContent of a result that has it", nil, quoted, r.Path("structuredContent", memberName))
		}
		return err
	}
	added := t.block(protocol)
	if err := reply.Prepend(added, r.Path("content")...); err != nil {
		return err
	}
	t.note(call, t.Why, nil, added, r.Path("content", "0"))
	if p.How != InsteadOf {
		return nil
	}
	before := r.Get(reply, "structuredContent").Raw
	if err := reply.Delete(r.Path("structuredContent")...); err != nil {
		return err
	}
	t.note(call, "some clients show the model nothing else of a result that has it", before, nil, r.Path("structuredContent"))
	return nil
}

// InResult reports whether the result has the very text already: as the member, or as the
// first block. The text is compared and not a marker, which a server can write.
func InResult(r Response, reply *wire.Message, text string) (member, block bool) {
	for e := range r.Get(reply, "content").Elements() {
		block = e.Get("text").Equals(text)
		break
	}
	return r.Get(reply, "structuredContent", memberName).Equals(text), block
}

func (t Text) note(call *middleware.Call, why string, before, after []byte, path []string) {
	if !call.Noted() {
		return
	}
	source := t.Source
	if after == nil {
		source = ""
	}
	call.Note(middleware.Note{Layer: t.Layer, Rule: t.Rule, Act: middleware.Edited, Why: why, Path: path, Before: before, After: after, Source: source})
}

// block returns the content block in the form the revision knows: annotations
// came with 2025-03-26, a block's _meta with 2025-06-18. An unknown revision is
// taken for the newest.
func (t Text) block(revision string) []byte {
	out := append([]byte(`{"type":"text","text":`), wire.Quote(t.Text)...)
	if revision == "" || revision >= "2025-03-26" {
		out = append(out, `,"annotations":{"audience":["assistant"],"priority":1}`...)
	}
	if revision == "" || revision >= "2025-06-18" {
		out = append(append(out, `,"_meta":`...), t.Meta...)
	}
	return append(out, '}')
}
