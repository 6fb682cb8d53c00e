package child

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// flushAtLeast is the time that the last lines of stderr always get.
	flushAtLeast = 50 * time.Millisecond

	smallRead = 512      // size of the first read; on the stack, as most processes write little
	largeRead = 32 << 10 // size of the following reads
	queueSize = 64 << 10 // bytes queued for the sink; as many again may be in a Write

	// sinkPatience is how long the reader waits for room in the queue. Then the
	// sink counts as blocked.
	sinkPatience = time.Second
)

// A stderrCopy copies the process's stderr to a sink that may block, and keeps
// the last lines. One goroutine reads, and another one writes while the queue
// between them is not empty. The queue has a bounded size. If it is full, the
// reader waits for the sink, so nothing is lost when a process writes much at
// once. While the sink is blocked, the reader does not wait. It drops the bytes
// that do not fit, in whole lines if possible, and counts them. If only a part
// of a line was queued, a line end is added, so the next line begins on its own.
// All other bytes are copied unchanged.
type stderrCopy struct {
	from *Output
	sink io.Writer // nil if only the tail is kept

	drained chan struct{} // closed when from was read to its end
	flushed chan struct{} // closed when the sink has received everything

	mu       sync.Mutex
	room     sync.Cond // signals that the reader need no longer wait for the sink
	tail     tail
	queue    []byte
	writing  bool // a goroutine writes the queue
	closed   bool // nothing more will be queued
	blocked  bool // the reader has waited for sinkPatience, and no Write has returned since
	failed   bool // the sink returned an error, or finish no longer waits for it
	midLine  bool // the last byte queued is not a line end
	skipping bool // the rest of the current line is dropped
	dropped  int64
}

func newStderrCopy(from *Output, sink io.Writer) *stderrCopy {
	c := &stderrCopy{
		from:    from,
		sink:    sink,
		drained: make(chan struct{}),
		flushed: make(chan struct{}),
	}
	c.room.L = &c.mu
	return c
}

// read reads stderr to its end.
func (c *stderrCopy) read() {
	defer close(c.drained)
	var small [smallRead]byte
	for {
		n, err := c.from.Read(small[:])
		c.add(small[:n])
		if n == len(small) && err == nil {
			err = c.readMore()
		}
		if err != nil {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if !c.writing {
		close(c.flushed)
	}
}

var readBuffers = sync.Pool{New: func() any { return new([largeRead]byte) }}

// readMore reads stderr with a larger buffer until a read does not fill it.
func (c *stderrCopy) readMore() error {
	b := readBuffers.Get().(*[largeRead]byte)
	defer readBuffers.Put(b)
	for {
		n, err := c.from.Read(b[:])
		c.add(b[:n])
		if n < len(b) || err != nil {
			return err
		}
	}
}

// write writes to the sink until the queue is empty.
func (c *stderrCopy) write() {
	var batch []byte
	for {
		batch = c.next(batch)
		if len(batch) == 0 {
			return
		}
		if n, err := c.sink.Write(batch); err != nil {
			c.giveUp(len(batch) - n)
		}
	}
}

// next returns and empties the queue, which then uses the buffer of the last
// batch. If the queue is empty, next returns nil and the writing goroutine ends.
func (c *stderrCopy) next(buf []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked = false
	c.room.Signal()
	if len(c.queue) == 0 {
		c.queue = nil
		if c.writing = false; c.closed {
			close(c.flushed)
		}
		return nil
	}
	batch := c.queue
	c.queue = buf[:0]
	return batch
}

// add adds b to the tail, and to the queue as far as there is room.
func (c *stderrCopy) add(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail.add(b)
	if c.sink == nil {
		return
	}
	b = c.skip(b)
	c.awaitRoom(len(b))
	if c.failed {
		c.dropped += int64(len(b))
		return
	}
	fitting := c.fit(b)
	c.enqueue(fitting)
	if len(fitting) < len(b) {
		c.drop(b[len(fitting):])
	}
	if len(c.queue) > 0 && !c.writing {
		c.writing = true
		go c.write()
	}
}

// awaitRoom waits until the queue has room for n bytes, or the sink is blocked or has
// failed. It unlocks c.mu while it waits.
func (c *stderrCopy) awaitRoom(n int) {
	full := func() bool { return len(c.queue) > max(queueSize-n, 0) && !c.blocked && !c.failed }
	if !full() {
		return
	}
	waiting := true
	defer time.AfterFunc(sinkPatience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.blocked = c.blocked || waiting
		c.room.Signal()
	}).Stop()
	for full() {
		c.room.Wait()
	}
	waiting = false
}

// skip drops the rest of a line whose beginning was dropped.
func (c *stderrCopy) skip(b []byte) []byte {
	if !c.skipping {
		return b
	}
	n := bytes.IndexByte(b, '\n') + 1
	if n == 0 {
		n = len(b)
	} else {
		c.skipping = false
	}
	c.dropped += int64(n)
	return b[n:]
}

// fit returns the part of b that the queue has room for: all of it, or whole lines.
func (c *stderrCopy) fit(b []byte) []byte {
	room := max(queueSize-len(c.queue), 0)
	if len(b) <= room {
		return b
	}
	return b[:bytes.LastIndexByte(b[:room], '\n')+1]
}

func (c *stderrCopy) enqueue(b []byte) {
	if len(b) == 0 {
		return
	}
	c.queue = append(c.queue, b...)
	c.midLine = b[len(b)-1] != '\n'
}

// drop drops rest, which follows what was queued last. If that cuts a line, a line
// end replaces the first byte of rest, so that the numbers of bytes written and
// dropped always add up to the number of bytes read.
func (c *stderrCopy) drop(rest []byte) {
	c.skipping = rest[len(rest)-1] != '\n'
	if c.midLine {
		c.enqueue([]byte{'\n'}) // one byte over the limit, once a line
		rest = rest[1:]
	}
	c.dropped += int64(len(rest))
}

// giveUp drops the queue and everything that follows. n is the number of bytes of
// the current batch that were not written.
func (c *stderrCopy) giveUp(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
	c.dropped += int64(n + len(c.queue))
	c.queue = nil
	c.room.Signal()
}

// finish waits until stderr was read to its end and the sink has received it. It
// waits for each until t, and for flushAtLeast at least. If a sink still blocks
// then, its goroutine ends when the Write returns, and writes nothing more.
func (c *stderrCopy) finish(t time.Time) {
	t = later(t, time.Now().Add(flushAtLeast))
	c.from.cut(t)
	// Wait a moment longer than the cut, which ends the reader. If pipes have no
	// deadlines, the reader may go on.
	closesBy(c.drained, t.Add(flushAtLeast))
	if !closesBy(c.flushed, later(t, time.Now().Add(flushAtLeast))) {
		c.giveUp(0)
		// If the reader waited for the sink, it now reads the rest, for the tail.
		closesBy(c.drained, time.Now().Add(flushAtLeast))
	}
}

// closesBy waits for ch to be closed, until t, and reports whether it was.
func closesBy(ch <-chan struct{}, t time.Time) bool {
	select {
	case <-ch:
		return true
	case <-time.After(time.Until(t)):
		return false
	}
}

func (c *stderrCopy) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tail.lines()
}

func (c *stderrCopy) droppedBytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}
