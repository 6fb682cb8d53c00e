package front

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/event"
	"github.com/attache-mcp/attache/proxy/front/internal/piece"
	"github.com/attache-mcp/attache/proxy/front/internal/pulse"
	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire"
)

// streamRoom is how many bytes of messages may wait on a stream, besides the first message. A part of
// a message counts as a whole piece.
const streamRoom = 1 << 20

// A part says which part of a message an item has.
type part uint8

const (
	whole  part = iota
	middle      // the first part, or a further one, of a message that goes on
	last
)

// An item is a message for a client, or a part of one, without its line end.
type item struct {
	data   []byte     // a part is a buffer of package piece
	lease  wire.Lease // of data; nil if data is not lent
	part   part
	text   bool // data is the text of whole events
	final  bool // the reply that ends the stream, or a part of it
	failed bool // an error reply
	beside any  // wire.Message.Beside of an error reply, for httpstatus
}

// release releases the memory of an item.
func (i *item) release() {
	if i.part != whole {
		piece.Free(i.data)
	}
	if i.lease != nil {
		i.lease.Release()
	}
}

// A stream carries messages from a relay to one HTTP response. The relay's goroutine pushes them, the
// handler's goroutine takes them.
type stream struct {
	events bool          // the client takes events, so more than a reply may be sent
	wake   chan struct{} // has an element if there is something to take
	notify func()        // if not nil, is called in place of that; guarded by mu
	calls  int           // in flight whose replies go here; guarded by session.mu

	member pulse.Member // of the pulse that reminds it

	mu      sync.Mutex
	first   [1]item // the initial memory of items, since most streams have one
	items   []item
	text    []byte        // events that follow items
	lent    *room.Room    // the memory of text; nil if it was allocated
	bytes   int           // capacity of items and text
	closed  bool          // nothing follows what is in items and text
	unread  bool          // nobody reads the stream
	ended   atomic.Bool   // closed or unread
	emptied chan struct{} // closed when bytes becomes 0; nil while push does not wait for that
	due     time.Time     // when a comment is due
	silent  bool          // a comment is due
}

func newStream(events bool) *stream {
	t := &stream{events: events, wake: make(chan struct{}, 1)}
	t.items = t.first[:0]
	return t
}

// push adds an item. It blocks while too many bytes wait: a client that does not read delays its own
// session, until the write to it times out.
func (t *stream) push(i item, closes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.awaitRoomLocked(cap(i.data)) {
		t.addLocked(i, closes)
	}
}

const (
	// smallText is the length in bytes up to which text is allocated: an idle stream must not hold
	// textRoom for one event.
	smallText = 4 << 10
	// textRoom is the size in bytes of the lent memory for longer text.
	textRoom = 64 << 10
)

// pushEvent pushes a copy of a message that is not a reply, for a client that accepts events. Many may
// come at once, so they are gathered in the form in which they are written. It reports false if nobody
// reads the stream.
func (t *stream) pushEvent(frame []byte) bool {
	n := event.Size(frame)
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > textRoom/2 {
		reads := t.awaitRoomLocked(len(frame))
		if reads {
			t.addLocked(item{data: slices.Clip(bytes.Clone(frame))}, false)
		}
		return reads
	}
	var more int // memory for text, at most
	if len(t.text)+n > cap(t.text) {
		more = textRoom
	}
	if !t.awaitRoomLocked(more) {
		return false
	}
	t.growTextLocked(n)
	t.text = event.Append(t.text, frame)
	t.wakeUp()
	return true
}

// growTextLocked makes room in text for n more bytes. It counts the whole capacity, because text that
// becomes an item keeps the part it does not use.
func (t *stream) growTextLocked(n int) {
	if len(t.text)+n > textRoom {
		t.endTextLocked()
	}
	had := cap(t.text)
	if size := len(t.text) + n; size <= smallText {
		t.text = slices.Grow(t.text, n)
	} else if size > had {
		t.lent = room.Borrow(textRoom)
		t.text = append(t.lent.Bytes, t.text...)
	}
	t.bytes += cap(t.text) - had
}

// endTextLocked moves text to a new item.
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

// awaitRoomLocked blocks until n more bytes may wait, and reports whether the stream is still read. It
// does not block if n is 0. The caller holds mu, which awaitRoomLocked releases while it blocks.
func (t *stream) awaitRoomLocked(n int) bool {
	for n > 0 && t.bytes > 0 && t.bytes+n > streamRoom && !t.unread {
		if t.emptied == nil {
			t.emptied = make(chan struct{})
		}
		taken := t.emptied
		t.mu.Unlock()
		<-taken
		t.mu.Lock()
	}
	return !t.unread && !t.closed
}

// offer is push without blocking. It reports false if there is no room or the stream is not read.
func (t *stream) offer(i item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unread || t.closed || t.bytes > 0 && t.bytes+cap(i.data) > streamRoom {
		return false
	}
	t.addLocked(i, false)
	return true
}

// force is push without a limit, for a short message that attache made.
func (t *stream) force(i item, closes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.unread && !t.closed {
		t.addLocked(i, closes)
	}
}

func (t *stream) addLocked(i item, closes bool) {
	t.endTextLocked()
	t.items = append(t.items, i)
	t.bytes += cap(i.data)
	t.closed = closes
	t.ended.Store(closes)
	t.wakeUp()
}

func (t *stream) wakeUp() {
	if t.notify != nil {
		t.notify()
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// join adds the stream to a pulse, which calls Remind, the first time after quickTime.
func (t *stream) join(p *pulse.Pulse) {
	t.mu.Lock()
	t.due = time.Now().Add(quickTime)
	t.mu.Unlock()
	p.Add(&t.member, t)
}

// Remind implements pulse.Reminded: it wakes the reader if the stream has been silent for too long.
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

// take returns the items that were pushed, whether they are the last, and whether the stream has been
// silent for too long. Items pushed later are stored in the memory of reuse.
func (t *stream) take(reuse []item) (items []item, closed, silent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endTextLocked()
	items, t.items = t.items, reuse[:0]
	silent, t.silent = t.silent, false
	if len(items) > 0 && !t.closed {
		t.due = time.Now().Add(aliveTime)
	}
	t.emptiedLocked()
	return items, t.closed, silent
}

// abandon marks the stream as no longer read, and releases the items that were not taken. The writer
// releases those it has written. net/http may still read an item that could not be written, so that
// one is left to the garbage collector.
func (t *stream) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unread = true
	t.ended.Store(true)
	t.endTextLocked()
	for _, i := range t.items {
		i.release()
	}
	t.items = nil
	t.emptiedLocked()
}

// emptiedLocked records that no item is left, and wakes push.
func (t *stream) emptiedLocked() {
	t.bytes = 0
	if t.emptied != nil {
		close(t.emptied)
		t.emptied = nil
	}
}

// close ends the stream without a further message.
func (t *stream) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.ended.Store(true)
	t.wakeUp()
}

// attached reports whether the stream is read by a client that accepts more than a reply.
func (t *stream) attached() bool { return t.events && !t.ended.Load() }
