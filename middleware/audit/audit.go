// Package audit is the layer that keeps a record of every call and of what was
// decided about it: who called what, which rules acted, what was edited, what came
// of it.
//
// It stands outside all layers but trace, so it sees each call as the client sent
// it and each reply as the client gets it. What the layers inside did it hears from
// their notes ([middleware.Call.Listen]), and who the call is from it reads from
// the context that the layer capture attached, as it stands when the reply passes.
// Audited are the calls that do or read something on the server's side: tools/call,
// prompts/get and resources/read. Lists, pings and notifications are not, but a
// notification that is a tools/call is.
//
// # What a record holds
//
//	{"time":"2026-11-21T14:00:00.000Z","kind":"call","run":"9f2c…","call":3,
//	 "session":"s1","user":"ada","tenant":"acme",…,"server":"git","method":"tools/call",
//	 "tool":"git_log","decision":"allowed","rules":[…],"edits":[…],
//	 "arguments_digest":"hmac-sha256:…","result":"ok","request_bytes":98,
//	 "reply_bytes":211,"ms":1.204}
//
// docs/audit.md says what each member means. Values of arguments and edits are
// digests under a key kept beside the file: equal values have equal digests, and
// nobody who has not the key can try values out. Arguments are recorded in clear if
// Options.Arguments says so, without secrets.
//
// # When it cannot
//
// A record that cannot be written is counted, and calls go on. With
// Options.Required the layer enforces: [Audit.Gate], a second layer that stands
// inside those that decide and edit, writes down what is about to be sent and lets
// it go on only when that is in the file; otherwise the call is refused.
package audit

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// Arguments says how much of a call's arguments is recorded.
type Arguments string

// How much of the arguments is recorded.
const (
	Digest   Arguments = "digest"   // a keyed digest; the default
	Redacted Arguments = "redacted" // all but what is a secret by its name or looks
	Full     Arguments = "full"     // all but the secrets that are known
)

// DefaultWait is how long a call waits for its record where one is required.
const DefaultWait = 2 * time.Second

// Options configure the layer.
type Options struct {
	// Log keeps the records. It is needed; Audit.Close closes it.
	Log *chain.Log
	// Server is the server's name.
	Server string
	// Arguments says how much of them is recorded; "" stands for Digest.
	Arguments Arguments
	// Redact takes out of a JSON text what is a secret by its name or its looks, for
	// arguments that are Redacted and for addresses of resources; nil stands for one
	// that leaves nothing.
	Redact func(raw []byte) []byte
	// Scrub takes the secrets that are known out of a whole record; nil leaves it.
	Scrub func(record []byte) []byte
	// Required has Gate refuse calls that cannot be recorded.
	Required bool
	// Wait is how long a call waits for its record where that is required; 0 stands
	// for DefaultWait.
	Wait time.Duration
}

// An Audit is the layer and the calls in flight. Records of one process have one
// run, so that those of several in one file can be told apart.
type Audit struct {
	o       Options
	run     string
	macs    sync.Pool   // *mac
	keyed   atomic.Bool // the key was fetched
	entries sync.Pool   // *entry, of no call
	memo    memo
	views   atomic.Pointer[rendered]
	clock   atomic.Pointer[second] // the one last written out
	kept    atomic.Int64           // bytes of arguments of the calls in flight
	calls   atomic.Uint64          // seen so far
	open    open
}

// New returns the layer.
func New(o Options) *Audit {
	if o.Arguments == "" {
		o.Arguments = Digest
	}
	if o.Redact == nil {
		o.Redact = func([]byte) []byte { return []byte(`"redacted"`) }
	}
	if o.Scrub == nil {
		o.Scrub = func(record []byte) []byte { return record }
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	a := &Audit{o: o, run: newRun()}
	a.macs.New = func() any {
		key := o.Log.Key()
		a.keyed.Store(true)
		return &mac{Hash: hmac.New(sha256.New, key)}
	}
	return a
}

func newRun() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand, Go 1.24
	return hex.EncodeToString(b[:])
}

// Required reports whether calls that cannot be recorded are refused.
func (a *Audit) Required() bool { return a.o.Required }

// Layer returns the layer. It stands outside those it records, behind trace alone.
func (a *Audit) Layer() middleware.Layer {
	return middleware.Layer{Name: "audit", Wrap: a.wrap, Enforces: a.o.Required}
}

func (a *Audit) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From != wire.Client:
		case audited(m):
			return a.handle(ctx, m, next)
		case m.MethodIs("notifications/cancelled"):
			a.cancelled(m)
		}
		return next(ctx, m)
	}
}

// audited reports whether m is a call that is recorded.
func audited(m *wire.Message) bool {
	return m.MethodIs("tools/call") || m.MethodIs("prompts/get") || m.MethodIs("resources/read")
}

func (a *Audit) handle(ctx context.Context, m *wire.Message, next middleware.Handler) error {
	call := middleware.CallFrom(ctx)
	e := a.begin(call, m)
	call.Listen(false, e.listener)
	if a.o.Required {
		call.SetValue(entryKey{}, e)
	}
	if m.Kind() != wire.Request {
		err := next(ctx, m)
		if e.finish(call, viewOf(call), outcome{kind: resultNone}) {
			a.write(e)
		}
		return err
	}
	a.open.add(e)
	call.OnReply(e.hook)
	err := next(ctx, m)
	e.saw(call, viewOf(call)) // the call is another's once its reply has left, but not before this returns
	return err
}

func viewOf(call *middleware.Call) *sessionstate.Context {
	view, _ := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context)
	return view
}

// cancelled records a call that the client no longer wants: it has no reply, or one
// that is nobody's.
func (a *Audit) cancelled(m *wire.Message) {
	id := m.Get("params", "requestId")
	if !id.Exists() {
		return
	}
	if e := a.open.cancel(appendSpelt(nil, id)); e != nil {
		a.write(e)
	}
}

// appendSpelt appends a raw id in one spelling, since peers may escape it
// differently.
func appendSpelt(dst []byte, id wire.Value) []byte {
	if id.IsString() {
		return append(append(dst, '"'), id.View()...)
	}
	return append(dst, id.Raw...)
}

// Close records the calls that will have no reply any more, and returns when all
// records are written or the grace is over. The error says how many are not.
func (a *Audit) Close(grace time.Duration) error {
	for e := a.open.end(); e != nil; e = a.open.end() {
		a.write(e)
	}
	return a.o.Log.Close(grace)
}

const digestPrefix = "hmac-sha256:"

// A mac makes digests, one after the other.
type mac struct {
	hash.Hash
	sum [sha256.Size]byte
}

// appendDigest appends the digest of a value, without quotes.
func (a *Audit) appendDigest(dst, raw []byte) []byte {
	m := a.macs.Get().(*mac)
	defer a.macs.Put(m)
	m.Reset()
	m.Write(raw)
	return hex.AppendEncode(append(dst, digestPrefix...), m.Sum(m.sum[:0]))
}

// digested writes a member with the digest of a value, if there is one.
func (a *Audit) digested(r record, name string, raw []byte) record {
	if raw == nil {
		return r
	}
	r = append(r.name(name), '"')
	return append(record(a.appendDigest(r, raw)), '"')
}
