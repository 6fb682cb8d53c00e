package wire

import "strconv"

// JSON-RPC error codes. attache uses no others: -32000 to -32099 belong to servers and
// the protocol (specification, basic/index, "Error Codes"), of which it needs one.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
	// CodeHeaderMismatch is for requests over HTTP whose headers contradict their body
	// (specification 2026-07-28, basic/transports/streamable-http).
	CodeHeaderMismatch = -32020
)

// ErrorReply returns an error reply of attache's own. id is the raw id of the request; nil becomes null, as
// JSON-RPC requires if the id cannot be read. The reply's data.source is "attache".
func ErrorReply(id []byte, code int, text string) *Message {
	return ErrorReplyWith(id, code, text, []byte(`{"source":"attache"}`))
}

// ErrorReplyWith is ErrorReply with other data, which is JSON and has a source too.
func ErrorReplyWith(id []byte, code int, text string, data []byte) *Message {
	b := replyHead(id, "error")
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	b = AppendQuote(b, text)
	b = append(append(b, `,"data":`...), data...)
	return NewMessage(Server, append(b, "}}"...))
}

// ResultReply returns a result that attache makes for the request with that raw id. It copies id and
// result. Revision 2026-07-28 demands a member resultType, such as "complete", of every result, and
// clients refuse a result without it. Clients of earlier revisions ignore it.
func ResultReply(id, result []byte) *Message {
	b := append(replyHead(id, "result"), result...)
	return NewMessage(Server, append(b, '}'))
}

// ToolErrorReply returns a tools/call result with isError, whose text is for the model: what is wrong,
// and how to put it right (SEP-1303). modern adds the resultType of [ResultReply]; a layer that does
// not know the revision passes true.
func ToolErrorReply(id []byte, text string, modern bool) *Message {
	result := append([]byte(`{"content":[{"type":"text","text":`), Quote(text)...)
	result = append(result, `}],"isError":true`...)
	if modern {
		result = append(result, `,"resultType":"complete"`...)
	}
	return ResultReply(id, append(result, '}'))
}

// ReplyText returns what a model reads in a reply: the text of a tool's result, or the
// message of an error.
func ReplyText(reply Value) string {
	if text := reply.Get("error", "message").Text(); text != "" {
		return text
	}
	for block := range reply.Get("result", "content").Elements() {
		return block.Get("text").Text()
	}
	return ""
}

// RefusalReply returns the reply to a refused tools/call: a [ToolErrorReply], so that the
// model reads why, or an error if the call asks for a task. Only a task may answer such a
// call (revision 2025-11-25, utilities/tasks: CreateTaskResult): clients fail on any other
// result, and attache has no task. In revision 2026-07-28 the server decides whether there
// is a task, so clients accept any result.
func RefusalReply(call *Message, text string, modern bool) *Message {
	if !modern && call.Get("params", "task").IsObject() {
		return ErrorReply(call.ID(), CodeInvalidParams, text)
	}
	return ToolErrorReply(call.ID(), text, modern)
}

func replyHead(id []byte, member string) []byte {
	if len(id) == 0 {
		id = []byte("null")
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(b, ',')
	return append(AppendQuote(b, member), ':')
}

// NewRequest returns a request that attache makes. params may be nil.
func NewRequest(from Peer, id []byte, method string, params []byte) *Message {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = appendMethod(append(b, ','), method, params)
	return NewMessage(from, b)
}

// NewNotification returns a notification that attache makes. params may be nil.
func NewNotification(from Peer, method string, params []byte) *Message {
	return NewMessage(from, appendMethod([]byte(`{"jsonrpc":"2.0",`), method, params))
}

func appendMethod(b []byte, method string, params []byte) []byte {
	b = AppendQuote(append(b, `"method":`...), method)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}
