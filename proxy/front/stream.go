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
	beside any  // of the error: see httpstatus
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
	first  [1]item // the memory of items at first: most streams have one
	items  []item
	text   []byte        // of the events that follow items
	lent   *room.Room    // the memory of text; nil if it has memory of its own
	bytes  int           // capacity of items and text
	closed bool          // nothing follows what is in items and text
	gone   bool          // nobody reads any more
	over   atomic.Bool   // closed or gone
	taken  chan struct{} // is closed when bytes becomes 0; not nil while push waits for that
	due    time.Time     // when the client is to see that the stream is alive
	silent bool          // that time has come
}

func newStream(events bool) *stream {
	t := &stream{events: events, wake: make(chan struct{}, 1)}
	t.items = t.first[:0]
	return t
}

// push adds an item, and waits for room: a client that does not read holds up its own
// session, until the write to it takes too long.
func (t *stream) push(i item, closes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.awaitRoomLocked(cap(i.data)) {
		t.addLocked(i, closes)
	}
}

const (
	// smallText is how much text has memory of its own: an idle stream must not hold textRoom for
	// one event.
	smallText = 4 << 10
	// textRoom is how much text has memory that is lent.
	textRoom = 64 << 10
)

// pushEvent is push for a copy of a message that is no reply, where the client takes events. Many
// may come at once, so they are gathered as they are written.
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

// growTextLocked gives text the memory for n more bytes. All of it counts, since a text that an
// item follows keeps what it does not use.
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

// awaitRoomLocked waits until n more bytes may be taken, and reports whether somebody reads. It does
// not wait if n is 0. The caller holds mu, which is free meanwhile.
func (t *stream) awaitRoomLocked(n int) bool {
	for n > 0 && t.bytes > 0 && t.bytes+n > streamRoom && !t.gone {
		if t.taken == nil {
			t.taken = make(chan struct{})
		}
		taken := t.taken
		t.mu.Unlock()
		<-taken
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
	t.over.Store(closes)
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

// take returns what has been pushed, whether that is all, and whether the stream has been silent for
// too long. What is pushed next goes into the memory of used.
func (t *stream) take(used []item) (items []item, closed, silent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endTextLocked()
	items, t.items = t.items, used[:0]
	silent, t.silent = t.silent, false
	if len(items) > 0 && !t.closed {
		t.due = time.Now().Add(aliveTime)
	}
	t.emptiedLocked()
	return items, t.closed, silent
}

// leave says that nobody reads any more, and gives back what nobody has taken. The writer gives back
// what it took; net/http may still read what it could not write, so that is left to the collector.
func (t *stream) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	t.over.Store(true)
	t.endTextLocked()
	for _, i := range t.items {
		i.release()
	}
	t.items = nil
	t.emptiedLocked()
}

// emptiedLocked notes that nothing is left, so push need not wait.
func (t *stream) emptiedLocked() {
	t.bytes = 0
	if t.taken != nil {
		close(t.taken)
		t.taken = nil
	}
}

// close ends the stream without a further message.
func (t *stream) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.over.Store(true)
	t.wakeUp()
}

// attached reports whether somebody reads, and may be sent more than a reply.
func (t *stream) attached() bool { return t.events && !t.over.Load() }
