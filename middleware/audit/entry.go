package audit

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// An entry gathers what is to be recorded of one call, and then of another: when the
// record is written it is used again. Who still knows it by then (the layers that the
// call is on its way out of, its hooks, a call beside it in a dry run) speaks for the
// call it was of, and is not heard: see call.
type entry struct {
	a            *Audit
	listener     func(*middleware.Call, middleware.Note) // note
	hook         middleware.ReplyHook                    // replied
	before, next *entry                                  // in flight; guarded by open.mu

	mu sync.Mutex // notes come from both directions
	// call is the one this entry is of; nil when it is over, and nothing changes any
	// more. A call stands for another only when no handler or hook of it runs any
	// more (see middleware.Call), so nobody who speaks for an earlier one has this.
	call *middleware.Call
	facts
	rules notes     // what acted
	edits notes     // what was changed, with digests in place of values
	text  record    // of those that are not remembered
	room  [192]byte // for a short id, the name of a tool and short arguments or their digest
}

// facts are what is known of one call.
type facts struct {
	number    uint64
	start     time.Time
	took      time.Duration
	trace     middleware.Trace
	method    string
	id        []byte // spelt one way
	target    []byte // the tool, the prompt or the resource, as JSON
	arguments []byte // the member of the record, with its comma
	kept      int    // how many bytes of arguments that counts as
	bytes     int
	outcome   outcome
	view      *sessionstate.Context
	sentAs    string // the tool's name for the server, "" if it is the client's
	noted     int    // how long the texts of rules and edits are
	more      int    // rules and edits beyond those kept
	raw       bool   // arguments are as they came, and a digest is to be made of them
	refused   bool
	dryRun    bool
	briefed   bool
}

// notes are objects of a record, of each its members. They are written when a layer
// tells of them, so that nothing of what it tells has to be kept.
type notes []record

// newEntry returns the entry of no call.
func (a *Audit) newEntry() *entry {
	if e, ok := a.entries.Get().(*entry); ok {
		return e
	}
	e := &entry{a: a}
	e.listener, e.hook = e.note, e.replied
	return e
}

// free gives the entry of a call back whose record is written. The caller holds e.mu.
func (e *entry) free() {
	if cap(e.text) > maxRoom {
		return
	}
	e.facts = facts{}
	clear(e.rules)
	clear(e.edits)
	e.rules, e.edits, e.text = e.rules[:0], e.edits[:0], e.text[:0]
	e.a.entries.Put(e)
}

// maxRoom is how large a buffer is kept for the next call.
const maxRoom = 16 << 10

// maxNotes is how many rules, and how many edits, of one call are recorded.
const maxNotes = 64

// begin reads a call as the client sent it.
func (a *Audit) begin(call *middleware.Call, m *wire.Message) *entry {
	e := a.newEntry()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.call, e.number, e.start = call, a.calls.Add(1), time.Now()
	e.trace, e.method, e.bytes = traceOf(call, m), m.Method(), len(m.Line())
	room := e.room[:0]
	if m.Kind() == wire.Request {
		room = e.keep(&e.id, appendSpelt(room, wire.Value{Raw: m.ID()}))
	}
	if name, ok := a.target(m); ok {
		room = e.keep(&e.target, wire.AppendQuote(room, short(name)))
	}
	e.keepArguments(room, m.Arguments())
	return e
}

// keepArguments keeps what the record will say of a call's arguments. The digest of
// short ones is made with the record, once there is a key: the log's goroutine has
// no time to wait for that.
func (e *entry) keepArguments(room []byte, v wire.Value) {
	if e.a.o.Arguments == Digest && e.a.keyed.Load() && v.Exists() && len(v.Raw) <= cap(room) {
		e.raw = true
		e.keep(&e.arguments, append(room, v.Raw...))
		return
	}
	member, clear := e.a.appendArguments(room, v)
	if e.keep(&e.arguments, member); clear {
		e.kept = len(v.Raw)
	}
}

// keep has *in be what was appended to the room, and returns the room behind it.
func (e *entry) keep(in *[]byte, appended []byte) (room []byte) {
	*in = appended
	return appended[len(appended):]
}

// target returns what a call names; ok is false for what has no name that could be
// recorded.
func (a *Audit) target(m *wire.Message) (name string, ok bool) {
	if !m.MethodIs("resources/read") {
		return m.Name().View(), true
	}
	uri := m.Get("params", "uri")
	if !uri.IsString() {
		return "", false
	}
	return (wire.Value{Raw: a.o.Redact(uri.Raw)}).View(), true
}

// replied is the hook for the call's reply.
func (e *entry) replied(ctx context.Context, reply *wire.Message) error {
	call := middleware.CallFrom(ctx)
	if e.finish(call, viewOf(call), outcomeOf(reply)) {
		e.a.open.remove(e)
		e.a.write(e)
	}
	return nil
}

// traceOf returns the trace of a call: that of the layer outside this one, or the
// one the client named (SEP-414).
func traceOf(call *middleware.Call, m *wire.Message) middleware.Trace {
	if t := call.Trace(); t != (middleware.Trace{}) {
		return t
	}
	parent := m.Meta().Get("traceparent")
	if !parent.Exists() {
		return middleware.Trace{}
	}
	// version "-" trace id "-" parent id "-" flags (W3C Trace Context, 3.2)
	parts := strings.Split(parent.View(), "-")
	if len(parts) < 4 || !isHex(parts[1], 32) || !isHex(parts[2], 16) {
		return middleware.Trace{}
	}
	return middleware.Trace{TraceID: strings.Clone(parts[1]), SpanID: strings.Clone(parts[2])}
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

// note keeps what a layer says it did. It is called from both directions.
func (e *entry) note(call *middleware.Call, n middleware.Note) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.call != call {
		return
	}
	e.dryRun = e.dryRun || n.DryRun
	e.refused = e.refused || n.Act == middleware.Refused
	switch {
	case n.Act == middleware.Skipped:
	case n.Act != middleware.Edited:
		e.keepRule(&n)
	default:
		e.briefed = e.briefed || n.Layer == "briefing" && !n.DryRun
		if len(n.Path) == 2 && n.Path[0] == "params" && n.Path[1] == "name" && !n.DryRun {
			e.sentAs = clip((wire.Value{Raw: n.After}).Text())
		}
		e.keepEdit(&n)
	}
}

func (e *entry) keepRule(n *middleware.Note) {
	e.list(&e.rules, n, func(r record) record {
		return r.text("layer", n.Layer).text("rule", n.Rule).text("act", string(n.Act)).text("why", short(n.Why))
	})
}

func (e *entry) keepEdit(n *middleware.Note) {
	e.list(&e.edits, n, func(r record) record {
		r = r.text("layer", n.Layer).text("rule", n.Rule).text("why", short(n.Why)).pointer("path", n.Path)
		r = e.a.digested(r, "before", n.Before)
		r = e.a.digested(r, "after", n.After)
		return r.text("source", short(withoutLiteral(n.Source)))
	})
}

// withoutLiteral returns the source of a value, unless it is an expression that has a
// text in it: that is a value itself, and may be a secret. The rule tells where it stands.
func withoutLiteral(source string) string {
	if strings.ContainsAny(source, "\"'") {
		return "an expression"
	}
	return source
}

// list puts a note among others, unless there are enough. write writes its members,
// if they are not remembered: then where they stand is all that is kept of them.
func (e *entry) list(in *notes, n *middleware.Note, write func(record) record) {
	if len(*in) == maxNotes {
		e.more++
		return
	}
	text, known := e.a.memo.text(n)
	if !known {
		e.text = append(e.text, '{')
		begin := len(e.text)
		e.text = write(e.text)
		text = e.text[begin:]
		e.a.memo.keep(n, text)
	}
	*in = append(*in, text)
	e.noted += len(text)
}

// pointer writes a path as a JSON Pointer (RFC 6901).
func (r record) pointer(name string, path []string) record {
	var room [128]byte
	p := room[:0]
	for _, key := range path {
		p = append(p, '/')
		for i := range len(key) {
			switch c := key[i]; c {
			case '~':
				p = append(p, "~0"...)
			case '/':
				p = append(p, "~1"...)
			default:
				p = append(p, c)
			}
		}
	}
	return r.text(name, short(string(p)))
}

// saw keeps who the call is from, for a call that has no reply.
func (e *entry) saw(call *middleware.Call, view *sessionstate.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.call == call {
		e.view = view
	}
}

// maxText is how much of a text that came over the wire is recorded, in bytes.
const maxText = 512

// clip shortens a text, and says so. What it returns may be kept.
func clip(s string) string { return strings.Clone(short(s)) }

// short is clip for a text that is written at once.
func short(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// An outcome is what came of a call.
type outcome struct {
	kind  string
	code  string // of an error, a number
	bytes int    // of the reply, 0 if none passed or it was too large to hold
}

// The kinds of results.
const (
	resultOK        = "ok"
	resultToolError = "tool_error" // a result with isError
	resultError     = "error"      // a JSON-RPC error
	resultCancelled = "cancelled"
	resultInput     = "input_required"
	resultTask      = "task"
	resultTooLarge  = "too_large" // it passed, and was not looked at
	resultUnread    = "unreadable"
	resultOther     = "other"
	resultNone      = "none" // there was no reply, or is none to such a frame
)

// outcomeOf reads a reply as the client gets it.
func outcomeOf(reply *wire.Message) outcome {
	o := outcome{bytes: len(reply.Line())}
	switch {
	case reply.TooLarge():
		o.kind, o.bytes = resultTooLarge, 0
	case !reply.Plain():
		o.kind = resultUnread
	case reply.Kind() == wire.Error:
		o.kind, o.code = resultError, number(reply.ErrorObject().Get("code"))
	default:
		o.kind = kindOf(reply.Result())
	}
	return o
}

// kindOf says what a result is, in one look at its members.
func kindOf(result wire.Value) string {
	kind, input, task, failed := wire.Value{}, false, false, false
	for m := range result.Members() {
		switch m.Key.View() {
		case "resultType":
			kind = m.Value
		case "inputRequests":
			input = true
		case "task":
			task = true
		case "isError":
			failed = string(m.Value.Raw) == "true"
		}
	}
	switch {
	case input, kind.Equals("input_required"):
		return resultInput
	case task, kind.Equals("task"):
		return resultTask
	case kind.Exists() && !kind.Equals("complete"):
		return resultOther
	case failed:
		return resultToolError
	}
	return resultOK
}

// number returns an integer as it is written, "" for anything else.
func number(v wire.Value) string {
	digits := strings.TrimPrefix(string(v.Raw), "-")
	if len(digits) == 0 || len(digits) > 10 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return string(v.Raw)
}
