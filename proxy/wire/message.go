package wire

import (
	"bytes"

	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire/internal/skip"
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

// The kinds of frames. A frame that was not scanned, or could not be, is Unreadable. It may still be
// passed on.
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

// A Lease counts the holders of memory that is reused when the last one has released it.
type Lease interface {
	// Hold adds a holder. The caller must be a holder, or run while one waits for it.
	Hold()
	// Release removes a holder, which must no longer read the memory. Memory that is never released
	// is left to the garbage collector.
	Release()
}

// A Message is a frame, and the results of scanning it.
//
// A Message handed to a layer belongs to the pump that read it: it and every slice taken from it
// are valid until the layer returns. [Message.Clone] makes one that may be kept. A Message must not
// be copied in any other way, because edits of both would write to the same memory. The zero Message
// is an empty line.
type Message struct {
	// From is the peer that sent the frame.
	From Peer
	// Fixed says that the bytes of the line never change, so they may be kept.
	Fixed bool
	// Lease, if not nil, is the lease of the bytes of the line.
	Lease Lease
	// Beside is information about the message that is not in its bytes: from the sender's transport
	// to the receiver's, such as an HTTP status, or to the layers, such as the sender. Edits keep it.
	Beside any

	line      []byte // the frame and its line end; nil if tooLarge
	frame     []byte // the beginning of line, without capacity beyond it; see Oversize if tooLarge
	eol       []byte // the rest of line
	kind      Kind
	ambiguity Ambiguity
	twin      string // the known name, for TwinName
	ids       int    // the number of top-level ids
	spans     [slots]span
	method    string     // "" unless it is one of methods
	deep      bool       // params were scanned, too
	names     [][]string // the ArgumentNames of that scan
	edited    bool       // or made by attache
	tooLarge  bool
	lacks     bool       // none of names is in the arguments; false if that is not known
	room      []byte     // memory for edits; the used part has the lines of this frame
	lent      *room.Room // the memory of room, if it is large
}

// Reset makes m the frame on line, which may end in "\n" or "\r\n". The bytes are not copied, never
// written to, and not scanned yet.
func (m *Message) Reset(from Peer, line []byte) {
	m.releaseEdits()
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

// GiveBack releases the memory of a large edit and drops the bytes of the message, so that an idle session
// does not keep a large message in memory. The caller must call Reset before it uses m again.
func (m *Message) GiveBack() {
	m.releaseEdits()
	m.line, m.frame, m.eol, m.Lease, m.Beside = nil, nil, nil, nil, nil
}

// releaseEdits releases the memory of a large edit.
func (m *Message) releaseEdits() {
	if m.lent != nil {
		m.lent.Release()
		m.room, m.lent, m.Lease = nil, nil, nil
	}
}

// ResetTo makes m the frame of other, with its Beside, and copies the results of its scan unless other
// was edited. m shares the bytes of other and never writes to them.
func (m *Message) ResetTo(other *Message) {
	if m.Reset(other.From, other.line); !other.edited {
		room := m.room
		*m = *other
		m.room, m.lent = room, nil
	}
	m.Beside = other.Beside
}

// NewMessage returns a message that attache makes, with a line end, scanned. It keeps frame, which must
// be one JSON object.
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

// Frame returns the frame's bytes, without the line end, or nil for a message that is
// [Message.TooLarge].
func (m *Message) Frame() []byte {
	if m.tooLarge {
		return nil
	}
	return m.frame
}

// Line returns the frame's bytes and its line end.
func (m *Message) Line() []byte { return m.line }

// KeepLine returns the line for a caller that keeps it: a copy, unless the bytes are Fixed or lent. If
// lease is not nil, the caller has become a holder and must release it.
func (m *Message) KeepLine() (line []byte, lease Lease) {
	switch n := len(m.line); {
	case m.Fixed:
		return m.line, nil
	case m.Lease != nil:
		m.Lease.Hold()
		return m.line, m.Lease
	case n > room.Smallest: // new memory would cost more than the copy
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

// Edited reports whether the bytes differ from those that came in.
func (m *Message) Edited() bool { return m.edited }

// TooLarge reports whether the line was over the hold limit and was streamed. Then Frame is nil and
// every edit returns [ErrTooLarge].
func (m *Message) TooLarge() bool { return m.tooLarge }

// Ambiguity returns why parsers may read the frame differently. Zero means that the frame is plain.
// [Scanner.Look] sets it.
func (m *Message) Ambiguity() Ambiguity { return m.ambiguity }

// Plain reports whether every parser reads the frame alike. Only a plain frame is ever edited.
func (m *Message) Plain() bool { return m.ambiguity == 0 && !m.tooLarge && m.kind != Unreadable }

// Looked reports whether the whole frame was scanned, as [Scanner.Look] does.
func (m *Message) Looked() bool { return m.deep }

// LacksArgumentNames reports whether the arguments have none of the members in ArgumentNames. After an
// edit it reports false.
func (m *Message) LacksArgumentNames() bool { return m.lacks }

// ArgumentNames returns those of the [Scanner] that has scanned the whole frame.
func (m *Message) ArgumentNames() [][]string { return m.names }

// ID returns the raw request id. It returns nil if there is none or more than one, or if it is neither
// a string nor an integer, because such a request cannot be answered.
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

// Method returns the method, "" for a reply. It does not allocate for the common methods of the
// protocol.
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
	i := skip.Space(m.frame, 0)
	return Value{skip.TrimRight(m.frame[i:]), i}
}

// Get returns the member found by following keys from the frame's root.
func (m *Message) Get(keys ...string) Value {
	if m.tooLarge || len(keys) == 0 {
		return m.Root()
	}
	v, rest := m.known(keys)
	// In a frame that is not plain, a member may be there without a recorded position: the scan has
	// stopped before its end, or was not made.
	if !v.Exists() && !m.Plain() {
		return m.Root().Get(keys...)
	}
	return v.Get(rest...)
}

// known returns the deepest member on the path keys whose position is recorded, and the remaining keys.
// If the position of a member could be recorded and is not, a plain frame does not have the member.
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
	c.room, c.lent = nil, nil // m goes on writing edits there
	if m.tooLarge {
		c.frame = bytes.Clone(m.frame)
		return &c
	}
	c.SetLine(append(make([]byte, 0, len(m.line)), m.line...))
	c.Fixed = true
	return &c
}

// SetLine sets the line of m, whose line end must be that of m. It is neither Fixed nor lent.
func (m *Message) SetLine(line []byte) {
	n := len(line) - len(m.eol)
	m.Fixed, m.Lease, m.line, m.frame, m.eol = false, nil, line, line[:n:n], line[n:]
}

// forget clears what a scan finds out about members. Its callers set the rest.
func (m *Message) forget() { m.ids, m.spans, m.method, m.lacks = 0, [slots]span{}, "", false }

// settle sets kind and method from the members that were found. Some servers write an error that is
// null beside a result; it is ignored.
func (m *Message) settle() {
	m.method = known(m.at(slotMethod))
	m.kind = kindOf(m.at(slotMethod).Exists(), m.ids > 0, m.at(slotResult).Exists(), m.ErrorObject().Exists())
}

// kindOf returns the kind of a frame with these members. Those that contradict each other make a frame
// ambiguous, but it has a kind: a method comes first, because a server may run what has one.
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
