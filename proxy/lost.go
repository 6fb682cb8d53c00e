package proxy

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

// closedInput is what a request meets whose server no longer reads.
const closedInput = "the server has closed its input and takes no more requests"

// lost are the ids of requests that could not be written to the upstream. Lines
// are gathered before they are written, so the write that fails is seldom that
// of the request it hits: what it did not write is looked through for requests.
type lost struct {
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
	w.l.lost.broken.Store(true)
	if !w.l.lost.streaming.Load() {
		w.l.lost.lines(b[bytes.LastIndexByte(b[:n], '\n')+1:])
	}
	return n, err
}

// lines takes lines that were not written.
func (l *lost) lines(b []byte) {
	for line := range bytes.Lines(b) {
		var m wire.Message
		m.Reset(wire.Client, line)
		m.LookEnvelope()
		if m.Kind() != wire.Batch {
			l.request(&m)
			continue
		}
		for e := range m.Root().Elements() {
			var member wire.Message
			member.Reset(wire.Client, e.Raw)
			member.LookEnvelope()
			l.request(&member)
		}
	}
}

func (l *lost) request(m *wire.Message) {
	if m.Kind() != wire.Request || m.ID() == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, bytes.Clone(m.ID()))
	l.any.Store(true)
}

func (l *lost) take() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := l.ids
	l.ids = nil
	l.any.Store(false)
	return ids
}

// answerLost answers the requests that could not be written. What the server
// still says goes on to the client. The caller holds c.mu.
func (s *session) answerLost(l *link) {
	if !l.lost.any.Load() {
		return
	}
	for _, id := range l.lost.take() {
		if a := s.asks.take(string(id)); a != nil {
			a.timer.Stop()
			go a.done(nil)
			continue
		}
		if c := s.calls.claimYoungest(id); c != nil {
			s.log.Debug("a request could not be sent: the server does not take input any more", "id", clip(id))
			s.answerClaimed(c, wire.ErrorReply(c.id(), wire.CodeInternalError, closedInput))
		}
	}
}

// mayBeLost is called when a queued line has left, or could not. If the upstream
// takes no input by then, the line counts as lost: a reply to attache's own
// request is swallowed even when it comes after all.
func (l *link) mayBeLost(line []byte) {
	if l.lost.broken.Load() {
		l.lost.lines(line)
	}
	s := l.s
	if !l.lost.any.Load() || !s.work.begin() {
		return
	}
	go func() {
		defer s.work.end()
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		s.answerLost(l)
	}()
}
