// Package toolresult adds texts of attache to the results of tools, in the part that the
// client shows to the model.
//
// Clients show different parts of a result. The package decides by a table of measurements
// ([Clients]) and by what it knows about the connection ([Memory]). A text is added as the first
// block of content or, if the client shows only structuredContent, as a member of that. Several
// layers may add a text to one result: the text of the layer whose hook runs last comes first.
package toolresult

import (
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Structured is the way to handle a result that has structuredContent. Some clients show
// the model nothing else of such a result.
type Structured string

// The values of Structured. If one cannot be applied to a result, the text block is added, and
// it depends on the client whether the model sees it.
const (
	// Auto depends on what the client is known to show. It is the default.
	Auto Structured = "auto"
	// Member adds the text to structuredContent, and to the output schema in tools/list.
	Member Structured = "member"
	// TextOnly removes structuredContent if the tool declares no outputSchema.
	TextOnly Structured = "text-only"
	// Defer only adds the text block.
	Defer Structured = "defer"
)

// A Response locates the result of a tool in a reply.
type Response struct {
	Tool   string // "" if unknown, or too long
	client string // the name of the client that made the request
	inTask bool   // the result is inside a task in the reply
}

// Expect returns the location of the tool result in the reply to a request. It reports
// false if the request does not ask for one. It is called in the client's direction.
func (k *Memory) Expect(m *wire.Message) (r Response, ok bool) {
	switch {
	case m.MethodIs("tools/call"):
		return Response{Tool: k.toolName(m.Name()), client: k.ClientName()}, true
	case m.MethodIs("tasks/result"):
		return Response{Tool: k.tool(m), client: k.ClientName()}, true
	case m.MethodIs("tasks/get"):
		return Response{Tool: k.tool(m), client: k.ClientName(), inTask: true}, true
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

// Handle reports whether reply has the handle of a task instead of a result, and remembers
// the task's tool. It recognizes tasks of the legacy and the modern era.
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

// IsError is the reason that Unfit returns for an error.
const IsError = "the reply is an error"

// Unfit returns the reason why a reply cannot carry a text, "" if it can. It can if it has
// the final result of a tool that the model sees.
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
		return "the result is not final"
	case !r.Get(reply, "content").IsArray():
		return "the result has no content"
	}
	switch client := ClientOf(r.client); {
	case client.FirstAlone:
		return "the client shows only the first block of a result"
	case client.FirstText && isError(r, reply):
		return "the tool failed, and the client shows only the first text of its result"
	}
	return ""
}

// isError reports whether the result says that the tool has failed.
func isError(r Response, reply *wire.Message) bool {
	return string(r.Get(reply, "isError").Raw) == "true"
}

// isEmpty reports whether v is absent, null, or an empty string, array or object.
func isEmpty(v wire.Value) bool {
	for range v.Elements() {
		return false
	}
	for range v.Members() {
		return false
	}
	return !v.Exists() || v.IsNull() || v.IsArray() || v.IsObject() || v.Equals("")
}

// appOnly reports whether only a user interface calls the tool.
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
