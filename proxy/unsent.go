package proxy

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// closedInput is what a request meets whose server no longer reads.
const closedInput = "the server has closed its input and takes no more requests"

// unsentRequests are the ids of requests that could not be written to the upstream. Lines
// are gathered before they are written, so the write that fails is seldom that
// of the request it hits: what it did not write is looked through for requests.
type unsentRequests struct {
	broken    atomic.Bool // the upstream takes no more input
	any       atomic.Bool
	streaming atomic.Bool // a line is being written in chunks, which are no lines

	mu  sync.Mutex
	ids [][]byte
}

// serverIn is the upstream's stdin, and notices what does not get through.
type serverIn struct {
	w io.Writer
	l *link
}

// Write implements io.Writer.
func (w *serverIn) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	if err == nil {
		return n, nil
	}
	w.l.unsent.broken.Store(true)
	if !w.l.unsent.streaming.Load() {
		w.l.unsent.addLines(b[bytes.LastIndexByte(b[:n], '\n')+1:])
	}
	return n, err
}

// addLines takes the requests in lines that were not written.
func (u *unsentRequests) addLines(b []byte) {
	for line := range bytes.Lines(b) {
		var m wire.Message
		m.Reset(wire.Client, line)
		m.LookEnvelope()
		if m.Kind() != wire.Batch {
			u.addRequest(&m)
			continue
		}
		for e := range m.Root().Elements() {
			var member wire.Message
			member.Reset(wire.Client, e.Raw)
			member.LookEnvelope()
			u.addRequest(&member)
		}
	}
}

func (u *unsentRequests) addRequest(m *wire.Message) {
	if m.Kind() != wire.Request || m.ID() == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ids = append(u.ids, bytes.Clone(m.ID()))
	u.any.Store(true)
}

func (u *unsentRequests) take() [][]byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	ids := u.ids
	u.ids = nil
	u.any.Store(false)
	return ids
}

// answerUnsent answers the requests that could not be written. What the server
// still says goes on to the client. The caller holds c.mu.
func (s *session) answerUnsent(l *link) {
	if !l.unsent.any.Load() {
		return
	}
	for _, id := range l.unsent.take() {
		if a := s.asks.take(string(id)); a != nil {
			a.timer.Stop()
			go a.done(nil)
			continue
		}
		if c := s.calls.claimYoungest(id); c != nil {
			s.log.Debug("a request could not be sent: the server does not take input any more", "id", callid.Clip(id))
			s.answerClaimed(c, wire.ErrorReply(c.id(), wire.CodeInternalError, closedInput))
		}
	}
}

// checkSent is called when a queued line has left, or could not. If the upstream
// takes no input by then, the line counts as not sent: a reply to attache's own
// request is swallowed even when it comes after all.
func (l *link) checkSent(line []byte) {
	if l.unsent.broken.Load() {
		l.unsent.addLines(line)
	}
	s := l.s
	if !l.unsent.any.Load() || !s.work.Begin() {
		return
	}
	go func() {
		defer s.work.End()
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		s.answerUnsent(l)
	}()
}
