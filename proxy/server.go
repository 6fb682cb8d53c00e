package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/internal/array"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/wire"
)

// serverSide is the state of the server's direction. Frames are handled under
// mu, by the pump or by the goroutine that resumes a reply held back.
type serverSide struct {
	mu      sync.Mutex
	scanner wire.Scanner
	msg     *wire.Message // of a server that pushes: the one being handled; nil before the first
	ctx     relayed.Context
	chain   middleware.Handler
	plain   bool // there are no layers
	hooked  bool // the last reply had hooks
	none    relayedCall
	pace    flow.Pace
	array   *array.Array // not nil while the members of an array are handled

	delivered bool          // the current frame was sent on to the client
	sent      []func(error) // functions to call when the delivered frames were written
}

// setRules sets the rules for the next frames.
func (d *serverSide) setRules(s *session, r Rules) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := func(_ context.Context, m *wire.Message) error { return s.deliver(m) }
	d.chain = middleware.Chain(last, middleware.Reversed(r.Layers)...)
	d.plain = !slices.ContainsFunc(r.Layers, func(l middleware.Layer) bool { return l.Wrap != nil })
}

// fromServer handles the message on one whole line. last says that no other line is waiting.
func (s *session) fromServer(m *wire.Message, last bool) error {
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	if s.over.Load() {
		return errOver
	}
	s.watch(ServerOut, m.Line())
	if !s.isMessage(m) && !s.o.ForwardNoise {
		s.noise.Add(m.Line())
		return s.flushClient(last)
	}
	if len(m.LineEnd()) == 0 {
		// The last line lacks its newline, and a client would wait for it. Only a server with a pipe
		// writes such a line, so nothing in Beside is lost.
		m.Reset(wire.Server, append(bytes.Clone(m.Line()), '\n'))
		m.LookEnvelope()
	}
	// After an error, the lines before this one still reach the client.
	if err := s.route(m); err != nil {
		s.flushClient(true)
		return err
	}
	return s.flushClient(last)
}

// isMessage scans a line of the server and reports whether it is a message. The reply to a call in
// flight is a message even if its form is not that of JSON-RPC: the client is waiting for it and can
// decide what to do with it.
func (s *session) isMessage(m *wire.Message) bool {
	// A last line without its line end may be cut off, so it is checked to its end.
	if !s.v.lookAt(m) || len(m.LineEnd()) == 0 && !json.Valid(m.Frame()) {
		return false
	}
	return m.HasForm() || m.Kind().IsReply() && m.ID() != nil && callid.Clean(m.ID()) != nil && s.calls.Awaits(m.ID())
}

// lookAt scans as much of a frame of the server as is needed to know its kind, and reports whether it
// is a message. Messages of a server that pushes were scanned already. Hooks need a scan of the whole
// frame: if the last reply had hooks, this one probably has too, and then one scan is enough.
func (d *serverSide) lookAt(m *wire.Message) bool {
	if m.Kind() != wire.Unreadable {
		return true
	}
	// An array, and a frame that is not plain, are scanned again: LookEnvelope finds fewer frames ambiguous,
	// and the frames that it accepts pass.
	if d.hooked {
		d.scanner.Look(m)
		if m.Plain() && m.Kind() != wire.Batch {
			return true
		}
	}
	return m.LookEnvelope()
}

// lookWhole scans the whole of a frame, unless that was done.
func (d *serverSide) lookWhole(m *wire.Message) {
	if !m.Looked() {
		d.scanner.Look(m)
	}
}

// flushClient writes the gathered frames if it is time to. last says that no other frame is
// waiting. The caller holds v.mu.
func (s *session) flushClient(last bool) error {
	// A reply for which a layer has registered OnSent is written at once.
	if !s.v.pace.Due() && !last && len(s.v.sent) == 0 {
		return nil
	}
	defer s.v.pace.Sent()
	err := s.toClient.Flush()
	if len(s.v.sent) > 0 {
		s.settleSent(s.v.sent, err)
		// What the functions hold must not stay in memory until others take their places.
		clear(s.v.sent)
		s.v.sent = s.v.sent[:0]
	}
	return err
}

// settleSent calls the functions that layers registered for a reply that was written.
func (s *session) settleSent(sent []func(error), err error) {
	for _, f := range sent {
		_ = s.protect(s.ctx, func(context.Context, *wire.Message) error { f(err); return nil }, nil)
	}
}

// route handles a scanned frame of the server by its kind. The caller holds v.mu.
func (s *session) route(m *wire.Message) error {
	switch {
	case m.Kind() == wire.Batch && s.v.array == nil: // an array in an array passes as it is
		return s.fromServerBatch(m)
	case m.Ambiguity() != 0:
		return s.conflicting(m)
	case m.Kind().IsReply():
		return s.reply(m)
	case m.MethodIs("notifications/cancelled"):
		s.serverCancels(m)
	}
	switch {
	case s.supervisor != nil && s.keepsBack(m):
		return nil
	// Noise that is forwarded has no kind.
	case m.Kind() != wire.Request && m.Kind() != wire.Notification || s.v.plain:
		return s.deliver(m)
	}
	if s.v.lookWhole(m); !m.Plain() {
		return s.deliver(m) // as in the other direction: past the layers
	}
	return s.runServer(m)
}

// serverCancels takes a subscription that the server ends out of the calls in flight, because it gets no reply
// (revision 2026-07-28, basic/patterns/cancellation). Otherwise a server cancels requests of its own, whose ids
// may be those of calls. The caller holds v.mu.
func (s *session) serverCancels(m *wire.Message) {
	s.v.lookWhole(m)
	if id := m.Get("params", "requestId"); id.Exists() {
		s.calls.CancelListen(id.Raw)
	}
}

// runServer runs the layers on a request or notification of the server. If a layer panics on a
// request before it was sent on, the server gets an error.
func (s *session) runServer(m *wire.Message) error {
	s.v.none.MW.Reset(&s.v.none, false)
	s.v.ctx.Call = &s.v.none.MW // the last reply has left its own call there
	s.v.delivered = false
	err := s.protect(&s.v.ctx, s.v.chain, m)
	if !errors.Is(err, errPanic) {
		return err
	}
	if m.Kind() == wire.Request && !s.v.delivered {
		reply := wire.ErrorReply(m.ID(), wire.CodeInternalError, failureText(err))
		reply.From = wire.Client
		s.send(wire.Server, reply)
	}
	return nil
}

// reply delivers a reply of the server to the call that it answers, if there is one.
func (s *session) reply(m *wire.Message) error {
	id := callid.OfReply(m, func(id []byte) bool { return s.asks.Owns(id) || s.calls.Awaits(id) })
	if id == nil {
		return s.unnamed(m)
	}
	if s.asks.Swallow(wire.Server, m) {
		return nil
	}
	// c is nil also for a call that nobody has to do anything for.
	c, known, contested := s.calls.Reply(id)
	// See lookAt.
	s.v.hooked = c != nil
	switch {
	// A result that rules must read could pass under the name of another call with this id.
	// If the client has used the id of a cancelled call again, the result may be the reply to that call.
	case contested || known && (c == nil || !c.MW.HoldsReply()) && s.link.Load().Unread.Has(id):
		return s.ambiguousReply(c, id, whyContested)
	case c == nil && !known && s.answeredBefore(id):
		s.log.Warn("a second reply of the server's to one request was dropped, as rules must read the replies to it")
		return nil
	// No call has this id, but a reader may take it for the id of a call whose reply must be held.
	case c == nil && !known && s.isStray(id):
		return s.failHeld(id)
	case c == nil:
		return s.deliver(m)
	}
	// A hook may read and edit the result, so now the whole frame counts. If it is not plain, edits fail,
	// and the hooks decide.
	s.v.lookWhole(m)
	return s.answered(&s.v.ctx, c, m, len(c.MW.Hooks())-1)
}

// answeredBefore reports whether id is that of a call whose reply rules had to read and which has had
// its reply: a second reply would pass those rules unread.
func (s *session) answeredBefore(id []byte) bool {
	if !s.heldReplies.Take(id) {
		return false
	}
	s.heldReplies.Add(id) // there may be a third one
	return true
}

// answered runs c's hooks from index i down on its reply, and sends the reply on. The caller
// holds v.mu.
func (s *session) answered(ctx *relayed.Context, c *call, m *wire.Message, i int) error {
	if m = s.hooks(ctx, c, m, i, s.v.array == nil); m == nil {
		return nil
	}
	err := s.deliver(m)
	if e := s.replied(c); err == nil {
		err = e
	}
	return err
}

// replied takes a call whose reply was delivered out of the table, and delivers the answers that
// waited for that reply. The caller holds v.mu.
func (s *session) replied(c *call) error {
	b := c.Batch // End lets c be used again
	if c.MW.HoldsReply() {
		s.heldReplies.Add(c.ID())
	}
	s.v.sent = append(s.v.sent, c.MW.Sent()...)
	s.calls.End(c)
	answers, sent := s.calls.TakeAnswers(b, true)
	s.v.sent = append(s.v.sent, sent...)
	for _, a := range answers {
		if err := s.deliver(a); err != nil {
			return err
		}
	}
	return nil
}

// deliver writes a frame to the client. The caller holds v.mu.
func (s *session) deliver(m *wire.Message) error {
	s.v.delivered = true
	if s.v.array != nil {
		s.v.array.Add(m)
		return nil
	}
	s.watch(ClientOut, m.Line())
	return s.toClient.Write(m)
}

// conflicting handles a frame that has two readings. If one of them is the reply to a call in
// flight, the call is answered with an error: which reading the client would choose is not
// known.
func (s *session) conflicting(m *wire.Message) error {
	if !m.Result().Exists() && !m.ErrorObject().Exists() {
		return s.deliver(m) // nobody takes it for a reply
	}
	// A reader may take any of the ids, and m.ID is nil if there are two.
	hit := false
	for member := range m.Root().Members() {
		if !member.Key.Equals("id") {
			continue
		}
		id := member.Value.Raw
		if callid.Clean(id) == nil {
			continue
		}
		if s.asks.Owns(id) {
			hit = true // attache's own business, settled or given up in time
			continue
		}
		c, known, _ := s.calls.Reply(id)
		if !known {
			continue
		}
		hit = true
		if err := s.ambiguousReply(c, id, m.Ambiguity().String()); err != nil {
			return err
		}
	}
	if hit {
		return nil
	}
	return s.unnamed(m)
}

// unnamed handles a reply whose call is not known. A reader that takes its id for another
// spelling of an id in flight could take its result for the reply to a call whose reply must be
// held: then it is dropped.
func (s *session) unnamed(m *wire.Message) error {
	if !m.Result().Exists() || !s.mayHold() {
		return s.deliver(m)
	}
	for member := range m.Root().Members() {
		if !member.Key.Equals("id") {
			continue
		}
		if err := s.failHeld(member.Value.Raw); err != nil {
			return err
		}
	}
	return nil
}

// failHeld answers with an error the call whose reply must be held and whose id is another
// spelling of the raw one, if there is one: the server will not answer it again.
func (s *session) failHeld(id []byte) error {
	if c := s.calls.ClaimSpelled(id); c != nil {
		return s.ambiguousReply(c, c.ID(), "its id is another spelling of the request's")
	}
	return nil
}

// whyContested is the error text for a reply that may belong to another call.
const whyContested = "more than one request was made under this id before it was answered"

// ambiguousReply answers a call in place of the server. c is nil if the call has
// no hooks.
func (s *session) ambiguousReply(c *call, id []byte, why string) error {
	ctx := context.Background()
	if c != nil {
		ctx = (*middleware.Call)(&c.MW).LogContext()
	}
	s.log.WarnContext(ctx, "the server sent a reply that parsers read differently; the call was answered with an error", "id", callid.Clip(id), "why", why)
	reply := wire.ErrorReply(id, wire.CodeInternalError, "the server's reply was ambiguous: "+why)
	if c == nil {
		return s.deliver(reply)
	}
	return s.answered(&s.v.ctx, c, reply, len(c.MW.Hooks())-1)
}
