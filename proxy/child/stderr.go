package child

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// flushAtLeast is what stderr gets for its last lines even when nothing
	// else is waited for.
	flushAtLeast = 50 * time.Millisecond

	leastRead = 512      // one read of the stderr of a process that says little; on the stack
	readSize  = 32 << 10 // one read of what is more
	queueSize = 64 << 10 // waiting for the sink; as much again may be on its way into it
)

// A stderrCopy copies the process's stderr to a sink that may block, and keeps
// its last lines. Two goroutines: one reads, and never waits for anything but
// the process, so no sink can block it; one writes, as long as there is something. Between them is a queue of
// bounded size. What does not fit is dropped and counted, from the beginning of
// a line to its end where that is possible; a line that was cut although it had
// begun to be written gets a line end, so that it does not run into the next.
// All other bytes stay as they are.
type stderrCopy struct {
	from *Output
	sink io.Writer // nil: only the tail is kept

	drained chan struct{} // from is at its end
	flushed chan struct{} // the sink has all it will get

	mu       sync.Mutex
	tail     tail
	queue    []byte
	writing  bool // a goroutine writes what is queued
	closed   bool // nothing more will be queued
	failed   bool // the sink returned an error, or was given up
	midLine  bool // the last byte queued is not a line end
	skipping bool // the rest of the line coming in is to be dropped
	dropped  int64
}

func newStderrCopy(from *Output, sink io.Writer) *stderrCopy {
	return &stderrCopy{
		from:    from,
		sink:    sink,
		drained: make(chan struct{}),
		flushed: make(chan struct{}),
	}
}

func (c *stderrCopy) start() { go c.read() }

// read takes stderr in until its end.
func (c *stderrCopy) read() {
	defer close(c.drained)
	var small [leastRead]byte
	for {
		n, err := c.from.Read(small[:])
		c.take(small[:n])
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

// readBuffers lend what a process is read into that says much.
var readBuffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// readMore takes stderr in until a read brings less than it could.
func (c *stderrCopy) readMore() error {
	b := readBuffers.Get().(*[readSize]byte)
	defer readBuffers.Put(b)
	for {
		n, err := c.from.Read(b[:])
		c.take(b[:n])
		if n < len(b) || err != nil {
			return err
		}
	}
}

// write gives the sink what is queued until nothing is.
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

// next takes all that is queued, in exchange for the buffer of the last batch. Where
// nothing is, the goroutine that writes ends.
func (c *stderrCopy) next(buf []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// take accepts a piece of stderr: for the tail all of it, for the sink as much
// as there is room for.
func (c *stderrCopy) take(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail.add(b)
	if c.sink == nil {
		return
	}
	if c.failed {
		c.dropped += int64(len(b))
		return
	}
	b = c.skip(b)
	fit := c.fit(b)
	c.enqueue(fit)
	if len(fit) < len(b) {
		c.tear(b[len(fit):])
	}
	if len(c.queue) > 0 && !c.writing {
		c.writing = true
		go c.write()
	}
}

// skip drops what belongs to a line whose beginning was dropped.
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

// fit is the part of b there is room for: all of it, or whole lines.
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

// tear drops rest, which follows what was queued last. A line end of ours takes
// the place of its first byte where it would cut a line, so that what is
// written and what is dropped always add up to what came in.
func (c *stderrCopy) tear(rest []byte) {
	c.skipping = rest[len(rest)-1] != '\n'
	if c.midLine {
		c.enqueue([]byte{'\n'}) // one byte over the limit, once a line
		rest = rest[1:]
	}
	c.dropped += int64(len(rest))
}

// giveUp drops what is queued and all that will come, n bytes of a batch with
// it.
func (c *stderrCopy) giveUp(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
	c.dropped += int64(n + len(c.queue))
	c.queue = nil
}

// finish waits until stderr was read to its end and the sink has got it: each
// until t, or for flushAtLeast where that is later. A sink that is blocked even
// then keeps its goroutine until it returns, and gets nothing more.
func (c *stderrCopy) finish(t time.Time) {
	t = later(t, time.Now().Add(flushAtLeast))
	c.from.cut(t)
	// A moment more than the cut, which ends the reader by itself. Only where
	// pipes have no deadlines is it left behind.
	closesBy(c.drained, t.Add(flushAtLeast))
	if !closesBy(c.flushed, later(t, time.Now().Add(flushAtLeast))) {
		c.giveUp(0)
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
