package wire

import "github.com/attache-mcp/attache/proxy/wire/internal/skip"

// An Envelope scans the top-level members of a line that is streamed in chunks and
// never held. It finds whether the line can be a message, its kind, and its id,
// wherever the id is. Ids and methods over 4 KiB count as unreadable. The zero
// value is ready for the first chunk.
type Envelope struct {
	state    envelopeState
	nested   skip.State // while state is envNested
	escaped  bool       // the last byte was a backslash that escapes the next byte of a top-level string
	slot     slot       // of the current member
	name     captureBuffer
	id       captureBuffer
	method   captureBuffer
	failure  captureBuffer // the error, which may be null
	ids      int
	seen     [slots]bool
	repeated bool // a member with a slot came twice
	batch    bool
}

// An envelopeState says what the next byte belongs to, or what it must be. A chunk can end in any state.
type envelopeState uint8

const (
	envStart     envelopeState = iota // the bracket of the line
	envBatch                          // the first member of an array, an object: log lines begin with a bracket too
	envFirstName                      // a name, or the end of an empty object
	envName                           // a name: a comma has come before
	envInName
	envColon
	envValue  // the first byte of a value
	envScalar // a number or literal, which ends only with the byte after it
	envString
	envNested // an object or array, or the rest of an array of messages
	envNext   // a comma, or the end of the object
	envEnd    // only white space
	envBad    // nothing: the line is not a message
)

// A captureBuffer keeps the text of a name or a value, which may come in several chunks.
type captureBuffer struct {
	text []byte
	lost bool // it was too long
	done bool // it is complete: a number at the end of a chunk may go on in the next one
}

func (c *captureBuffer) reset() { c.text, c.lost, c.done = c.text[:0], false, false }

func (c *captureBuffer) add(b []byte, limit int) {
	if c.lost = c.lost || len(c.text)+len(b) > limit; c.lost {
		c.text = c.text[:0]
		return
	}
	c.text = append(c.text, b...)
}

// Feed reads the next chunk. A line end at the end of the last chunk is white
// space like any other.
func (e *Envelope) Feed(b []byte) {
	for i := 0; i < len(b); {
		switch e.state {
		case envInName, envString:
			i = e.inString(b, i)
		case envNested:
			if i = e.nested.Over(b, i); e.nested.Depth == 0 {
				e.endNested()
			}
		case envScalar:
			i = e.inScalar(b, i)
		case envBad:
			return
		default:
			if !skip.IsSpace(b[i]) {
				e.punctuation(b[i])
			}
			i++
		}
	}
}

// punctuation handles a byte between names and values that is not white space.
func (e *Envelope) punctuation(c byte) {
	switch {
	case e.state == envStart && c == '{':
		e.state = envFirstName
	case e.state == envStart && c == '[':
		e.state, e.batch = envBatch, true
	case e.state == envBatch && c == '{':
		// Skip to the end of the array: no member of an array is ever read.
		e.state, e.nested = envNested, skip.State{Depth: 2}
	case (e.state == envFirstName || e.state == envName) && c == '"':
		e.state = envInName
		e.name.reset()
		e.name.add([]byte{c}, captureName)
	case e.state == envFirstName && c == '}', e.state == envNext && c == '}':
		e.state = envEnd
	case e.state == envColon && c == ':':
		e.state = envValue
	case e.state == envNext && c == ',':
		e.state = envName
	case e.state == envValue:
		e.begin(c)
	default:
		e.state = envBad
	}
}

// begin handles the first byte of a member's value.
func (e *Envelope) begin(c byte) {
	e.repeated = e.repeated || e.slot != slotNone && e.seen[e.slot]
	e.seen[e.slot] = true
	if e.slot == slotID {
		e.ids++
	}
	if buffer := e.buffer(); buffer != nil {
		buffer.reset()
		buffer.add([]byte{c}, captureValue)
	}
	switch c {
	case '"':
		e.state = envString
	case '{', '[':
		e.state, e.nested = envNested, skip.State{Depth: 1}
	case ',', '}', ']', ':':
		e.state = envBad
	default:
		e.state = envScalar
	}
}

// buffer returns the buffer for the current member's value, nil if the value is not
// kept. Of the error, only whether it is null matters, which a too long one is not.
func (e *Envelope) buffer() *captureBuffer {
	switch e.slot {
	case slotID:
		return &e.id
	case slotMethod:
		return &e.method
	case slotError:
		return &e.failure
	}
	return nil
}

// keep adds bytes of a value to its buffer; done says that they are its last.
func (e *Envelope) keep(b []byte, done bool) {
	if buffer := e.buffer(); buffer != nil {
		buffer.add(b, captureValue)
		buffer.done = done
	}
}

// inString continues a string and returns the offset after what it read.
func (e *Envelope) inString(b []byte, i int) int {
	start := i
	if e.escaped { // by the last byte of the chunk before
		i++
	}
	i, e.escaped = skip.StringEnd(b, i)
	done := i < len(b)
	if done {
		i++
	}
	switch {
	case e.state == envInName:
		e.name.add(b[start:i], captureName)
		if !done {
			break
		}
		if e.state, e.slot = envColon, slotNone; !e.name.lost {
			e.slot = topSlotQuoted(e.name.text)
		}
	case done:
		e.keep(b[start:i], true)
		e.state = envNext
	default:
		e.keep(b[start:i], false)
	}
	return i
}

// inScalar continues a number or literal and returns the offset after what it read.
func (e *Envelope) inScalar(b []byte, i int) int {
	start := i
	for i < len(b) && !skip.EndsScalar(b[i]) {
		i++
	}
	e.keep(b[start:i], i < len(b))
	if i < len(b) {
		e.state = envNext
	}
	return i
}

// endNested handles the end of a nested value, or of a batch. Of a nested value in a
// buffer, only the first byte was kept: it is neither a valid id nor null.
func (e *Envelope) endNested() {
	e.state = envNext
	if e.batch {
		e.state = envEnd
	}
	e.keep(nil, true)
}

// Complete reports whether the chunks so far are one whole object or array.
func (e *Envelope) Complete() bool { return e.state == envEnd }

// CanBeMessage reports whether the chunks so far can be the beginning of a
// JSON object, or of an array of them.
func (e *Envelope) CanBeMessage() bool { return e.state != envBad }

// ID returns the raw id found so far. It returns nil if there is none or more than
// one, or if it is neither a string nor an integer.
func (e *Envelope) ID() []byte {
	if e.ids != 1 || !e.id.done || e.id.lost || !validID(e.id.text) {
		return nil
	}
	return e.id.text
}

func (e *Envelope) kind() Kind {
	switch {
	case e.state == envBad:
		return Unreadable
	case e.batch:
		return Batch
	}
	return kindOf(e.seen[slotMethod], e.ids > 0, e.seen[slotResult], e.failed())
}

// failed reports whether there is an error that is not null.
func (e *Envelope) failed() bool {
	return e.seen[slotError] && (e.failure.lost || string(e.failure.text) != "null")
}

func (e *Envelope) ambiguity() Ambiguity {
	a := conflict(e.seen[slotMethod], e.seen[slotResult], e.failed())
	if e.repeated {
		a = max(a, EqualKeys)
	}
	return a
}

// Oversize returns a message for a line that was streamed in chunks. Its kind and id are known, but it
// has no bytes and cannot be edited.
func Oversize(from Peer, e *Envelope) *Message {
	m := &Message{From: from, tooLarge: true, kind: e.kind(), ambiguity: e.ambiguity()}
	if e.state == envBad || e.batch {
		return m
	}
	// Nothing reads the frame of such a message as JSON: it is only the id and the method, one after
	// the other, for the spans.
	id := e.ID()
	m.frame = append(append(m.frame, id...), e.method.text...)
	m.spans[slotID] = span{0, len(id)}
	m.spans[slotMethod] = span{len(id), len(m.frame)}
	m.ids = e.ids
	return m
}
