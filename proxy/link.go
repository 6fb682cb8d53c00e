package proxy

import (
	"bytes"
	"io"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/internal/revive"
	"github.com/attache-mcp/attache/proxy/wire"
)

// serverLines handles the lines of an upstream, until the client takes no more.
type serverLines struct{ s *session }

// Line implements revive.LineTaker.
func (v serverLines) Line(m *wire.Message, more bool) error {
	if len(m.Line()) > v.s.o.Hold {
		return v.Lines(nil, bytes.NewReader(m.Line()))
	}
	if v.s.v.msg == nil { // a server with a pipe has no use for it
		v.s.v.msg = new(wire.Message)
	}
	v.s.v.msg.ResetTo(m)
	defer v.s.v.msg.GiveBack()
	return v.s.fail(v.s.fromServer(v.s.v.msg, !more))
}

// Lines implements revive.LineTaker. An error of the reader ends the lines, and not the session.
func (v serverLines) Lines(begun []byte, from io.Reader) error {
	r := wire.NewReader(from, v.s.o.Hold).Begin(begun)
	r.OnLongLine(func() { flow.Widen(from, v.s.o.ClientOut) })
	handled, err := flow.Each(wire.Server, r, nil, v.s.fromServer, v.s.streamFromServer)
	if handled {
		err = v.s.toClient.Flush()
	}
	return v.s.fail(err)
}

// closedInput is the error text for a request whose server no longer reads.
const closedInput = "the server has closed its input and takes no more requests"

// answerUnsent answers the requests that could not be written. If there is a supervisor and the upstream may be
// about to end, requests of the current link wait. When the upstream has ended, Replace takes them for the next one,
// or they get an error that says how the upstream ended. Messages of the server still reach the client. The caller
// holds c.mu.
func (s *session) answerUnsent(l *revive.Link) {
	if !l.Unsent.Any() || s.supervisor != nil && s.link.Load() == l && l.MayEnd(func() { s.answerUnsentAside(l) }) {
		return
	}
	for line := range bytes.Lines(l.Unsent.Take()) {
		s.answerLine(line, func(id []byte) *wire.Message {
			s.log.Debug("a request could not be sent: the server no longer reads its input", "id", callid.Clip(id))
			return wire.ErrorReply(id, wire.CodeInternalError, closedInput)
		})
	}
}

// answerLine answers the requests in a line that does not reach the upstream. The caller
// holds c.mu.
func (s *session) answerLine(line []byte, reply func(id []byte) *wire.Message) {
	for m := range revive.Requests(wire.Parse(wire.Client, line)) {
		if a := s.asks.Take(string(m.ID())); a != nil {
			go a.Done(nil) // on another goroutine, as middleware.Call.Ask promises
		} else if c := s.calls.ClaimYoungest(m.ID()); c != nil {
			s.answerClaimed(c, reply(c.ID()))
		}
	}
}

// answerUnsentAside is answerUnsent for callers that do not hold c.mu and must not wait for it.
func (s *session) answerUnsentAside(l *revive.Link) { s.answerAside(func() { s.answerUnsent(l) }) }

// answerAside runs f in the client's direction, unless the session is over.
func (s *session) answerAside(f func()) {
	s.goBeside(func() {
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		f()
	})
}

// goBeside runs f in a goroutine that the end of the session waits for, unless the session is
// over.
func (s *session) goBeside(f func()) {
	if !s.work.Begin() {
		return
	}
	go func() {
		defer s.work.End()
		f()
	}()
}
