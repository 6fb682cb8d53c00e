package wire

import (
	"bytes"

	"github.com/attache-mcp/attache/proxy/internal/room"
)

// A Peer is one end of the session.
type Peer uint8

// The two peers of a session.
const (
	Client Peer = iota
	Server
)

func (p Peer) String() string {
	if p == Server {
		return "server"
	}
	return "client"
}

// A Kind says what a frame is by its top-level members.
type Kind uint8

// The kinds of frames. A frame that could not be looked at is Unreadable; it
// may still be passed on.
const (
	Unreadable Kind = iota
	Request
	Notification
	Result
	Error
	Batch // a JSON array, revision 2025-03-26 only
)

func (k Kind) String() string {
	return [...]string{"unreadable", "request", "notification", "result", "error", "batch"}[k]
}

// IsReply reports whether a frame of this kind answers a request.
func (k Kind) IsReply() bool { return k == Result || k == Error }

// slot names a member whose place a look records.
type slot uint8

const (
	slotNone slot = iota
	slotVersion
	slotID
	slotMethod
	slotParams
	slotResult
	slotError
	slotName
	slotArguments
	slotMeta
	slots
)

type span struct{ start, end int }

// A Lease is memory that is used again when all who hold it have released it.
type Lease interface {
	// Hold says that one more holds the memory. The caller holds it, or was lent it by who does.
	Hold()
	// Release says that one no longer reads the memory. Who never does leaves it to the garbage
	// collector.
	Release()
}

// A Message is a frame, and what was read from it.
//
// A Message handed to a layer belongs to the pump that read it: it and every slice taken from it
// are valid until the layer returns. [Message.Clone] makes one that may be kept; a Message must not
// be copied otherwise, since edits of both would write to the same room. The zero Message is an
// empty line.
type Message struct {
	// From is the peer that sent the frame.
	From Peer
	// Fixed says that nobody writes to the bytes of the line any more, so they may be kept.
	Fixed bool
	// Lease, if not nil, lets several hold the bytes of the line, which are used again later.
	Lease Lease
	// Beside is what the transport of the sender says of the message to that of the receiver, such as
	// an HTTP status, or to the layers, such as who sends it. It is not in the bytes. An edit keeps it.
	Beside any

	line      []byte // the frame and its line end
	frame     []byte
	eol       []byte
	kind      Kind
	ambiguity Ambiguity
	ids       int // how many top-level ids a look found
	spans     [slots]span
	method    string     // "" where it is none of methods
	deep      bool       // the look went into params
	names     [][]string // the ArgumentNames of that look
	edited    bool
	tooLarge  bool
	lacks     bool       // none of names is in the arguments
	room      []byte     // what edits write to; the used part is the lines of this frame
	lent      *room.Room // what room is, if it is large
}

// Reset makes m the frame on line, which may end in "\n" or "\r\n". The bytes are not copied and
// never written to. Nothing has been looked at yet.
func (m *Message) Reset(from Peer, line []byte) {
	m.GiveBack()
	line = line[:len(line):len(line)]
	m.From, m.Fixed, m.Lease, m.Beside, m.line, m.frame, m.eol = from, false, nil, nil, line, line, nil
	m.forget()
	m.kind, m.ambiguity = Unreadable, 0
	m.deep, m.edited, m.tooLarge = false, false, false
	m.room = m.room[:0]
	if n := len(line); n > 0 && line[n-1] == '\n' {
		end := n - 1
		if end > 0 && line[end-1] == '\r' {
			end--
		}
		m.frame, m.eol = line[:end:end], line[end:]
	}
}

// GiveBack gives back the memory of a large edit. The caller resets the message before it uses it
// again.
func (m *Message) GiveBack() {
	if m.lent != nil {
		m.lent.Release()
		m.room, m.lent, m.Lease = nil, nil, nil
	}
}

// ResetTo makes m the frame of other, with its Beside, and takes over what was read of it, unless
// other was edited. The bytes are other's and never written to.
func (m *Message) ResetTo(other *Message) {
	if m.Reset(other.From, other.line); !other.edited {
		room := m.room
		*m = *other
		m.room, m.lent = room, nil
	}
	m.Beside = other.Beside
}

// NewMessage returns a message of attache's own making, with a line end. It takes over frame, which
// must be one JSON object; its members have been looked at.
func NewMessage(from Peer, frame []byte) *Message {
	m := &Message{}
	m.Reset(from, append(frame, '\n'))
	m.edited = true
	if m.LookEnvelope() && from == Client {
		m.deep = true
		m.locateParams()
	}
	return m
}

// Oversize returns the message that stands for a line which streamed by in chunks: its kind and id
// are known, its bytes are gone, and no edit is possible.
func Oversize(from Peer, e *Envelope) *Message {
	m := &Message{From: from, tooLarge: true, kind: e.kind(), ambiguity: e.ambiguity()}
	if e.state == envBad || e.batch {
		return m
	}
	// Only at reads the frame of such a message.
	id := e.ID()
	m.frame = append(append(m.frame, id...), e.method.text...)
	m.spans[slotID] = span{0, len(id)}
	m.spans[slotMethod] = span{len(id), len(m.frame)}
	m.ids = e.ids
	return m
}

// Frame returns the frame's bytes, without the line end. Nil for a message that
// is [Message.TooLarge].
func (m *Message) Frame() []byte {
	if m.tooLarge {
		return nil
	}
	return m.frame
}

// Line returns the frame's bytes and its line end, as they go on the wire.
func (m *Message) Line() []byte { return m.line }

// KeepLine returns the line as bytes that may be kept: a copy, unless they are Fixed or lent. If lease
// is not nil, the caller holds it.
func (m *Message) KeepLine() (line []byte, lease Lease) {
	switch n := len(m.line); {
	case m.Fixed:
		return m.line, nil
	case m.Lease != nil:
		m.Lease.Hold()
		return m.line, m.Lease
	case n > room.Smallest:
		if r := room.Borrow(n); r != nil {
			r.Bytes = append(r.Bytes, m.line...)
			return r.Bytes[:n:n], r
		}
	}
	return bytes.Clone(m.line), nil
}

// LineEnd returns the bytes that ended the line: "\n", "\r\n", or none for the last of a stream.
func (m *Message) LineEnd() []byte { return m.eol }

// Kind returns what the frame is.
func (m *Message) Kind() Kind { return m.kind }

// Edited reports whether the bytes are other than those that came in.
func (m *Message) Edited() bool { return m.edited }

// TooLarge reports whether the line was over the hold limit and has streamed by: Frame is nil and
// every edit returns [ErrTooLarge].
func (m *Message) TooLarge() bool { return m.tooLarge }

// Ambiguity says why parsers may read the frame differently. Zero means that the frame is plain.
// Set by [Scanner.Look].
func (m *Message) Ambiguity() Ambiguity { return m.ambiguity }

// Plain reports whether every parser reads the frame alike. Only a plain frame is ever edited.
func (m *Message) Plain() bool { return m.ambiguity == 0 && !m.tooLarge && m.kind != Unreadable }

// Looked reports whether the whole frame was looked at, as [Scanner.Look] does.
func (m *Message) Looked() bool { return m.deep }

// LacksArgumentNames reports whether the look found that the arguments have none of the members
// that it looked for. After an edit it reports false.
func (m *Message) LacksArgumentNames() bool { return m.lacks }

// ArgumentNames returns those of the [Scanner] that has looked at the whole frame.
func (m *Message) ArgumentNames() [][]string { return m.names }

// ID returns the raw bytes of the request id, and nil when there is none, more than one, or one that
// is neither a string nor an integer: an id that nothing can be answered to.
func (m *Message) ID() []byte {
	if id := m.at(slotID).Raw; m.ids == 1 && validID(id) {
		return id
	}
	return nil
}

// MethodIs reports whether the frame's method is name.
func (m *Message) MethodIs(name string) bool {
	if m.method != "" {
		return m.method == name
	}
	return m.at(slotMethod).Equals(name)
}

// Method returns the method, "" for a reply. The method names of the protocol do not allocate.
func (m *Message) Method() string {
	if m.method != "" {
		return m.method
	}
	return m.at(slotMethod).Text()
}

// Params returns the member params.
func (m *Message) Params() Value { return m.at(slotParams) }

// Result returns the member result.
func (m *Message) Result() Value { return m.at(slotResult) }

// ErrorObject returns the member error, unless it is null.
func (m *Message) ErrorObject() Value {
	if v := m.at(slotError); !v.IsNull() {
		return v
	}
	return Value{}
}

// Name returns params.name of a client frame: the tool of a tools/call.
func (m *Message) Name() Value { return m.at(slotName) }

// Arguments returns params.arguments of a client frame.
func (m *Message) Arguments() Value { return m.at(slotArguments) }

// Meta returns params._meta of a client frame.
func (m *Message) Meta() Value { return m.at(slotMeta) }

// Root returns the whole frame as a value.
func (m *Message) Root() Value {
	if m.tooLarge {
		return Value{}
	}
	i := skipSpace(m.frame, 0)
	return Value{trimSpaceRight(m.frame[i:]), i}
}

// Get returns the member found by following keys from the frame's root.
func (m *Message) Get(keys ...string) Value {
	if m.tooLarge || len(keys) == 0 {
		return m.Root()
	}
	v, rest := m.known(keys)
	if !v.Exists() && !m.Plain() {
		return m.Root().Get(keys...)
	}
	return v.Get(rest...)
}

// known returns the deepest recorded member on the way of keys, and the keys that are left. A plain
// frame that was looked at does not have a member whose place could be recorded and is not.
func (m *Message) known(keys []string) (Value, []string) {
	if keys[0] == "params" && len(keys) > 1 {
		if s := slotAmong([]byte(keys[1]), slotName, slotMeta); s != slotNone && (m.deep || m.at(s).Exists()) {
			return m.at(s), keys[2:]
		}
	}
	switch keys[0] {
	case "params":
		return m.at(slotParams), keys[1:]
	case "result":
		return m.at(slotResult), keys[1:]
	}
	return m.Root(), keys
}

func (m *Message) at(s slot) Value {
	p := m.spans[s]
	if p.end <= p.start {
		return Value{}
	}
	return Value{m.frame[p.start:p.end:p.end], p.start}
}

// Clone returns a copy that shares no bytes with m and may be kept.
func (m *Message) Clone() *Message {
	c := *m
	c.room, c.lent = nil, nil
	if m.tooLarge {
		c.frame = bytes.Clone(m.frame)
		return &c
	}
	c.SetLine(append(make([]byte, 0, len(m.line)), m.line...))
	c.Fixed = true
	return &c
}

// SetLine makes line, which has the line end of m's, the line of m. It is neither Fixed nor lent.
func (m *Message) SetLine(line []byte) {
	n := len(line) - len(m.eol)
	m.Fixed, m.Lease, m.line, m.frame, m.eol = false, nil, line, line[:n:n], line[n:]
}

// forget drops what a look found.
func (m *Message) forget() { m.ids, m.spans, m.method, m.lacks = 0, [slots]span{}, "", false }

// settle sets the kind from the members found, and the method. An error that is null beside a
// result is seen in the wild, and says nothing.
func (m *Message) settle() {
	m.method = known(m.at(slotMethod))
	m.kind = kindOf(m.at(slotMethod).Exists(), m.ids > 0, m.at(slotResult).Exists(), m.ErrorObject().Exists())
}

func kindOf(method, id, result, errorObject bool) Kind {
	switch {
	case method && id:
		return Request
	case method:
		return Notification
	case errorObject:
		return Error
	case result:
		return Result
	}
	return Unreadable
}

// methods are those that layers decide on or that come often.
var methods = [...]string{
	"tools/call", "tools/list", "notifications/progress", "notifications/message", "ping", "initialize", "server/discover",
	"notifications/initialized", "notifications/cancelled", "notifications/tools/list_changed", "notifications/roots/list_changed",
	"resources/read", "resources/list", "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
	"prompts/get", "prompts/list", "completion/complete", "subscriptions/listen", "tasks/get", "tasks/result",
}

// known returns which of methods a value is, "" if it is none of them. Layers ask for the
// method again and again, so it is found once.
func known(v Value) string {
	if !v.IsString() {
		return ""
	}
	for _, name := range methods {
		if string(v.Raw[1:len(v.Raw)-1]) == name {
			return name
		}
	}
	return ""
}
