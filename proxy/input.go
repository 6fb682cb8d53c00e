package proxy

import (
	"bytes"
	"errors"
	"io"

	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/wire"
)

// clientLines handles the lines of a client that pushes them. It implements wire.Sink.
type clientLines struct{ s *session }

// Line implements wire.Sink.
func (c clientLines) Line(m *wire.Message, more bool) error {
	if len(m.Line()) > c.s.o.Hold { // layers do not see it, as if it had come from a pipe
		return c.Lines(nil, bytes.NewReader(m.Line()))
	}
	if len(m.Line()) > 64<<10 { // what a pipe holds
		c.s.widenToServer()
	}
	c.s.awaitReader()
	// Layers edit the message, and the front still has m, so they get another Message with the same line.
	c.s.c.msg.ResetTo(m)
	defer c.s.c.msg.GiveBack()
	return c.s.fail(c.s.fromClient(&c.s.c.msg, !more))
}

// Lines implements wire.Sink.
func (c clientLines) Lines(begun []byte, from io.Reader) error { return c.s.readClient(begun, from) }

// mostTried is the length in bytes of the longest line that Try handles, whose caller must not wait. Nobody
// tries a longer write to a pipe, because the pipe could take a part of it (PIPE_BUF, see child.Input).
const mostTried = 4 << 10

// Try implements wire.Trier.
func (c clientLines) Try(m *wire.Message) bool {
	s, d := c.s, &c.s.c
	// Whatever could block is left to Line, in a goroutine that may wait.
	if len(m.Line()) > min(mostTried, s.o.Hold) || s.backlog.Full() != nil || !d.mu.TryLock() {
		return false
	}
	defer d.mu.Unlock()
	l := s.link.Load()
	// Starting the upstream, and waiting behind a frame, behind a write or for room could block, too.
	if l == nil || d.held || !l.In.Ready() || s.calls.Full() != nil {
		return false
	}
	d.scanner.LookOnce(m) // m, so that the caller has the results too
	d.msg.ResetTo(m)
	if err := s.take(&d.msg); err != nil {
		s.fail(err)
		return true
	}
	if l.In.TryFlush() {
		s.answerUnsent(l)
	} else {
		// The message is accepted. Its write would block, so another goroutine does it.
		s.answerAside(s.flushServer)
	}
	return true
}

// End implements wire.Sink.
func (c clientLines) End() { c.s.endClient(nil) }

// errNotHandled is returned for a line of the client that could not be handled and ended the session.
var errNotHandled = errors.New("the session ends")

// readClient handles lines until the end of a reader. They begin with begun.
func (s *session) readClient(begun []byte, from io.Reader) error {
	r := wire.NewReader(from, s.o.Hold).Begin(begun)
	r.OnLongLine(s.widenToServer)
	handled, err := flow.Each(wire.Client, r, s.awaitReader, s.fromClient, s.streamFromClient)
	if handled {
		return err
	}
	s.failUnread(r, err) // before fail, which lets the session end
	s.fail(err)
	return errNotHandled
}

// endClient handles the end of the client's input. The session ends when it returns.
func (s *session) endClient(err error) {
	defer s.leave()
	switch err {
	case errNotHandled: // the session has failed, or is over: nothing more is passed on
		return
	case nil:
		s.goodbye.Store(true)
	default:
		s.fail(err)
	}
	s.clientClosed()
	s.heard.Store(true)
	s.awaitAnswers()
}

// failUnread answers the requests that were read and will not be handled, with an error.
func (s *session) failUnread(r *wire.Reader, why error) {
	for !errors.Is(why, errOver) && r.Buffered() {
		line, _, err := r.Next()
		if err != nil {
			return
		}
		s.watch(ClientIn, line)
		s.failRequests(wire.Parse(wire.Client, line), why)
	}
}
