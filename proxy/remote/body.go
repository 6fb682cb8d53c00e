package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A ledger bounds the memory of messages to the server: those not written yet, and those written that
// may have to be sent again. Each kind may take limit bytes. The first kind blocks the relay when there
// is no room; of the second kind, messages are dropped, which then cannot be sent again.
type ledger struct {
	limit int

	mu      sync.Mutex
	room    sync.Cond
	over    bool // the session has ended, so nobody must block; what comes then is not sent
	sending int  // bytes not written yet
	kept    int  // bytes written
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

// enter counts a message of n bytes, and blocks until there is room for it. It is called from one
// goroutine at a time.
func (l *ledger) enter(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.hasRoomLocked(n) {
		l.room.Wait()
	}
	l.sending += n
}

// hasRoom reports whether enter would not block.
func (l *ledger) hasRoom(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasRoomLocked(n)
}

// hasRoomLocked admits any message if no other one is being sent, so that none waits forever.
func (l *ledger) hasRoomLocked(n int) bool {
	return l.sending == 0 || l.sending+n <= l.limit || l.over
}

// written counts a message as written. It reports false if there is no room to keep it.
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

// leave stops counting a message. kept says that it was written. Then leave wakes nobody, because written does not
// wait for room.
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

// A body is the body of a request. It can be read more than once, so that a request which the server
// cannot have executed can be sent again.
type body struct {
	line   []byte             // without its line end; nil once it was dropped
	lease  wire.Lease         // of line; nil if that is not lent
	long   io.ReadCloser      // a message over the hold limit, in place of line; can be read once
	ledger *ledger            // nil for a message that attache made
	timer  func() *time.Timer // starts the time in which the answer must begin; nil for no limit

	// begun reports whether the server may have part of the request. It stays true for later attempts: what the
	// server had of one it may execute.
	begun atomic.Bool

	mu      sync.Mutex // the transport calls open and the hooks of traced from goroutines of its own
	state   bodyState
	opened  int           // how often open or bytes was called: how many may read line
	written chan struct{} // closed when the body was written; nil until whenWritten
}

// A bodyState only grows: from unwritten to kept or dropped, and from kept to dropped.
type bodyState uint8

const (
	bodyUnwritten bodyState = iota
	bodyKept                // written, and kept to be sent again
	bodyDropped             // cannot be sent again
)

// whenWritten returns a channel that is closed when the body was written.
func (b *body) whenWritten() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written == nil {
		if b.written = make(chan struct{}); b.state != bodyUnwritten {
			close(b.written)
		}
	}
	return b.written
}

// traced returns a context for the request, which records when header and body are written. Transports call the
// hooks when header and body are in a buffer, which is a little early: begun may be true before the server has any of
// the request, and is never false when the server has some of it.
func (b *body) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { b.begun.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				b.markWritten()
			}
		},
	})
}

// markWritten records that the whole body was written. Only its first call counts: the ledger has the message once,
// however often it is sent.
func (b *body) markWritten() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != bodyUnwritten {
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

// drop releases the bytes, because the message will not be sent again.
func (b *body) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != bodyDropped && b.ledger != nil {
		b.ledger.leave(len(b.line), b.state == bodyKept)
	}
	b.giveBackLocked(b.state == bodyKept)
	b.state, b.line = bodyDropped, nil
}

// giveBackLocked releases the memory of line, unless the transport may still read it. A transport may
// continue to read after an error, so a body that was opened must have been opened once and written.
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
		return nil, errors.New("the message is too long to be sent again: the client has to")
	case b.long != nil: // its bytes exist once, so it counts as sent from here on
		b.opened++
		b.begun.Store(true)
		return b.long, nil
	}
	b.opened++
	// The transport sends a body of this type in one packet with the header.
	return io.NopCloser(bytes.NewReader(b.line)), nil
}

// bytes returns the message, nil if it was dropped. After that its memory is not released, because the
// caller may still read it when the transport has finished writing.
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
