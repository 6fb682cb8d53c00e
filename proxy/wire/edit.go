package wire

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire/internal/skip"
)

// MaxEdited is the longest line an edit may make, in bytes: what the TypeScript
// SDK accepts (STDIO_DEFAULT_MAX_BUFFER_SIZE).
const MaxEdited = 10 << 20

// The errors of edits. After each the frame is unchanged: a layer that enriches lets
// it pass, and a layer that enforces refuses it.
var (
	// ErrTooLarge is returned if the line was over the hold limit, or would grow past MaxEdited.
	ErrTooLarge = errors.New("the message is too large to edit")
	// ErrNotPlain is returned if parsers may read the frame differently.
	ErrNotPlain = errors.New("the message is ambiguous and so not edited")
	// ErrShape is returned if a member on the path of an edit is not an object, or not an array.
	ErrShape = errors.New("the message does not have the shape the edit needs")
)

// A Splice replaces Len bytes at offset Off of a frame with Text.
type Splice struct {
	Off, Len int
	Text     []byte
}

const (
	firstRoom = 4 << 10 // memory for edits that each direction of a session keeps, in bytes
	keepRoom  = 1 << 20 // the most memory kept from frame to frame; larger edits borrow it
)

// Apply applies all splices at once. Offsets are those of the frame before the
// edit. The splices must not overlap and must not contain a line end. Apply sorts
// them; their order matters only between insertions at one offset. Values that were
// taken from the message before are stale afterwards: their bytes stay valid until
// the next Reset, but their offsets are wrong.
func (m *Message) Apply(splices ...Splice) error {
	if err := m.editable(); err != nil || len(splices) == 0 {
		return err
	}
	slices.SortStableFunc(splices, Splice.compare)
	grown, err := m.growth(splices)
	if err != nil {
		return err
	}
	buf := m.makeRoom(len(m.line) + grown)
	from := 0
	for _, s := range splices {
		buf = append(append(buf, m.frame[from:s.Off]...), s.Text...)
		from = s.Off + s.Len
	}
	buf = append(append(buf, m.frame[from:]...), m.eol...)
	m.SetLine(buf)
	// A splice may have added an argument. buf is in the lent memory, if there is one: see makeRoom.
	if m.edited, m.lacks = true, false; m.lent != nil {
		m.Lease = m.lent
	}
	if m.kind != Batch && !m.shift(splices) { // nothing inside an array is recorded
		m.relocate()
	}
	return nil
}

// editable returns why the message cannot be edited, if it cannot.
func (m *Message) editable() error {
	switch {
	case m.tooLarge:
		return ErrTooLarge
	case !m.Plain():
		return ErrNotPlain
	}
	return nil
}

// compare orders splices by offset, and at one offset insertions before
// replacements, which would overlap with them otherwise.
func (s Splice) compare(t Splice) int {
	return cmp.Or(cmp.Compare(s.Off, t.Off), cmp.Compare(min(s.Len, 1), min(t.Len, 1)))
}

// growth returns by how much the ordered splices lengthen the line.
func (m *Message) growth(splices []Splice) (grown int, err error) {
	from := 0
	for _, s := range splices {
		if s.Off < from || s.Len < 0 || s.Off > len(m.frame) || s.Len > len(m.frame)-s.Off {
			return 0, ErrShape
		}
		if bytes.IndexByte(s.Text, '\n') >= 0 || bytes.IndexByte(s.Text, '\r') >= 0 {
			return 0, ErrShape // white space in JSON, but the end of a frame
		}
		from = s.Off + s.Len
		grown += len(s.Text) - s.Len
	}
	if grown > 0 && len(m.line)+grown > MaxEdited { // an edit may shorten a line that is longer
		return 0, ErrTooLarge
	}
	return grown, nil
}

// makeRoom returns an empty slice with capacity n. Nothing else uses its memory
// until the next Reset, not even a later edit, because a layer may still hold a
// value from before that edit.
func (m *Message) makeRoom(n int) []byte {
	start := len(m.room)
	if cap(m.room)-start < n {
		// The old room may have values that are still in use, so it is left to the garbage collector.
		m.lent, start = nil, 0
		if n > keepRoom {
			m.lent = room.Borrow(n)
		}
		if m.lent != nil {
			m.room = m.lent.Bytes
		} else {
			m.room = make([]byte, 0, max(n+n/8, firstRoom, min(2*cap(m.room), keepRoom)))
		}
	}
	m.room = m.room[:start+n]
	return m.room[start:start:len(m.room)]
}

// shift adjusts the recorded positions to the ordered splices. It reports false if
// a splice does more than replace, or change the inside of, a value that contains
// no other recorded position; then the members must be located again.
func (m *Message) shift(splices []Splice) bool {
	for _, s := range splices {
		if !m.contained(s) {
			return false
		}
	}
	for i, p := range m.spans {
		if p.end <= splices[0].Off {
			continue // before all splices
		}
		for _, s := range splices {
			delta := len(s.Text) - s.Len
			// s never spans just one end of p: see contained.
			if s.Off < p.start {
				m.spans[i].start += delta
			}
			if s.Off < p.end {
				m.spans[i].end += delta
			}
		}
	}
	return true
}

// contained reports whether s is within a value that contains no other recorded
// position, and leaves it a value.
func (m *Message) contained(s Splice) bool {
	// params is not in the list, because it contains others; nor are id and method, because kind and method depend on them.
	for _, i := range [...]slot{slotArguments, slotName, slotMeta, slotResult, slotError} {
		p := m.spans[i]
		inside := p.start < s.Off && s.Off+s.Len < p.end
		replaced := p.start == s.Off && s.Len == p.end-p.start && s.Len > 0 && isTrimmed(s.Text)
		if inside || replaced {
			return true
		}
	}
	return false
}

// isTrimmed reports whether text is not empty and has no white space around it.
func isTrimmed(text []byte) bool {
	return len(text) > 0 && !skip.IsSpace(text[0]) && !skip.IsSpace(text[len(text)-1])
}

// relocate locates the members again.
func (m *Message) relocate() {
	if !m.locate(skip.Space(m.frame, 0)) {
		m.kind = Unreadable
		return
	}
	m.settle()
	if m.deep {
		m.locateParams()
	}
}

// Set sets the member at the path keys from the root to raw, which must be JSON on
// one line. If the member does not exist, Set adds it after its siblings, and also
// the objects on the path, but never a member of the envelope: that is [ErrShape].
func (m *Message) Set(raw []byte, keys ...string) error {
	if err := m.editable(); err != nil {
		return err
	}
	raw = skip.Trim(raw)
	// Find the deepest object on the path. n ends at 1: the envelope gets no new member, because the
	// TypeScript SDK drops a message with a member that it does not know.
	for n := len(keys); n > 0; n-- {
		switch v := m.Get(keys[:n]...); {
		case !v.Exists():
			continue
		case n == len(keys):
			return m.Apply(Splice{v.Off, len(v.Raw), raw})
		case v.IsObject():
			raw = Nest(raw, keys[n+1:])
			return m.Apply(addMember(m.makeRoom(memberLen(keys[n], raw)), v, keys[n], raw))
		}
		break
	}
	return ErrShape
}

// Nest wraps raw in objects with one member each, outermost first.
func Nest(raw []byte, keys []string) []byte {
	if len(keys) == 0 {
		return raw
	}
	out := append(append(AppendQuote([]byte{'{'}, keys[0]), ':'), Nest(raw, keys[1:])...)
	return append(out, '}')
}

// AddMember returns the splice that adds a member after the others of obj, which must
// be an object without it. For any other value, applying the splice returns
// [ErrShape].
func AddMember(obj Value, key string, raw []byte) Splice {
	return addMember(make([]byte, 0, memberLen(key, raw)), obj, key, raw)
}

// memberLen is the number of bytes that addMember appends, unless key needs escapes.
func memberLen(key string, raw []byte) int { return len(`,"":`) + len(key) + len(raw) }

// addMember is AddMember with the text appended to dst.
func addMember(dst []byte, obj Value, key string, raw []byte) Splice {
	end, follows := Tail(obj)
	if follows {
		dst = append(dst, ',')
	}
	dst = append(AppendQuote(dst, key), ':')
	return Splice{end, 0, append(dst, skip.Trim(raw)...)}
}

// Tail returns the offset in the frame at which a member is added after the others
// of obj, and whether there are others, so that a comma must come first. For a value
// that is not an object the offset is -1, for which Apply returns [ErrShape].
func Tail(obj Value) (off int, follows bool) {
	if !obj.IsObject() {
		return -1, false
	}
	end := len(skip.TrimRight(obj.Raw[:len(obj.Raw)-1]))
	return obj.Off + end, end > 1
}

// Prepend adds raw before the elements of the array at the path keys from the root.
func (m *Message) Prepend(raw []byte, keys ...string) error {
	if err := m.editable(); err != nil {
		return err
	}
	arr := m.Get(keys...)
	if !arr.IsArray() {
		return ErrShape
	}
	into := Splice{Off: arr.Off + 1, Text: skip.Trim(raw)}
	// Two insertions at one offset keep their order, so raw need not be copied to add a comma.
	if skip.Space(arr.Raw, 1) == len(arr.Raw)-1 {
		return m.Apply(into)
	}
	return m.Apply(into, Splice{Off: arr.Off + 1, Text: []byte{','}})
}
