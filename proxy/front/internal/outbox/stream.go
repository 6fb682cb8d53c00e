// Package outbox holds the messages of a relay that wait to be written to one HTTP response.
package outbox

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/event"
	"github.com/attache-mcp/attache/proxy/internal/room"
	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	// quickTime is how long a reply may take to be sent as JSON. Clients give up after a minute of
	// silence, and JSON cannot be kept alive.
	quickTime = 5 * time.Second
	// AliveTime is how long a stream is silent before a comment is due. The comment is written
	// within 15 s of the last write.
	AliveTime = 15*time.Second - beatTime
	// beatTime is the interval between two reminders of a Pulse, and so the most that a comment is late.
	beatTime = time.Second / 4
)

// streamRoom is how many bytes of messages may wait on a stream, besides the first message. A part of
// a message counts as partRoom.
const streamRoom = 1 << 20

// A Part says which part of a message an Item has.
type Part uint8

const (
	// Whole is a whole message.
	Whole Part = iota
	// Middle is the first part, or a further one, of a message that goes on.
	Middle
	// Last is the last part.
	Last
)

// An Item is a message for a client, or a part of one, without its line end.
type Item struct {
	Data []byte
	// Lease is that of Data; nil if Data is not lent.
	Lease wire.Lease
	Part  Part
	// Text says that Data is the text of whole events.
	Text bool
	// Final marks the reply that ends the stream, or a part of it.
	Final bool
	// Failed marks an error reply.
	Failed bool
	// Beside is wire.Message.Beside of an error reply, for httpstatus.
	Beside any
}

// Release releases the memory of an item. Call it once, when nobody reads Data any more.
func (i *Item) Release() {
	if i.Lease != nil {
		i.Lease.Release()
	}
}

// partRoom is the size in bytes of the lent memory for a part, so that a message of 1 GiB does not leave 1 GiB
// of garbage.
const partRoom = 64 << 10

// Cut returns an item with a copy of the beginning of b, as a part of a message that goes on, and the rest of b.
func Cut(b []byte) (i Item, rest []byte) {
	lent, n := room.Borrow(partRoom), min(len(b), partRoom)
	return Item{Data: append(lent.Bytes, b[:n]...), Lease: lent, Part: Middle}, b[n:]
}

// A Stream carries messages from a relay to one HTTP response. The relay's goroutine pushes them, the
// handler's goroutine takes them. Call Init before use, and do not copy it after that.
//
// bytes counts memory and not text: the capacity of what waits. The first message may be of any length, or a reply that is
// longer than streamRoom could never be sent. Take gives all of it to the reader and counts from 0 again, so as much may wait
// while that is written.
type Stream struct {
	events bool          // the client takes events, so more than a reply may be sent
	wake   chan struct{} // has an element if there is something to take

	next, before *Stream // in the list of the Pulse that it has joined, and guarded by its mutex

	mu      sync.Mutex
	notify  func()  // if not nil, is called in place of a send on wake
	first   [1]Item // the initial memory of items, since most streams have one
	items   []Item
	text    []byte        // events that follow items
	lent    *room.Room    // the memory of text; nil if it was allocated
	bytes   int           // capacity of items and text
	closed  bool          // nothing follows what is in items and text
	open    bool          // a part of a message was pushed, and more follows
	unread  bool          // nobody reads the stream
	ended   atomic.Bool   // closed or unread
	parked  atomic.Bool   // nobody reads the stream now, but its client may come back; written under mu
	emptied chan struct{} // closed when bytes becomes 0; nil while Push does not wait for that
	due     time.Time     // when a comment is due
	silent  bool          // a comment is due
	timer   *time.Timer   // stops when nobody reads the stream any more; nil if there is none
}

// Init makes the Stream ready to use. events says that the client accepts events.
func (t *Stream) Init(events bool) {
	t.events, t.wake = events, make(chan struct{}, 1)
	t.items = t.first[:0]
}

// Events reports whether the client accepts events, so that more than a reply may be sent.
func (t *Stream) Events() bool { return t.events }

// Wake returns a channel that has an element if there is something to take, unless Notify was called.
func (t *Stream) Wake() <-chan struct{} { return t.wake }

// Notify makes the Stream call f, in place of a send on Wake, when there is something to take. f must
// not block and must not use the Stream: its mutex is locked.
func (t *Stream) Notify(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notify = f
}

// Push adds an item. It blocks while too many bytes wait: a client that does not read delays its own
// session, until the write to it times out.
func (t *Stream) Push(i Item, closes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.awaitRoomLocked(cap(i.Data)) {
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

// PushEvent pushes a copy of a message that is not a reply, for a client that accepts events. Many may
// come at once, so they are gathered in the form in which they are written. It reports false if nobody
// reads the stream.
func (t *Stream) PushEvent(frame []byte) bool {
	n := event.Size(frame)
	t.mu.Lock()
	defer t.mu.Unlock()
	// A long one would leave much of the text before it, or of its own memory, unused.
	if n > textRoom/2 {
		reads := t.awaitRoomLocked(len(frame))
		if reads {
			t.addLocked(Item{Data: slices.Clip(bytes.Clone(frame))}, false)
		}
		return reads
	}
	// growTextLocked may need less.
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
func (t *Stream) growTextLocked(n int) {
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
func (t *Stream) endTextLocked() {
	if len(t.text) == 0 {
		return
	}
	i := Item{Data: t.text, Text: true}
	if t.lent != nil {
		i.Lease = t.lent
	}
	t.items = append(t.items, i)
	t.text, t.lent = nil, nil
}

// awaitRoomLocked blocks until n more bytes may wait, and reports whether the stream is still read. It
// does not block if n is 0. The caller holds mu, which awaitRoomLocked releases while it blocks.
func (t *Stream) awaitRoomLocked(n int) bool {
	for n > 0 && (t.bytes > 0 || t.parked.Load()) && t.bytes+n > streamRoom && !t.unread {
		// In each turn, because the reader may leave while this goroutine waits: park wakes it.
		if t.parked.Load() { // nobody makes room
			t.abandonLocked()
			break
		}
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

// Offer is Push without blocking, for any goroutine. It reports false if there is no room, if a part of a message
// was pushed whose rest follows, or if the stream is not read.
func (t *Stream) Offer(i Item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unread || t.closed || t.open || t.bytes > 0 && t.bytes+cap(i.Data) > streamRoom {
		return false
	}
	t.addLocked(i, false)
	return true
}

// Force is Push without a limit, for a short message that attache made.
func (t *Stream) Force(i Item, closes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.unread && !t.closed {
		t.addLocked(i, closes)
	}
}

func (t *Stream) addLocked(i Item, closes bool) {
	t.endTextLocked()
	t.items = append(t.items, i)
	t.bytes += cap(i.Data)
	t.open = i.Part == Middle
	t.closed = closes // it was not closed: Push, Offer and Force have looked
	t.ended.Store(closes)
	t.wakeUp()
}

func (t *Stream) wakeUp() {
	if t.notify != nil {
		t.notify()
		return
	}
	select {
	case t.wake <- struct{}{}:
	default: // the reader has not taken since the last one, and will take this too
	}
}

// begin sets when the first comment is due.
func (t *Stream) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due = time.Now().Add(quickTime)
}

// remind wakes the reader if the stream has been silent for too long.
func (t *Stream) remind(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.due) {
		return
	}
	t.silent = true
	t.due = now.Add(AliveTime)
	t.wakeUp()
}

// Take returns the items that were pushed, whether they are the last, and whether the stream has been
// silent for too long. Items pushed later are stored in the memory of reuse.
func (t *Stream) Take(reuse []Item) (items []Item, closed, silent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endTextLocked()
	items, t.items = t.items, reuse[:0]
	silent, t.silent = t.silent, false
	// The reader is about to write something, so the stream is not silent.
	if len(items) > 0 && !t.closed {
		t.due = time.Now().Add(AliveTime)
	}
	t.emptiedLocked()
	return items, t.closed, silent
}

// Abandon marks the stream as no longer read, and releases the items that were not taken. The writer
// releases those it has written. net/http may still read an item that could not be written, so that
// one is left to the garbage collector.
func (t *Stream) Abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.abandonLocked()
}

func (t *Stream) abandonLocked() {
	t.unread = true
	t.ended.Store(true)
	t.endTextLocked()
	for _, i := range t.items {
		i.Release()
	}
	t.items = nil
	t.emptiedLocked()
	if t.timer != nil {
		t.timer.Stop()
	}
}

// StopAtEnd stops a timer when nobody reads the stream any more. A running timer would keep the stream in
// memory.
func (t *Stream) StopAtEnd(timer *time.Timer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer = timer; t.unread {
		timer.Stop()
	}
}

// park keeps what is pushed for a client that may come back, up to streamRoom bytes; with more, the stream is
// abandoned. Push does not block until unpark.
func (t *Stream) park() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parked.Store(true); t.bytes > streamRoom { // the first message may be longer
		t.abandonLocked()
	}
	t.wakePushLocked()
}

// unpark is called before the stream is read again.
func (t *Stream) unpark() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parked.Store(false)
	t.wakeUp()
}

// Progress reports whether the stream is closed with nothing left to take, and whether it was abandoned.
func (t *Stream) Progress() (over, abandoned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed && len(t.items) == 0 && len(t.text) == 0, t.unread
}

// emptiedLocked records that no item is left, and wakes Push.
func (t *Stream) emptiedLocked() {
	t.bytes = 0
	t.wakePushLocked()
}

func (t *Stream) wakePushLocked() {
	if t.emptied != nil {
		close(t.emptied)
		t.emptied = nil
	}
}

// Close ends the stream without a further message.
func (t *Stream) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true // after a part of a message too: the reader then cuts the connection
	t.ended.Store(true)
	t.wakeUp()
}

// Ended reports whether the stream is closed or abandoned.
func (t *Stream) Ended() bool { return t.ended.Load() }

// Attached reports whether the stream is read by a client that accepts more than a reply.
func (t *Stream) Attached() bool { return t.Open() && !t.parked.Load() }

// Open is like Attached, but also reports true for a stream whose client may come back.
func (t *Stream) Open() bool { return t.events && !t.ended.Load() }
