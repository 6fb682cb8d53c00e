package audit

import (
	"strconv"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// maxArguments is how long arguments may be to be recorded in clear, in bytes; of
// longer ones there is a digest.
const maxArguments = 64 << 10

// A record is a JSON object in the making. Its members are written in the order
// that people read them, and those that say nothing are left out.
type record []byte

func (r record) text(name, value string) record {
	if value == "" {
		return r
	}
	return record(wire.AppendQuote(r.name(name), value))
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
	return record(strconv.AppendInt(r.name(name), int64(n), 10))
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

// list writes notes, if there are any.
func (r record) list(name string, of notes) record {
	if len(of) == 0 {
		return r
	}
	r = append(r.name(name), '[')
	for _, members := range of {
		r = append(append(append(r, '{'), members...), "},"...)
	}
	r[len(r)-1] = ']'
	return r
}

// head begins a record.
func (a *Audit) head(r record, kind string, at time.Time) record {
	r = a.appendTime(append(r, `{"time":"`...), at)
	r = append(append(r, `","kind":"`...), kind...)
	r = append(append(r, `","run":"`...), a.run...)
	return append(r, '"')
}

// A second is the text of one, as RFC 3339 has it, without its zone. Most records
// are of the same as the one before.
type second struct {
	unix int64
	text string
}

// appendTime appends a time as RFC 3339 with milliseconds has it, always as long.
func (a *Audit) appendTime(dst []byte, t time.Time) []byte {
	last := a.clock.Load()
	if last == nil || last.unix != t.Unix() {
		last = &second{t.Unix(), t.UTC().Format("2006-01-02T15:04:05")}
		a.clock.Store(last)
	}
	dst = append(append(dst, last.text...), '.')
	return append(append3(dst, t.Nanosecond()/1e6), 'Z')
}

// append3 appends n, which is below 1000, with three digits.
func append3(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
}

// millis writes a time in milliseconds.
func (r record) millis(name string, d time.Duration) record {
	us := max(d, 0).Microseconds()
	r = record(strconv.AppendInt(r.name(name), us/1000, 10))
	return append3(append(r, '.'), int(us%1000))
}

// write has the record of a call written that is over. The entry is the log's from
// here on.
func (a *Audit) write(e *entry) {
	a.kept.Add(int64(-e.kept))
	if size := e.size(); size <= maxLater {
		a.o.Log.AppendText(e, size)
	} else {
		a.o.Log.Append(e.AppendTo(nil))
	}
}

// maxLater is how large a record may be, in bytes, that is written out by the log's
// goroutine. Whoever makes larger ones waits for it, so that they are not made
// faster than they can be written.
const maxLater = 8 << 10

// finish keeps what came of the call. It is false if the entry is of that call no
// more; otherwise the caller, and nobody else, has the record written. call may be nil
// for the one it is of, whichever that is, and view for the one that is known.
func (e *entry) finish(call *middleware.Call, view *sessionstate.Context, o outcome) bool {
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

// size is about how many bytes an entry takes whose call is over.
func (e *entry) size() int {
	return usualRecord + len(e.arguments) + e.noted + cap(e.text)
}

// AppendTo implements chain.Text: it writes the record of a call that is over.
func (e *entry) AppendTo(dst []byte) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.a.about(dst, "call", e, e.view).
		text("result", e.outcome.kind).raw("code", []byte(e.outcome.code)).
		number("request_bytes", e.bytes).number("reply_bytes", e.outcome.bytes).
		millis("ms", e.took).flag("briefing", e.briefed)
	r = append(r, '}')
	e.free()
	made := r[len(dst):]
	if clean := e.a.o.Scrub(made); len(clean) != len(made) || &clean[0] != &made[0] {
		return append(dst, clean...)
	}
	return r
}

// intent returns the record of a call that is about to be sent as m; ok is false if
// the entry is of that call no more.
func (a *Audit) intent(e *entry, call *middleware.Call, m *wire.Message) (_ []byte, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.call != call {
		return nil, false
	}
	view := viewOf(call)
	r := a.about(make(record, 0, usualRecord), "intent", e, view)
	if sent := m.Arguments(); sent.Exists() {
		r = record(a.appendDigest(append(r.name("sent_digest"), '"'), sent.Raw))
		r = append(r, '"')
	}
	return a.o.Scrub(append(r.number("request_bytes", e.bytes), '}')), true
}

// usualRecord is more than most records take, in bytes.
const usualRecord = 1 << 10

// about writes what is known of a call before its reply. The caller holds e.mu.
func (a *Audit) about(r record, kind string, e *entry, view *sessionstate.Context) record {
	r = a.head(r, kind, e.start)
	r = record(strconv.AppendUint(r.name("call"), e.number, 10))
	r = append(r, a.who(view)...)
	r = r.text("trace_id", e.trace.TraceID).text("span_id", e.trace.SpanID).
		text("server", a.o.Server).text("method", e.method).
		raw(targetName(e.method), e.target).text("sent_as", e.sentAs)
	decision := "allowed"
	if e.refused {
		decision = "refused"
	}
	r = r.text("decision", decision).flag("dry_run", e.dryRun)
	r = r.list("rules", e.rules).list("edits", e.edits)
	r = r.number("notes_left_out", e.more)
	if e.raw {
		return append(record(a.appendDigest(append(r, digestMember...), e.arguments)), '"')
	}
	return append(r, e.arguments...)
}

// digestMember is what stands before the digest of a call's arguments.
const digestMember = `,"arguments_digest":"`

func targetName(method string) string {
	switch method {
	case "prompts/get":
		return "prompt"
	case "resources/read":
		return "resource"
	}
	return "tool"
}

// maxKept is how many bytes of arguments are kept of all calls in flight together;
// of a call beyond that there is a digest.
const maxKept = 16 << 20

// appendArguments appends the member about a call's arguments, with a comma before
// it. clear says that they are in it, and count in what is kept.
func (a *Audit) appendArguments(dst []byte, v wire.Value) (member []byte, clear bool) {
	switch {
	case !v.Exists():
		return dst, false
	case a.o.Arguments == Digest || len(v.Raw) > maxArguments || !a.keep(len(v.Raw)):
		member = a.appendDigest(append(dst, digestMember...), v.Raw)
		return append(member, '"'), false
	case a.o.Arguments == Redacted:
		return append(append(dst, `,"arguments":`...), a.o.Redact(v.Raw)...), true
	}
	return append(append(dst, `,"arguments":`...), v.Raw...), true
}

// keep counts n bytes of arguments in, if there is room for them.
func (a *Audit) keep(n int) bool {
	if a.kept.Add(int64(n)) <= maxKept {
		return true
	}
	a.kept.Add(int64(-n))
	return false
}

// rendered is who a call is from, as a record has it. It is the same for most
// calls, so the last one is kept.
type rendered struct {
	view *sessionstate.Context
	text []byte // members, with a comma before each
}

// who returns the members that say who a call is from, and how each is known.
func (a *Audit) who(view *sessionstate.Context) []byte {
	if view == nil {
		return nil
	}
	if last := a.views.Load(); last != nil && last.view == view {
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
		fact, _ := view.Lookup(f.path)
		if fact.Empty() {
			continue
		}
		r = append(append(r, ',', '"'), f.name...)
		r = record(wire.AppendQuote(append(r, `":`...), clip(fact.Value)))
		sources = sources.text(f.name, source(fact))
	}
	if len(sources) > 0 {
		r = append(append(append(r, `,"sources":{`...), sources...), '}')
	}
	a.views.Store(&rendered{view, r})
	return r
}

// source says how a fact is known: "operator: --workspace".
func source(f sessionstate.Fact) string {
	if f.From == "" {
		return f.Source.String()
	}
	return f.Source.String() + ": " + clip(f.From)
}

// Aside records a frame of the client's that no layer saw: it was refused with a
// code, or, with code 0, went on without any rule having been applied to it. What
// is said of such a frame is not certain: another parser may read it otherwise.
func (a *Audit) Aside(m *wire.Message, why string, code int) {
	decision := "refused"
	if code == 0 {
		decision = "unjudged"
	}
	r := a.head(nil, "aside", time.Now()).text("server", a.o.Server).text("frame", m.Kind().String())
	if m.Kind() == wire.Request || m.Kind() == wire.Notification {
		r = r.text("method", clip(m.Method())).text("tool", clip(m.Name().Text()))
	}
	r = r.text("decision", decision).text("why", why)
	if code != 0 {
		r = r.number("code", code)
	}
	if frame := m.Frame(); frame != nil {
		r = append(record(a.appendDigest(append(r.name("frame_digest"), '"'), frame)), '"')
	}
	a.o.Log.Append(a.o.Scrub(append(r.number("request_bytes", len(m.Line())), '}')))
}
