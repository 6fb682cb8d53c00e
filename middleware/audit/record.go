package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// maxText bounds each text from the wire in a record, in bytes.
const maxText = 512

// A record is a JSON object, or a part of one, that is being written. Members are in an
// order for people; those without a value are left out.
type record []byte

func (r record) text(name, value string) record {
	if value == "" {
		return r
	}
	return wire.AppendQuote(r.name(name), value)
}

func (r record) raw(name string, value []byte) record {
	if len(value) == 0 {
		return r
	}
	return append(r.name(name), value...)
}

func (r record) number(name string, n int) record {
	if n == 0 {
		return r
	}
	return strconv.AppendInt(r.name(name), int64(n), 10)
}

func (r record) milliseconds(took time.Duration) record {
	return strconv.AppendFloat(r.name("ms"), float64(max(took, 0).Microseconds())/1000, 'f', 3, 64)
}

func (r record) flag(name string, set bool) record {
	if !set {
		return r
	}
	return append(r.name(name), "true"...)
}

// name begins a member.
func (r record) name(name string) record {
	if len(r) > 0 && r[len(r)-1] != '{' {
		r = append(r, ',')
	}
	return append(append(append(r, '"'), name...), `":`...)
}

// list writes an array of objects, each of which is followed by a comma.
func (r record) list(name string, objects record) record {
	if len(objects) == 0 {
		return r
	}
	r = append(append(r.name(name), '['), objects...)
	r[len(r)-1] = ']' // in place of the last comma
	return r
}

// pointer writes a path as a JSON Pointer (RFC 6901).
func (r record) pointer(name string, path []string) record {
	var array [128]byte // keeps most paths from allocating
	p := array[:0]
	for _, key := range path {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
		p = append(append(p, '/'), key...)
	}
	return r.text(name, short(string(p)))
}

func (s *Shared) head(r record, kind string, at time.Time) record {
	// Package time writes RFC3339 three times as fast as a layout with milliseconds,
	// so these are appended here in place of the Z.
	r = at.UTC().AppendFormat(append(r, `{"time":"`...), time.RFC3339)
	ms := at.Nanosecond() / int(time.Millisecond)
	r = append(r[:len(r)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
	return append(r, '"').text("kind", kind).text("run", s.run)
}

func (c *Conn) append(r record) { c.o.Log.Append(c.scrub(append(r, '}'))) }

// complete writes the record of a call that has ended.
func (e *entry) complete(r record) record {
	r = e.about(r, "call", e.view)
	r = r.text("result", e.outcome.result).raw("code", []byte(e.outcome.code)).
		number("request_bytes", e.requestBytes).number("reply_bytes", e.outcome.bytes)
	return r.milliseconds(e.took).flag("briefing", e.briefed)
}

// intent returns the record of a call that is about to be sent as m. ok is false if the
// call has ended.
func (e *entry) intent(call *middleware.Call, m *wire.Message) (_ []byte, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.call != call {
		return nil, false
	}
	r := e.about(nil, "intent", sessionstate.ContextOf(call))
	r = e.c.digests.append(r, "sent_digest", m.Arguments().Raw)
	return e.c.scrub(append(r.number("request_bytes", e.requestBytes), '}')), true
}

// about writes the members of a call's record that are known before its reply.
func (e *entry) about(r record, kind string, view *sessionstate.Context) record {
	r = e.c.head(r, kind, e.start)
	r = strconv.AppendUint(r.name("call"), e.number, 10)
	if view != nil {
		r = append(r, e.c.identityOf(view)...)
	}
	decision := "allowed"
	if e.refused {
		decision = "refused"
	}
	r = r.text("trace_id", e.trace.TraceID).text("span_id", e.trace.SpanID).
		text("server", e.c.o.Server).text("method", e.method).
		raw(targetName(e.method), e.target).text("sent_as", e.sentAs).
		text("decision", decision).flag("dry_run", e.dryRun).
		list("rules", e.rules).list("edits", e.edits).number("notes_left_out", e.omitted)
	if len(e.arguments) > 0 {
		r = append(append(r, ','), e.arguments...)
	}
	return r
}

func targetName(method string) string {
	switch method {
	case "prompts/get":
		return "prompt"
	case "resources/read":
		return "resource"
	}
	return "tool"
}

// identity has the members of a record that identify the caller.
type identity struct {
	view *sessionstate.Context
	text record // members, with a comma before each
}

// identityOf returns the members that identify the caller, and the source of each.
func (c *Conn) identityOf(view *sessionstate.Context) record {
	if last := c.identity.Load(); last != nil && last.view == view {
		return last.text
	}
	var r, sources record
	for _, f := range [...]struct{ name, path string }{
		{"session", "session.id"},
		{"conversation", "session.conversation"},
		{"user", "principal.user"},
		{"tenant", "principal.tenant"},
		{"workspace", "session.workspace.path"},
		{"workspace_id", "session.workspace.id"},
		{"trust", "session.trust"},
	} {
		if fact, _ := view.Lookup(f.path); !fact.Empty() {
			r = wire.AppendQuote(append(append(append(r, ',', '"'), f.name...), `":`...), clip(fact.Value))
			sources = sources.text(f.name, source(fact))
		}
	}
	if len(sources) > 0 {
		r = append(append(append(r, `,"sources":{`...), sources...), '}')
	}
	c.identity.Store(&identity{view, r})
	return r
}

// source returns the source of a fact, such as "operator: --workspace".
func source(f sessionstate.Fact) string {
	if f.From == "" {
		return f.Source.String()
	}
	return f.Source.String() + ": " + clip(f.From)
}

// clip shortens a text from a frame to maxText, and copies it.
func clip(s string) string { return strings.Clone(short(s)) }

// short is clip without the copy.
func short(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// digests makes keyed digests of values.
type digests struct {
	key func() []byte // returns the log's key

	mu  sync.Mutex
	mac hash.Hash         // nil before the first digest
	sum [sha256.Size]byte // a buffer
}

// append appends a member with the digest of a value, unless the value is nil.
func (d *digests) append(r record, name string, raw []byte) record {
	if raw == nil {
		return r
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mac == nil {
		d.mac = hmac.New(sha256.New, d.key())
	}
	d.mac.Reset()
	d.mac.Write(raw)
	r = append(r.name(name), `"hmac-sha256:`...)
	return append(hex.AppendEncode(r, d.mac.Sum(d.sum[:0])), '"')
}
