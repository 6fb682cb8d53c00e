package audit

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// ConnOptions remove the secrets of a connection from its records.
type ConnOptions struct {
	// Redact removes values that look like secrets, or are named so, from a JSON text. It
	// is used for Redacted arguments and for URIs of resources. nil removes everything.
	Redact func(raw []byte) []byte
	// Scrub removes known secrets from a whole record; nil removes nothing.
	Scrub func(record []byte) []byte
}

// Conn records the calls of one client connection.
type Conn struct {
	*Shared
	redact, scrub func([]byte) []byte
	memo          memo
	identity      atomic.Pointer[identity] // in the last record; most calls have the same. Both directions use it.

	mu       sync.Mutex
	inFlight []*entry // oldest first
}

// Connect returns the layers of one connection.
func (s *Shared) Connect(o ConnOptions) *Conn {
	c := &Conn{Shared: s, redact: o.Redact, scrub: o.Scrub}
	if c.redact == nil {
		c.redact = func([]byte) []byte { return []byte(`"redacted"`) }
	}
	if c.scrub == nil {
		c.scrub = func(record []byte) []byte { return record }
	}
	return c
}

// Layer returns the layer that records calls. It must run outside all others except
// trace.
func (c *Conn) Layer() middleware.Layer {
	return middleware.Layer{Name: "audit", Wrap: c.wrap, Enforces: c.o.Required}
}

func (c *Conn) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From != wire.Client:
		case isRecorded(m):
			return c.handle(ctx, m, next)
		case m.MethodIs("notifications/cancelled"):
			c.recordCancelled(m.Get("params", "requestId"))
		}
		return next(ctx, m)
	}
}

func isRecorded(m *wire.Message) bool {
	return m.MethodIs("tools/call") || m.MethodIs("prompts/get") || m.MethodIs("resources/read")
}

func (c *Conn) handle(ctx context.Context, m *wire.Message, next middleware.Handler) error {
	call := middleware.CallFrom(ctx)
	e := c.begin(call, m)
	call.Listen(false, e.listener)
	if c.o.Required {
		call.SetValue(entryKey{}, e)
	}
	if m.Kind() != wire.Request { // there is no reply to wait for
		err := next(ctx, m)
		if e.end(call, sessionstate.ContextOf(call), outcome{result: resultNone}) {
			c.record(e)
		}
		return err
	}
	c.mu.Lock()
	c.inFlight = append(c.inFlight, e)
	c.mu.Unlock()
	call.OnReply(e.hook)
	err := next(ctx, m)
	e.setView(call, sessionstate.ContextOf(call)) // for a call that gets no reply
	return err
}

// Identified notes who made a call, for a record without a reply. Layer does so for each call, but
// too early for one that waits before its context is attached.
func (c *Conn) Identified(call *middleware.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.inFlight {
		e.setView(call, sessionstate.ContextOf(call))
	}
}

func (e *entry) recordReply(ctx context.Context, reply *wire.Message) error {
	call := middleware.CallFrom(ctx)
	// If the call has ended before, the entry may be that of another call now, which must stay in the list.
	if e.end(call, sessionstate.ContextOf(call), outcomeOf(reply)) {
		e.c.remove(e)
		e.c.record(e)
	}
	return nil
}

// recordCancelled records the oldest call with the id, because it may not have a reply.
func (c *Conn) recordCancelled(id wire.Value) {
	if !id.Exists() {
		return
	}
	want := appendID(nil, id)
	if e := c.endOldest(resultCancelled, func(e *entry) bool { return bytes.Equal(e.id, want) }); e != nil {
		c.record(e)
	}
}

// appendID appends an id without escapes, because peers may escape it differently.
func appendID(dst []byte, id wire.Value) []byte {
	if id.IsString() {
		return append(append(dst, '"'), id.View()...)
	}
	return append(dst, id.Raw...)
}

// Close records the calls that will get no reply.
func (c *Conn) Close() {
	for {
		e := c.endOldest(resultNone, func(*entry) bool { return true })
		if e == nil {
			return
		}
		c.record(e)
	}
}

// endOldest ends the oldest call in flight for which match returns true, and returns its
// entry, or nil. An entry in the list is not used for another call while the list is
// locked. Its call may have ended; then it is about to be removed.
func (c *Conn) endOldest(result string, match func(*entry) bool) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.inFlight {
		if match(e) && e.end(nil, nil, outcome{result: result}) {
			c.inFlight = slices.Delete(c.inFlight, i, i+1)
			return e
		}
	}
	return nil
}

// remove removes an entry whose call has ended from the calls in flight.
func (c *Conn) remove(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.inFlight, e); i >= 0 {
		c.inFlight = slices.Delete(c.inFlight, i, i+1)
	}
}

// record writes the record of a call that has ended to the log.
func (c *Conn) record(e *entry) {
	c.reserved.Add(int64(-e.reserved))
	e.record = e.complete(e.record)
	c.append(e.record)
	e.free()
}

// entryKey is the key of the value that holds a call's entry for the gate.
type entryKey struct{}

// An entry collects the content of a call's record. It is reused for other calls: with
// new buffers for each call, an audited call takes 40 % longer (BenchmarkChain).
type entry struct {
	s        *Shared
	listener func(*middleware.Call, middleware.Note) // the method note
	hook     middleware.ReplyHook                    // the method recordReply

	mu sync.Mutex // both directions add notes
	// call is the entry's call, nil when that has ended. A Call is used for another
	// request only when no handler or hook of the earlier one runs. So a late note or
	// reply of an earlier request has another Call, and is ignored.
	call *middleware.Call
	facts

	// Buffers, which are kept for the next call.
	id           []byte // see appendID
	target       []byte // the quoted name of the tool, prompt or resource
	arguments    record // the member with the arguments
	rules, edits record // JSON objects, each followed by a comma
	record       record // the whole record
}

type facts struct {
	c            *Conn
	number       uint64
	start        time.Time
	took         time.Duration
	trace        middleware.Trace
	method       string
	reserved     int // bytes of arguments, see Shared.reserve
	requestBytes int
	outcome      outcome
	view         *sessionstate.Context
	sentAs       string // the name of the tool as sent to the server, if it differs
	notes        int    // the number of notes
	omitted      int    // the number of notes beyond maxNotes
	refused      bool
	dryRun       bool
	briefed      bool
}

// maxNotes bounds the rules and edits in the record of one call.
const maxNotes = 128

func (s *Shared) newEntry() *entry {
	if e, ok := s.entries.Get().(*entry); ok {
		return e
	}
	e := &entry{s: s}
	e.listener, e.hook = e.note, e.recordReply
	return e
}

// free returns the entry of a recorded call to the pool, unless its buffers are large.
func (e *entry) free() {
	if cap(e.id)+cap(e.target)+cap(e.arguments)+cap(e.rules)+cap(e.edits)+cap(e.record) > maxBuffers {
		return
	}
	e.facts = facts{}
	e.id, e.target, e.arguments = e.id[:0], e.target[:0], e.arguments[:0]
	e.rules, e.edits, e.record = e.rules[:0], e.edits[:0], e.record[:0]
	e.s.entries.Put(e)
}

// maxBuffers bounds the buffers of an entry in the pool, in bytes.
const maxBuffers = 16 << 10

// begin returns the entry of a call as the client sent it.
func (c *Conn) begin(call *middleware.Call, m *wire.Message) *entry {
	e := c.newEntry()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.call = call
	e.facts = facts{
		c: c, number: c.calls.Add(1), start: time.Now(), trace: call.Trace(),
		method: m.Method(), requestBytes: len(m.Line()),
	}
	if target := c.target(m); target != "" {
		e.target = wire.AppendQuote(e.target, short(target))
	}
	if m.Kind() == wire.Request {
		e.id = appendID(e.id, wire.Value{Raw: m.ID()})
	}
	if arguments := m.Arguments(); arguments.Exists() {
		e.setArguments(arguments.Raw)
	}
	return e
}

// target returns the name of the tool, prompt or resource, or "".
func (c *Conn) target(m *wire.Message) string {
	if !m.MethodIs("resources/read") {
		return m.Name().View()
	}
	uri := m.Get("params", "uri")
	if !uri.IsString() {
		return ""
	}
	return (wire.Value{Raw: c.redact(uri.Raw)}).View()
}

// maxArguments bounds arguments that are recorded in clear, in bytes.
const maxArguments = 64 << 10

// setArguments writes the member with the call's arguments or their digest.
func (e *entry) setArguments(raw []byte) {
	if e.c.o.Arguments == Digest || len(raw) > maxArguments || !portable(raw) || !e.c.reserve(len(raw)) {
		e.arguments = e.c.digests.append(e.arguments, "arguments_digest", raw)
		return
	}
	e.reserved = len(raw)
	if e.c.o.Arguments == Redacted {
		raw = e.c.redact(raw)
	}
	e.arguments = e.arguments.raw("arguments", raw)
}

// note adds the note of a layer.
func (e *entry) note(call *middleware.Call, n middleware.Note) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.call != call || n.Act == middleware.Skipped {
		return
	}
	e.dryRun = e.dryRun || n.DryRun
	e.refused = e.refused || n.Act == middleware.Refused
	e.briefed = e.briefed || n.Act == middleware.Edited && n.Layer == "briefing" && n.Rule == "policy" && !n.DryRun
	if n.Act == middleware.Edited && len(n.Path) == 2 && n.Path[0] == "params" && n.Path[1] == "name" && !n.DryRun {
		e.sentAs = clip((wire.Value{Raw: n.After}).Text())
	}
	switch e.notes++; {
	case e.notes > maxNotes:
		e.omitted++
	case n.Act == middleware.Edited:
		e.edits = append(e.c.appendNote(append(e.edits, '{'), &n), "},"...)
	default:
		e.rules = append(e.c.appendNote(append(e.rules, '{'), &n), "},"...)
	}
}

func (c *Conn) appendNote(r record, n *middleware.Note) record {
	if members := c.memo.members(n); members != nil {
		return append(r, members...)
	}
	from := len(r)
	r = r.text("layer", n.Layer).text("rule", n.Rule)
	if n.Act == middleware.Edited {
		r = r.text("why", short(n.Why)).pointer("path", n.Path)
		r = c.digests.append(r, "before", n.Before)
		r = c.digests.append(r, "after", n.After)
		r = r.text("source", short(withoutLiteral(n.Source)))
	} else {
		r = r.text("act", string(n.Act)).text("why", short(n.Why))
	}
	c.memo.add(n, r[from:])
	return r
}

// withoutLiteral returns the source of a value. For an expression that contains a string it
// returns "an expression", because the string may be a secret. The name of the rule shows
// where the expression is.
func withoutLiteral(source string) string {
	if strings.ContainsAny(source, "\"'") {
		return "an expression"
	}
	return source
}

func (e *entry) setView(call *middleware.Call, view *sessionstate.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.call == call {
		e.view = view
	}
}

// end ends the call, or the entry's current call if call is nil. It returns false if that
// has already ended; otherwise the caller must record it. A nil view leaves the context
// unchanged.
func (e *entry) end(call *middleware.Call, view *sessionstate.Context, o outcome) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.call == nil || call != nil && e.call != call {
		return false
	}
	e.call, e.outcome, e.took = nil, o, time.Since(e.start)
	if view != nil {
		e.view = view
	}
	return true
}
