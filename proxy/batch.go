package proxy

import (
	"github.com/attache-mcp/attache/proxy/internal/array"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/inflight"
	"github.com/attache-mcp/attache/proxy/wire"
)

// answerBatch sends the answers of b if no member waits for the server.
func (s *session) answerBatch(b *inflight.Batch) {
	if answers, sent := s.calls.TakeAnswers(b, false); len(answers) > 0 {
		s.queue(array.JoinReplies(answers), func(err error) { s.settleSent(sent, err) })
	}
}

// fromClientBatch handles an array member by member, and sends on the members that are left. They stay in
// one line, because servers of revision 2025-03-26 answer an array with an array. attache's own answers to
// members join that array, or are sent alone if the server has nothing to answer: see inflight.Batch.
func (s *session) fromClientBatch(m *wire.Message) error {
	if array.Crowded(m) {
		return s.fromCrowdedBatch(m)
	}
	b, n := &inflight.Batch{Array: array.New(m.Frame())}, 0
	var member wire.Message // what becomes of each is copied
	for e := range m.Root().Elements() {
		n++
		b.Begin(e)
		member.Reset(wire.Client, e.Raw)
		member.Beside = m.Beside // what the transport knows of the line holds for its members
		s.c.scanner.Look(&member)
		if err := s.batchMember(b, &member); err != nil {
			return err
		}
	}
	err := s.sendBatch(b, n, m)
	b.Array = array.Array{} // the batch outlives the line: it is kept until its members are answered
	// Answers that were ready before have waited for this: only now is it known whether the server has
	// members to answer, so that they join its array.
	s.calls.BatchWritten(b)
	s.answerBatch(b)
	return err
}

// fromCrowdedBatch passes an array with too many members to be split, or refuses it whole.
func (s *session) fromCrowdedBatch(m *wire.Message) error {
	if !s.guarded(m) && !s.enforces("the array has too many members") {
		s.reportAside(m, whyCrowded, 0)
		return s.pass(m)
	}
	s.log.Warn("an array of messages was refused: it has too many members", "limit", array.Most)
	s.reportAside(m, whyCrowded, wire.CodeInvalidRequest)
	s.refuse(m, wire.CodeInvalidRequest, "refused: the array has more members than the proxy takes apart")
	return nil
}

// sendBatch sends the members that are left of the n members of the line m.
func (s *session) sendBatch(b *inflight.Batch, n int, m *wire.Message) error {
	switch {
	// JSON-RPC forbids an empty array. What a server makes of it is not known, so rules do not let it pass.
	case n == 0 && s.enforces(wire.BadEnvelope.String()):
		s.reportAside(m, wire.BadEnvelope.String(), wire.BadEnvelope.Code())
		s.refuse(m, wire.BadEnvelope.Code(), refusal(wire.BadEnvelope))
		return nil
	case b.Len() == n && !b.Edited():
		return s.pass(m) // the client's own bytes
	case b.Len() > 0:
		var rest wire.Message
		rest.Reset(wire.Client, b.Line(m.LineEnd()))
		return s.pass(&rest)
	}
	return nil
}

// batchMember handles a member of an array as if it had come alone.
func (s *session) batchMember(b *inflight.Batch, m *wire.Message) error {
	switch {
	case m.Kind().IsReply() && s.takesReply(m):
		return nil
	case m.Plain() && m.Kind() != wire.Batch:
		return s.run(m, b)
	case s.guarded(m) || s.enforces(array.Fault(m).String()):
		s.refuseMember(b, m)
		return nil
	}
	if s.ownID(m, b) {
		return nil
	}
	s.reportAside(m, array.Fault(m).String(), 0)
	b.Add(m)
	// The layers did not see it, but it may be a call, whose reply must find it in the table.
	if m.Kind() == wire.Request && callid.Clean(m.ID()) != nil {
		c := s.calls.Add(m.ID())
		c.Batch = b
		s.calls.SendInBatch(c)
	}
	return nil
}

// refuseMember answers a member that must not reach the upstream. The answer to a request joins the server's
// array; a reply of the client is answered to the upstream, which waits for it: see refuse.
func (s *session) refuseMember(b *inflight.Batch, m *wire.Message) {
	why := array.Fault(m)
	s.warnRefused(why.String())
	s.reportAside(m, why.String(), why.Code())
	if m.Kind().IsReply() {
		s.refuse(m, why.Code(), refusal(why))
		return
	}
	s.calls.AnswerLater(b, wire.ErrorReply(callid.Clean(m.ID()), why.Code(), refusal(why)), nil)
}

// fromServerBatch handles each member of an array as if it had come alone, and sends the rest on
// as one line. The caller holds v.mu.
func (s *session) fromServerBatch(m *wire.Message) error {
	a := array.New(m.Frame())
	n := 0
	// From here on, deliver collects the members.
	s.v.array = &a
	var member wire.Message // what becomes of each is copied
	for e := range m.Root().Elements() {
		n++
		a.Begin(e)
		member.Reset(wire.Server, e.Raw)
		member.LookEnvelope()
		s.route(&member) // deliver cannot fail here: it collects
	}
	s.v.array = nil
	switch {
	case a.Len() == n && !a.Edited():
		return s.deliver(m) // the server's own bytes
	case a.Len() == 0: // all were for attache, or are held back
		return nil
	}
	var rest wire.Message
	rest.Reset(wire.Server, a.Line(m.LineEnd()))
	return s.deliver(&rest)
}
