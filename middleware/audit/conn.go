package audit

import (
	"bytes"
	"context"
	"slices"
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
	identity      atomic.Pointer[identity] // in the last record; most calls have the same

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

// isRecorded reports whether m is a call that is recorded.
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
	if m.Kind() != wire.Request {
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

// recordReply is the hook that records a call with its reply.
func (e *entry) recordReply(ctx context.Context, reply *wire.Message) error {
	call := middleware.CallFrom(ctx)
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

// ServerRestarted records that the server ended and was started again: how it ended, the
// number of calls that were answered with an error, and how long it was down.
func (c *Conn) ServerRestarted(exit string, lost int, down time.Duration) {
	r := c.head(nil, "server_restarted", time.Now()).text("server", c.o.Server).text("exit", clip(exit)).number("calls_lost", lost)
	c.append(r.number("down_ms", int(down.Milliseconds())))
}

// ListChanged records that a list of a restarted server differs from the one before, with the
// digests of the two.
func (c *Conn) ListChanged(method, before, after string) {
	c.append(c.head(nil, "list_changed", time.Now()).text("server", c.o.Server).text("method", method).text("before", before).text("after", after))
}

// Aside records a frame from the client that no layer saw. It was refused with a code, or
// passed without any rule if code is 0. Another parser may read the frame differently from
// the record. from identifies the client; it is nil if only the frame could do so.
//
// No layer sees such a frame, so a program calls Aside from proxy.Options:
//
//	Aside: func(a proxy.Aside) { conn.Aside(a.Message, a.Why, a.Code, nil) },
func (c *Conn) Aside(m *wire.Message, why string, code int, from *sessionstate.Context) {
	decision := "refused"
	if code == 0 {
		decision = "unjudged"
	}
	r := c.head(nil, "aside", time.Now())
	if from != nil {
		r = append(r, c.identityOf(from)...)
	}
	r = r.text("server", c.o.Server).text("frame", m.Kind().String())
	if m.Kind() == wire.Request || m.Kind() == wire.Notification {
		r = r.text("method", clip(m.Method())).text("tool", clip(m.Name().Text()))
	}
	r = r.text("decision", decision).text("why", why).number("code", code)
	r = c.digests.append(r, "frame_digest", m.Frame())
	c.append(r.number("request_bytes", len(m.Line())))
}
