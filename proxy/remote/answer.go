package remote

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"sync"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/httpstatus"
	"github.com/attache-mcp/attache/proxy/internal/inanswer"
	"github.com/attache-mcp/attache/proxy/remote/internal/outbox"
	"github.com/attache-mcp/attache/proxy/wire"
)

// read reads the answer to a message and passes it on. A notification that is answered with a stream is
// read too, because the server may send messages there, but only for lingerTime.
func (x *exchange) read(resp *http.Response) {
	defer resp.Body.Close()
	body, err := decoded(resp)
	if err != nil {
		x.fail(err.Error())
		return
	}
	switch {
	// Most often the empty body of a 202 to a notification or a reply.
	case !x.mayBeAnswered() && !isEvents(resp.Header):
		drain(resp)
	// Without an error, the client would wait until its timeout. The body of a 202 may never end, so the error
	// comes before it is read.
	case resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent:
		x.fail("the server took the request and does not answer it (" + statusText(resp.StatusCode) + ")")
		drain(resp)
	case isEvents(resp.Header):
		if !x.mayBeAnswered() {
			x.endLater()
		}
		x.readEvents(body)
	default:
		x.readJSON(resp, body)
	}
}

func isEvents(h http.Header) bool {
	switch value := h.Get("Content-Type"); value {
	case "text/event-stream":
		return true
	case "application/json": // the usual spelling needs no parser
		return false
	default:
		kind, _, _ := mime.ParseMediaType(value)
		return kind == "text/event-stream"
	}
}

// small and large have buffers for reading answers. Most answers are small or idle.
var (
	small = sync.Pool{New: func() any { return new([1 << 10]byte) }}
	large = sync.Pool{New: func() any { return new([32 << 10]byte) }}
)

// each calls feed with the bytes of a body as they arrive, and after each read flushes f. It returns
// nil at the end of the body.
func each(f *outbox.Frame, body io.Reader, feed func([]byte)) error {
	// A stream that is idle for hours keeps its buffer, so it gets a small one until a read fills that.
	first := small.Get().(*[1 << 10]byte)
	defer small.Put(first)
	into := first[:]
	for {
		n, err := body.Read(into)
		if feed(into[:n]); n > 0 {
			f.Flush()
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if n == len(into) && len(into) == len(first) { // true once, because into is then longer
			second := large.Get().(*[32 << 10]byte)
			defer large.Put(second)
			into = second[:]
		}
	}
}

// largeBody is the length in bytes above which readJSON allocates memory for the whole answer first. The
// answer is then read to its place, and not copied each time its memory would have to grow.
const largeBody = 64 << 10

// readJSON reads an answer that is one message, or an array of messages.
func (x *exchange) readJSON(resp *http.Response, body io.Reader) {
	f := &outbox.Frame{Out: x.s.out}
	defer f.Reset()
	var kept bool
	var err error
	// A Content-Length is that of the body only if it is not compressed.
	if body == resp.Body && resp.ContentLength > largeBody {
		kept, err = f.ReadBody(body, resp.ContentLength)
	}
	if !kept {
		err = each(f, body, f.Add)
	}
	if err != nil {
		f.Reset() // a line that has begun blocks all others
		x.fail("the connection to the server broke in the middle of its answer: " + err.Error())
		return
	}
	m, said := f.End(), ""
	// The text is made only if the answer may not be the reply, because that takes time.
	if m == nil || !m.Kind().IsReply() || m.ID() == nil || len(x.ids) > 1 || x.awaits(m.ID()) < 0 {
		said = elided(f.Beginning()) // before take, which may release the bytes
	}
	if m != nil {
		x.take(f, m)
		x.s.out.Flush()
	}
	if x.mayBeAnswered() {
		x.fail(fmt.Sprintf("the server's answer is not a JSON-RPC message for the request: %s, content type %q: %s",
			statusText(resp.StatusCode), elided(resp.Header.Get("Content-Type")), said))
	}
}

// refused handles an answer whose status is not a success. If its body is an error of JSON-RPC, the
// client gets that error. The fail at the end answers only the requests that still have no answer.
func (x *exchange) refused(r *refusal) {
	// beside is set first, because all replies that follow carry it: a front answers with the same status.
	if x.beside = httpstatus.Beside(r.status, elided(r.after)); x.method == "server/discover" {
		x.beside = httpstatus.BesideDiscover(r.status, elided(r.after))
	}
	// The error of a refused notification is only logged: a client that gets an error with an unknown id
	// may end the session.
	if x.mayBeAnswered() && (r.msg.Kind() == wire.Error || x.isAnswer(r)) {
		f := &outbox.Frame{Out: x.s.out}
		f.Add(r.text)
		switch m := f.End(); {
		case m == nil:
		// The error names no request of this exchange. As only this exchange can be meant, its requests get it.
		case m.Kind() == wire.Error && !x.isAnswer(r) && len(x.ids) > 0:
			// The Python SDK calls every refused request "server-error".
			x.readdress(f, m)
		default:
			m.Beside = x.beside
			x.take(f, m)
		}
		x.s.out.Flush()
		f.Reset()
	}
	text := "the server answered " + statusText(r.status)
	switch r.status {
	case http.StatusProxyAuthRequired: // only a proxy sends this status, in place of a server without TLS; for TLS see checkProxy
		text = "a proxy answered " + statusText(r.status) + proxyAdvice
	case http.StatusUnauthorized:
		text += ": it wants a credential, or another one; see server.headers"
	case http.StatusForbidden:
		text += ": it refuses access; a credential may have too few rights"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		if path.Base(x.s.url.Path) == "sse" {
			text += ": /sse is usually the address of the older transport HTTP+SSE; use that of Streamable HTTP, often /mcp"
		}
	}
	if r.after != "" {
		text += "; try again after " + elided(r.after)
		if _, err := strconv.ParseUint(r.after, 10, 31); err == nil {
			text += " s"
		}
	}
	if said := r.shown(string(r.text)); said != "" {
		text += ": " + said
	}
	x.fail(text)
}

// isAnswer reports whether a refusal is the reply to the request.
func (x *exchange) isAnswer(r *refusal) bool {
	return r.msg.Kind().IsReply() && r.msg.ID() != nil && x.awaits(r.msg.ID()) >= 0
}

// take handles a whole message of the server.
func (x *exchange) take(f *outbox.Frame, m *wire.Message) {
	// A reply to a request whose id cannot be read cannot be recognised, so any reply counts as that.
	if k := m.Kind(); k != wire.Request && k != wire.Notification {
		x.unreadable = 0
	}
	// For a reply to 1 with the id 1.0, OfReply edits m, so that the client finds its request.
	id := callid.OfReply(m, func(id []byte) bool { return x.awaits(id) >= 0 })
	switch {
	// An array answers an array as it is. One that was too long to be held cannot be taken apart.
	case m.Kind() == wire.Batch && (m.TooLarge() || x.first != nil && x.method == ""):
		x.takeBatch(f, m)
	case m.Kind() == wire.Batch:
		x.takeMembers(f, m)
	// A client would execute it twice, such as ask its user the same question again.
	case m.Kind() == wire.Request && x.isRepeated(id):
		f.Reset()
	case !m.Kind().IsReply():
		if x.first != nil && len(x.more) == 0 { // the answer to an array is that of several requests
			m.Beside = &inanswer.To{ID: x.first}
		}
		f.Deliver()
	// In the cases that follow, m is a reply.
	case id == nil && m.Kind() == wire.Error && len(x.ids) > 0:
		x.readdress(f, m)
	case id == nil:
		f.Deliver()
	default:
		i := x.awaits(id)
		// Some servers repeat on a resumed stream what they sent on others (server-everything).
		if i < 0 && (x.resumed || x.first != nil && len(x.ids) == 0) {
			x.s.log.Warn("an answer of the remote server to a request that another stream answers was dropped")
			f.Reset()
			return
		}
		// In this order: answered lets the next message go, which needs what learn sets, and the outbox
		// demands that nothing waits for the caller when Deliver passes a line.
		x.learn(m)
		if i >= 0 {
			x.answered(i)
		}
		f.Deliver()
	}
}

// isRepeated reports whether this request of the server came before. Servers repeat the last messages
// on a resumed stream. isRepeated remembers the id.
func (x *exchange) isRepeated(id []byte) bool {
	if id == nil {
		return false
	}
	again := x.resumed && x.s.serverRequests.Take(id)
	x.s.serverRequests.Add(id)
	return again
}

// takeMembers handles an array of messages that does not answer an array. Clients on stdio cannot read
// it, so it passes on its messages one by one.
func (x *exchange) takeMembers(f *outbox.Frame, array *wire.Message) {
	for e := range array.Root().Elements() {
		// A frame of its own, because take may deliver or edit each, and array lies in the memory of f.
		one := &outbox.Frame{Out: f.Out}
		one.Add(e.Raw)
		if m := one.End(); m != nil && m.Kind() != wire.Batch {
			x.take(one, m)
		}
		one.Reset()
	}
	f.Reset()
}

// takeBatch handles an array of messages that answers an array (revision 2025-03-26).
func (x *exchange) takeBatch(f *outbox.Frame, m *wire.Message) {
	if m.TooLarge() {
		x.ids = x.ids[:0] // its content was not read; assume that it has all the answers
	}
	for member := range m.Messages() {
		if !member.Kind().IsReply() || member.ID() == nil {
			continue
		}
		if i := x.awaits(member.ID()); i >= 0 {
			x.answered(i)
		}
	}
	if len(x.ids) == 0 {
		x.markSettled()
	}
	f.Deliver()
}

// readdress answers the requests of this exchange with an error that has no id, or the id of no
// request. Servers send such an error if they refuse a message before they read it. A client that did
// not find its id would wait forever.
func (x *exchange) readdress(f *outbox.Frame, m *wire.Message) {
	object := bytes.Clone(errorObject(m).Raw)
	f.Reset()
	if object == nil {
		return // fail will answer
	}
	// wire.ErrorReply would drop members of the error that only its server knows.
	for len(x.ids) > 0 {
		line := append([]byte(`{"jsonrpc":"2.0","id":`), x.ids[0]...)
		line = append(append(append(line, `,"error":`...), object...), '}', '\n')
		x.answered(0)
		x.s.out.Write(line, x.beside)
	}
}

// errorObject returns the error of m. It returns no value if the error was too long to be kept, or is
// not a JSON-RPC error object: clients cannot read a message such as {"error":"invalid_token"}.
func errorObject(m *wire.Message) wire.Value {
	object := m.ErrorObject()
	if _, ok := integer(object.Get("code")); !ok || !object.Get("message").IsString() {
		return wire.Value{}
	}
	return object
}

// learn records what a result says about the server, before the client has it. It removes from the
// result what the client must not see.
func (x *exchange) learn(m *wire.Message) {
	switch {
	case m.Kind() != wire.Result || m.TooLarge():
	case x.method == "initialize" && !x.modern:
		x.s.session.agree(m.Result(), x.ticket.generation)
	case x.method == "tools/list" && x.modern:
		x.s.mirror.learn(m, x.s.log)
	}
}
