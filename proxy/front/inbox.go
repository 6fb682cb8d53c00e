package front

import (
	"context"
	"io"
	"sync"
)

// inboxRoom is how many bytes of lines may wait for the relay, beside the last of them.
const inboxRoom = 64 << 10

// An inbox takes the lines of a session's handlers to its relay, which reads from it. The
// bytes are copied once, by the reader. The zero value is not ready: see newInbox.
type inbox struct {
	mu      sync.Mutex
	changed sync.Cond
	lines   [][]byte
	bytes   int
	closed  bool
	read    bool // to its end
	held    bool // lines that are put wait in behind
	behind  [][]byte
}

func newInbox() *inbox {
	i := &inbox{}
	i.changed.L = &i.mu
	return i
}

// put adds a line, which the inbox keeps, and waits while too much waits before it. The
// error is errOver, or that of ctx if its client left while it waited.
func (i *inbox) put(ctx context.Context, line []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bytes > inboxRoom && !i.closed {
		defer context.AfterFunc(ctx, i.wake)()
	}
	for i.bytes > inboxRoom && !i.closed {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		i.changed.Wait()
	}
	if i.closed {
		return errOver
	}
	if i.bytes += len(line); i.held {
		i.behind = append(i.behind, line)
		return nil
	}
	i.lines = append(i.lines, line)
	i.changed.Broadcast()
	return nil
}

// hold has the lines that are put wait until release.
func (i *inbox) hold() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held = true
}

// first adds a line in front of those that wait for release.
func (i *inbox) first(line []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lines = append(i.lines, line)
	i.bytes += len(line)
	i.changed.Broadcast()
}

func (i *inbox) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lines = append(i.lines, i.behind...)
	i.held, i.behind = false, nil
	i.changed.Broadcast()
}

// wake has everybody who waits look again.
func (i *inbox) wake() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed.Broadcast()
}

// Read implements io.Reader.
func (i *inbox) Read(b []byte) (n int, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(i.lines) == 0 {
		if i.closed {
			i.read = true
			return 0, io.EOF
		}
		i.changed.Wait()
	}
	for len(i.lines) > 0 && n < len(b) {
		copied := copy(b[n:], i.lines[0])
		n += copied
		if i.lines[0] = i.lines[0][copied:]; len(i.lines[0]) == 0 {
			i.lines[0] = nil
			i.lines = i.lines[1:]
		}
	}
	if len(i.lines) == 0 {
		i.lines = nil
	}
	full := i.bytes > inboxRoom
	if i.bytes -= n; full {
		i.changed.Broadcast()
	}
	return n, nil
}

// left returns how much the relay has not read: 0 if it has read the end, else at least 1.
func (i *inbox) left() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.read {
		return 0
	}
	return 1 + i.bytes
}

// close ends the input of the relay behind the lines that wait.
func (i *inbox) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed.Broadcast()
}
