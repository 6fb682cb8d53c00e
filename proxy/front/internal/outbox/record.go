package outbox

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// recordRoom is how many bytes of events a Record keeps.
const recordRoom = 64 << 10

// A Record keeps the events that were last written to a stream. A client that has lost its connection gets the
// events again that it has not received. Each event has an id. One goroutine uses a Record at a time.
//
// Always from <= n and last <= len(text). The events after last have no number yet: a message may take several writes,
// and only the last one has its end. With from == n, nothing before the last id is kept.
type Record struct {
	name string // the beginning of the ids
	n    int    // number of the last id that was written; 0 is that of Begin
	text []byte // what was written after the id with the number from
	from int
	last int  // length of text up to the last id
	lost bool // what was written after the last id was too long to keep; text is empty until the next Mark

	begun bool // Begin was called
}

// newRecord returns a Record for the stream of the request with a raw id. It returns nil if the raw id is too
// long to be a part of the ids of events.
func newRecord(request []byte) *Record {
	if len(request) > 256 {
		return nil
	}
	// The random part makes the ids unique in the session, as they must be, and in all others. The id of the request
	// follows, so that the request can be answered when the Record is forgotten, or was in another process.
	return &Record{name: rand.Text() + "." + base64.RawURLEncoding.EncodeToString(request) + "."}
}

// ParseID returns the raw id of the request whose stream has an event with this id, nil if the request has its
// answer. ok is false if no event of a Record has this id.
func ParseID(id string) (request []byte, ok bool) {
	parts := strings.Split(id, ".")
	if len(parts) != 3 {
		return nil, false
	}
	request, err := base64.RawURLEncoding.DecodeString(parts[1])
	return request, err == nil && (len(request) == 0 || isID(request))
}

// isID reports whether raw can be the id of an error reply in an event. The client may have made it up, and it is
// written back.
func isID(raw []byte) bool {
	return utf8.Valid(raw) && json.Valid(raw) && !bytes.ContainsAny(raw[:1], "{[") && !bytes.ContainsAny(raw, "\r\n")
}

// EndField returns an id for an event after which nothing follows, as a field. It names no request, because that
// has its answer.
func EndField() string { return "id: " + rand.Text() + "..0\n" }

// Begin returns an event that gives the client an id before the first message, for a stream that is silent. Its type
// is not message: many clients parse each message as JSON, also one without data.
func (r *Record) Begin() []byte {
	r.begun = true
	return prime(r.name + "0")
}

func prime(id string) []byte { return []byte("event: prime\nid: " + id + "\ndata: \n\n") }

// getPrefix begins the ids of GET streams. Package remote knows it, too.
const getPrefix = "get."

// BeginGet returns an event like that of Begin for a GET stream, whose events are not kept. go-sdk ends its session
// when it has lost six GET streams that gave it no new id, as after six restarts of the front.
func BeginGet() []byte { return prime(getPrefix + rand.Text()) }

// IsGetID reports whether id is that of a GET stream: with it, a client opens another one.
func IsGetID(id string) bool { return strings.HasPrefix(id, getPrefix) }

// AppendNext appends the next id to b, as a field of an event. Call Mark when that event was written.
func (r *Record) AppendNext(b []byte) []byte {
	b = append(append(b, "id: "...), r.name...)
	return append(strconv.AppendInt(b, int64(r.n)+1, 10), '\n')
}

// AppendPart appends an id to b, as a field of an event. Use it for each event but the last of those that are written
// together. The id is that of AppendNext, and then part, which must differ for each event until Mark is called. Only
// Mark makes a new number, so attache forgets events together that were written together.
func (r *Record) AppendPart(b []byte, part int) []byte {
	b = r.AppendNext(b)
	b = append(b[:len(b)-1], partMark)
	return append(strconv.AppendInt(b, int64(part), 10), '\n')
}

const partMark = '-'

// Keep records what is written.
func (r *Record) Keep(b []byte) {
	// First forget what was written up to the last id: most clients have received that. If the rest is still too long,
	// it is lost.
	if len(r.text)+len(b) > recordRoom {
		r.text, r.last, r.from = append(r.text[:0], r.text[r.last:]...), 0, r.n
	}
	if r.lost = r.lost || len(r.text)+len(b) > recordRoom; r.lost {
		r.text = nil
		return
	}
	r.text = append(r.text, b...)
}

// Mark records that the event with the next id was written.
func (r *Record) Mark() {
	if r.n++; r.lost {
		r.from, r.lost = r.n, false
	}
	r.last = len(r.text)
}

// has reports whether an event of the stream may have this id. Any goroutine may call it.
func (r *Record) has(id string) bool { return strings.HasPrefix(id, r.name) }

// After returns what was written after the event with this id, as far as it was kept, in memory that Keep uses
// again. ok is false if the last of that, which may be the reply, was not kept.
func (r *Record) After(id string) (text []byte, ok bool) {
	// Data cannot have such a line: event.Lines begins each line of data with "data: ".
	if _, text, ok = bytes.Cut(r.text, []byte("\nid: "+id+"\n\n")); ok {
		return text, true
	}
	number, _, isPart := strings.Cut(strings.TrimPrefix(id, r.name), string(partMark))
	n, err := strconv.Atoi(number)
	if isPart {
		n-- // as if the client had got none of the events that were written together
	}
	if err != nil || n < 0 || n > r.from || r.lost {
		return nil, false
	}
	// With n < from some events are missing. The client gets the others all the same: most were progress, and the last
	// may be the reply.
	return r.text, n == r.from || len(r.text) > 0
}
