package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A ledger bounds the memory of the messages that are being sent: those that wait to be
// written, and those that were and may have to be sent again.
type ledger struct {
	limit int

	mu      sync.Mutex
	room    sync.Cond
	over    bool
	sending int // bytes that are not written yet
	kept    int // bytes that are
}

func (l *ledger) init(ctx context.Context, limit int) {
	l.limit, l.room.L = limit, &l.mu
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = true
		l.room.Broadcast()
	})
}

// enter waits for room for a message that is to be sent. It is called from one goroutine at a
// time.
func (l *ledger) enter(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.hasRoomLocked(n) {
		l.room.Wait()
	}
	l.sending += n
}

// hasRoom reports whether enter would not wait, if it is called next.
func (l *ledger) hasRoom(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasRoomLocked(n)
}

func (l *ledger) hasRoomLocked(n int) bool {
	return l.sending == 0 || l.sending+n <= l.limit || l.over
}

// written notes that a message has been written. It reports false if there is no room to
// keep it.
func (l *ledger) written(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending -= n
	l.room.Broadcast()
	if l.kept+n > l.limit {
		return false
	}
	l.kept += n
	return true
}

// leave takes out a message that is not sent again; kept says that it has been written.
func (l *ledger) leave(n int, kept bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept {
		l.kept -= n
		return
	}
	l.sending -= n
	l.room.Broadcast()
}

// A body is what a request sends. It can be read more than once, so that a request
// which the server cannot have executed can be sent again.
type body struct {
	line   []byte
	lease  wire.Lease    // of line; nil if that is not lent
	long   io.ReadCloser // in place of line: a message over the hold limit, which is read once
	ledger *ledger       // nil for a message of our own

	begun atomic.Bool // it is on its way: the server may have the request

	mu      sync.Mutex
	state   bodyState
	opened  int           // how often it was opened, or its bytes were taken
	written chan struct{} // closed when the body was read to its end; nil if nobody wants to know
}

type bodyState uint8

const (
	bodyWaits   bodyState = iota // not written yet
	bodyKept                     // written, and there to be sent again
	bodyDropped                  // cannot be sent again
)

// errSentOnce is met by a request that is to be sent again and was too long to be kept.
var errSentOnce = errors.New("the message is too long to be sent again: the client has to")

// whenWritten returns a channel that is closed when the body has left.
func (b *body) whenWritten() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written == nil {
		if b.written = make(chan struct{}); b.state != bodyWaits {
			close(b.written)
		}
	}
	return b.written
}

// traced returns ctx for a request with the body, which notes when it leaves.
func (b *body) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { b.begun.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				b.left()
			}
		},
	})
}

// left notes that the body has been written to its end.
func (b *body) left() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != bodyWaits {
		return
	}
	b.state = bodyKept
	if b.ledger != nil && !b.ledger.written(len(b.line)) {
		b.state, b.line = bodyDropped, nil
		b.giveBackLocked(true)
	}
	if b.written != nil {
		close(b.written)
	}
}

// drop gives up the bytes: the message is not sent again.
func (b *body) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != bodyDropped && b.ledger != nil {
		b.ledger.leave(len(b.line), b.state == bodyKept)
	}
	b.giveBackLocked(b.state == bodyKept)
	b.state, b.line = bodyDropped, nil
}

// giveBackLocked gives the memory of line back, unless the transport may still read it: it may go on
// after an error, so one that was opened must have been written, and no other one.
func (b *body) giveBackLocked(written bool) {
	if b.lease != nil && (b.opened == 0 || written && b.opened == 1) {
		b.lease.Release()
	}
	b.lease = nil
}

// open returns the body from its beginning.
func (b *body) open() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.state == bodyDropped || b.long != nil && b.opened > 0:
		return nil, errSentOnce
	case b.long != nil:
		b.opened++
		b.begun.Store(true)
		return b.long, nil
	}
	b.opened++
	// A reader that the transport knows to be in memory leaves with the headers, in one packet.
	return io.NopCloser(bytes.NewReader(b.line)), nil
}

// bytes returns the message, nil if it was dropped. Its memory is not given back any more: the
// transport may go on writing it after the server has answered, and its end would give back what the
// caller reads.
func (b *body) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	return b.line
}

// size returns the length of the body, -1 if it is not known.
func (b *body) size() int64 {
	if b.long != nil {
		return -1
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.line))
}
