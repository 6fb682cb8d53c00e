package front

import (
	"bytes"
	"sync"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/piece"
	"github.com/attache-mcp/attache/proxy/front/internal/pulse"
	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire"
)

// streamRoom is how many bytes the messages may take that wait for the client of a stream,
// beside the first of them. A part of a message takes a whole piece.
const streamRoom = 1 << 20

// A part says which part of a message an item is.
type part uint8

const (
	whole  part = iota
	middle      // the first part, or a further one, of a message that goes on
	last
)

// An item is a message that goes to a client, or a part of one, without its line end.
type item struct {
	data   []byte     // of a part: a piece
	lease  wire.Lease // of data; nil if that is not lent
	part   part
	text   bool // data is the text of whole events
	final  bool // it is the reply that ends the stream, or a part of it
	failed bool // it is an error
}

// release gives back the memory of an item that was written.
func (i *item) release() {
	if i.part != whole {
		piece.Free(i.data)
	}
	if i.lease != nil {
		i.lease.Release()
	}
}

// A stream takes messages from a relay to one HTTP response. The relay's goroutine
// pushes, the handler's takes.
type stream struct {
	events bool          // the client takes events, so more than a reply may be sent
	wake   chan struct{} // has an element if there is something to take
	woken  func()        // if not nil, is called in place of that; guarded by mu
	calls  int           // in flight whose replies go here; guarded by session.mu

	member pulse.Member // of the pulse that reminds it

	mu     sync.Mutex
	room1  [1]item // where items begins: most streams have one
	items  []item
	text   []byte        // of the events that follow items
	lent   *room.Room    // what text is; nil if it has memory of its own
	bytes  int           // that items and text take
	closed bool          // nothing follows what is in items and text
	gone   bool          // nobody reads any more
	room   chan struct{} // not nil while push waits
	due    time.Time     // when the client is to see that the stream is alive
	silent bool          // that time has come
}

func newStream(events bool) *stream {
	t := &stream{events: events, wake: make(chan struct{}, 1)}
	t.items = t.room1[:0]
	return t
}

// push adds an item, and waits for room: a client that does not read holds up its own
// session, until the write to it takes too long. It reports false if nobody reads.
func (t *stream) push(i item, closes bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.awaitRoomLocked(cap(i.data)) {
		return false
	}
	t.addLocked(i, closes)
	return true
}

const (
	// smallText is how much text has memory of its own. More is rare on streams that are idle, of
	// which there may be thousands with an event at the same time.
	smallText = 4 << 10
	// textRoom is how much there is in memory that is lent.
	textRoom = 64 << 10
)

// pushEvent is push for a copy of a message that is no reply, where the client takes events. Many
// may come at once, so they are gathered as they are written.
func (t *stream) pushEvent(frame []byte) bool {
	n := len(eventStart) + len(frame) + len(eventEnd)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.awaitRoomLocked(n) {
		return false
	}
	if n > textRoom/2 || bytes.IndexByte(frame, '\r') >= 0 {
		t.addLocked(item{data: bytes.Clone(frame)}, false)
		return true
	}
	if size := len(t.text) + n; size > textRoom {
		t.endTextLocked()
	} else if size > smallText && t.lent == nil {
		t.lent = room.Borrow(textRoom)
		t.text = append(t.lent.Bytes, t.text...)
	}
	t.text = append(append(append(t.text, eventStart...), frame...), eventEnd...)
	t.bytes += n
	t.wakeUp()
	return true
}

// endTextLocked makes text an item, which others may follow.
func (t *stream) endTextLocked() {
	if len(t.text) == 0 {
		return
	}
	i := item{data: t.text, text: true}
	if t.lent != nil {
		i.lease = t.lent
	}
	t.items = append(t.items, i)
	t.text, t.lent = nil, nil
}

// awaitRoomLocked waits for room for n bytes, and reports whether somebody reads. The caller holds
// mu, which is free meanwhile.
func (t *stream) awaitRoomLocked(n int) bool {
	for t.bytes > 0 && t.bytes+n > streamRoom && !t.gone {
		if t.room == nil {
			t.room = make(chan struct{})
		}
		room := t.room
		t.mu.Unlock()
		<-room
		t.mu.Lock()
	}
	return !t.gone && !t.closed
}

// offer is push that does not wait. It reports false if there is no room or nobody reads.
func (t *stream) offer(i item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone || t.closed || t.bytes > 0 && t.bytes+cap(i.data) > streamRoom {
		return false
	}
	t.addLocked(i, false)
	return true
}

// force is push for a message of attache's own, which is short and needs no room.
func (t *stream) force(i item, closes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.gone && !t.closed {
		t.addLocked(i, closes)
	}
}

func (t *stream) addLocked(i item, closes bool) {
	t.endTextLocked()
	t.items = append(t.items, i)
	t.bytes += cap(i.data)
	t.closed = closes
	t.wakeUp()
}

func (t *stream) wakeUp() {
	if t.woken != nil {
		t.woken()
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// join has a pulse remind the stream, for the first time after quickTime.
func (t *stream) join(p *pulse.Pulse) {
	t.mu.Lock()
	t.due = time.Now().Add(quickTime)
	t.mu.Unlock()
	p.Add(&t.member, t)
}

// Remind implements pulse.Reminded: it wakes who reads the stream if it has been silent for too
// long.
func (t *stream) Remind(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.due) {
		return
	}
	t.silent = true
	t.due = now.Add(aliveTime)
	t.wakeUp()
}

// take returns what has been pushed, into the room of used, whether that is all, and
// whether the stream has been silent for too long.
func (t *stream) take(used []item) (items []item, closed, silent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endTextLocked()
	items, t.items, t.bytes = t.items, used[:0], 0
	silent, t.silent = t.silent, false
	if len(items) > 0 && !t.closed {
		t.due = time.Now().Add(aliveTime)
	}
	if t.room != nil {
		close(t.room)
		t.room = nil
	}
	return items, t.closed, silent
}

// leave says that nobody reads any more.
func (t *stream) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	t.items, t.text, t.lent, t.bytes = nil, nil, nil, 0
	if t.room != nil {
		close(t.room)
		t.room = nil
	}
}

// close ends the stream without a further message.
func (t *stream) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.wakeUp()
}

// attached reports whether somebody reads, and may be sent more than a reply.
func (t *stream) attached() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.events && !t.gone && !t.closed
}
