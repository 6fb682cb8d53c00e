package proxy

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/internal/array"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/internal/inflight"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
	"github.com/attache-mcp/attache/proxy/wire"
)

// clientSide is the state of the client's direction. Frames are handled under
// mu, by the pump or by the goroutine that resumes a frame held back.
type clientSide struct {
	mu      sync.Mutex
	scanner wire.Scanner
	msg     wire.Message // of a client that pushes: the one being handled
	ctx     relayed.Context
	// The next three are those of the current rules; see setRules.
	chain  middleware.Handler
	needs  middleware.Layer // the needs of all layers together
	dryRun bool             // see Options
	none   relayedCall      // stands in for the call of a frame that is not a call, and is in no table
	over   bool             // no further frame is handled
	pace   flow.Pace

	held    bool            // a frame is held back, and those behind it wait
	crowded bool            // it is held back because too many calls are in flight
	waiting []*wire.Message // the frames behind it
	bytes   int             // size of waiting
	release chan struct{}   // closed when held ends; nil while the pump does not wait for that
}

// setRules sets the rules for the next frames of both directions, first the client's, then the
// server's.
func (s *session) setRules(r Rules) {
	s.c.setRules(s, r)
	s.v.setRules(s, r)
}

// setRules sets the rules for the next frames.
func (d *clientSide) setRules(s *session, r Rules) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.chain, d.needs, d.dryRun = middleware.Chain(s.forward, r.Layers...), middleware.Needs(r.Layers...), r.DryRun
	d.scanner.ArgumentNames = d.needs.ArgumentNames
	// A frame that was plain need not be plain under these rules, and resumeWaiting does not scan again.
	for _, m := range d.waiting {
		d.scanner.LookOnce(m)
	}
}

// close stops handling new frames. Frames that wait are still handled.
func (d *clientSide) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
}

// widenToServer enlarges the pipe to the server for a long line.
func (s *session) widenToServer() {
	flow.Widen(s.o.ClientIn)
	if l := s.link.Load(); l != nil {
		l.Widen()
	}
}

// awaitReader blocks while too many of attache's answers wait for a client that does not
// read.
func (s *session) awaitReader() {
	for room := s.backlog.Full(); room != nil; room = s.backlog.Full() {
		s.c.mu.Lock()
		s.flushServer()
		s.c.mu.Unlock()
		select {
		case <-room:
		case <-s.ending:
			return
		}
	}
}

// finalFlushTime is how long the last messages of the client may take to get into a server that
// does not read.
const finalFlushTime = 500 * time.Millisecond

// clientClosed closes the upstream's input immediately: servers exit when they see that, and clients
// kill them after about two seconds.
func (s *session) clientClosed() {
	s.asks.End(wire.Client) // frames that still wait must not wait for its answers
	s.c.mu.Lock()
	s.awaitTurn() // the frames that wait come before the end
	s.c.mu.Unlock()
	if l := s.lastLink(); l != nil {
		tasks.RunUntil(time.Now().Add(finalFlushTime), func() {
			s.c.mu.Lock()
			defer s.c.mu.Unlock()
			s.flushServer()
		})
		l.CloseInput() // also unblocks the flush
	}
}

// fromClient handles the message on one whole line. last says that no other line is waiting.
func (s *session) fromClient(m *wire.Message, last bool) error {
	d := &s.c
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.take(m); err != nil {
		return err
	}
	if d.pace.Due() || last {
		s.flushServer()
		d.pace.Sent()
	}
	return nil
}

// take handles one message, which is written with the next flush. The caller holds c.mu.
func (s *session) take(m *wire.Message) error {
	d := &s.c
	if d.over || s.over.Load() {
		return errOver
	}
	s.watch(ClientIn, m.Line()) // in the order of arrival, also if it waits
	d.scanner.LookOnce(m)
	if !d.held {
		s.holdForRoom(m)
	}
	// A reply overtakes the frame that is held back, because its layer, or a call in flight, may
	// wait for this very reply. A cancellation of a call in flight makes room.
	if !d.held || array.RepliesOnly(m) || d.crowded && s.cancelsInFlight(m) {
		return s.handle(m)
	}
	d.waiting = append(d.waiting, m.Clone())
	// The pump waits, so that memory stays bounded and the client slows down.
	if d.bytes += len(m.Line()); d.bytes >= s.o.Hold || d.crowded && len(d.waiting) >= mostWaiting {
		s.awaitTurn()
	}
	return nil
}

// mostWaiting is how many frames may wait for room. A short frame takes half a KiB, much more than
// its line.
const mostWaiting = 1000

// holdForRoom holds m back if it is a request and too many calls are in flight. It first writes
// what came before m. Only requests wait for room: a reply or a cancellation may be what makes
// room. The caller holds c.mu.
func (s *session) holdForRoom(m *wire.Message) {
	d := &s.c
	if m.Kind() != wire.Request && m.Kind() != wire.Batch || s.calls.Full() == nil || array.RepliesOnly(m) ||
		s.isEnding() || !s.work.Begin() {
		return
	}
	s.flushServer() // or the server would not get the calls whose replies make room
	d.held, d.crowded = true, true
	go func() {
		defer s.work.End()
		for room := s.calls.Full(); room != nil && !s.isEnding(); room = s.calls.Full() {
			select {
			case <-room:
			case <-s.ending: // the frames fail with the rest
			}
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.held, d.crowded = false, false
		s.resumeWaiting(nil)
	}()
}

// cancelsInFlight reports whether m cancels a call in flight. A call that waits for room is not in flight.
func (s *session) cancelsInFlight(m *wire.Message) bool {
	if m.Kind() != wire.Notification || !m.Plain() || !m.MethodIs("notifications/cancelled") {
		return false
	}
	id := m.Get("params", "requestId")
	return id.Exists() && s.calls.Has(id.Raw)
}

// awaitTurn returns when no frame is held back. The caller holds c.mu, which is released
// meanwhile.
func (s *session) awaitTurn() {
	d := &s.c
	for d.held {
		s.flushServer()
		if d.release == nil {
			d.release = make(chan struct{})
		}
		release := d.release
		d.mu.Unlock()
		<-release // a hold ends by itself, at the latest with the session
		d.mu.Lock()
	}
}

// handle runs the chain on a scanned frame. The caller holds c.mu.
func (s *session) handle(m *wire.Message) error {
	switch {
	case m.Kind() == wire.Batch:
		return s.fromClientBatch(m)
	case len(m.Frame()) == 0: // an empty line has nothing to judge
		return s.pass(m)
	case m.Kind().IsReply() && s.takesReply(m):
		return nil
	case !m.Plain():
		return s.handleAmbiguous(m)
	}
	return s.run(m, nil)
}

// run runs the chain on a plain frame, which came in the batch b or, if b is nil, alone.
func (s *session) run(m *wire.Message, b *inflight.Batch) error {
	c := &s.c.none.call
	switch m.Kind() {
	case wire.Request:
		if s.ownID(m, b) {
			return nil
		}
		c = s.calls.Add(m.ID())
		c.Listens.Store(m.MethodIs("subscriptions/listen"))
	case wire.Notification:
		if !m.MethodIs("notifications/cancelled") {
			break
		}
		if b != nil { // it may cancel a request of this line, which counts as sent before the line starts the upstream
			_ = s.ready() // sendBatch gets the error again
		}
		if !s.cancelled(m) {
			return nil
		}
	}
	if c == &s.c.none.call {
		s.c.none.MW.Reset(&s.c.none, false) // layers may have attached values for the last frame
	}
	c.Batch = b // a notification in an array leaves with it, too
	return s.runHandler(&c.MW, s.c.chain, m)
}

// cancelled forgets the call that the client cancels. It reports whether the upstream must be
// told: it has never seen a call that attache answered itself.
func (s *session) cancelled(m *wire.Message) bool {
	id := m.Get("params", "requestId")
	if !id.Exists() {
		return true
	}
	// A cancellation names a request that was sent (specification,
	// basic/patterns/cancellation).
	c := s.calls.Cancel(id.Raw, func(c *call) {
		// A late reply must not pass unread only because no call waits for it any more.
		if l := s.link.Load(); l != nil && c.Sent.Load() && c.MW.HoldsReply() {
			l.Unread.Add(id.Raw)
		}
	})
	if c == nil {
		return !s.unseen.Take(id.Raw)
	}
	deferred := c.Stop()
	s.answerBatch(c.Batch)
	// A deferred call is answered by attache, so the upstream does not know it.
	return c.Sent.Load() || !deferred && !s.unseen.Take(id.Raw)
}

// handleAmbiguous handles a frame that parsers may read differently.
func (s *session) handleAmbiguous(m *wire.Message) error {
	if s.guarded(m) || s.enforces(m.Ambiguity().String()) {
		s.warnRefused(m.Why())
		s.reportAside(m, m.Ambiguity().String(), m.Ambiguity().Code())
		s.refuse(m, m.Ambiguity().Code(), refusal(m.Ambiguity()))
		return nil
	}
	if s.ownID(m, nil) {
		return nil
	}
	s.reportAside(m, m.Ambiguity().String(), 0)
	s.log.Debug("an ambiguous message passes as it is", "why", m.Ambiguity().String())
	if m.Kind() == wire.Request && callid.Clean(m.ID()) != nil {
		c := s.calls.Add(m.ID())
		return s.runHandler(&c.MW, s.forward, m)
	}
	return s.pass(m)
}

// enforces reports whether a frame that rules cannot be applied to is refused. In a dry run it
// only logs that the frame would be refused, and why.
func (s *session) enforces(why string) bool {
	if s.c.needs.Enforces && s.c.dryRun {
		s.log.Info("dry run: would refuse a message that rules cannot be applied to", "why", why)
		return false
	}
	return s.c.needs.Enforces
}

// guarded reports whether m may contain something that a layer has to remove.
func (s *session) guarded(m *wire.Message) bool {
	return slices.ContainsFunc(s.c.needs.Guarded, func(g string) bool { return wire.Mentions(m.Frame(), g) })
}

func (s *session) warnRefused(why string) {
	s.log.Warn("a message was refused because parsers may read it differently; send plain JSON-RPC 2.0", "why", why)
}

func refusal(why wire.Ambiguity) string { return "refused: " + why.String() }

// forward is the last handler of the chain. It sends the message to the upstream.
func (s *session) forward(ctx context.Context, m *wire.Message) error {
	c := &relayed.From(ctx).Relay().(*relayedCall).call
	// Calls of tools are the most frequent frames, so Sent gets them only while it needs them.
	if v := s.supervisor; v != nil && (v.Attentive() || !m.MethodIs("tools/call")) {
		keeps := v.Repeatable(m) && s.calls.Reserve(c, len(m.Line()))
		v.Sent(&c.MW, m, keeps)
		if keeps && c.Batch == nil { // a member of a batch is never repeated
			c.Frame = bytes.Clone(m.Line())
		}
	}
	switch {
	case c.Batch == nil:
	case c == &s.c.none.call:
		c.Batch.Add(m)
		return nil
	default:
		s.calls.SendInBatch(c) // sets Sent, too
		c.Batch.Add(m)
		return nil
	}
	if err := s.ready(); err != nil {
		return err
	}
	// Before the write: the reply may come before Write returns.
	c.Sent.Store(true)
	s.link.Load().Write(m)
	return nil
}

// pass writes a frame that is no call.
func (s *session) pass(m *wire.Message) error {
	if err := s.ready(); err != nil {
		return err
	}
	s.link.Load().Write(m)
	return nil
}

// ready starts the upstream if this is the first frame for it.
func (s *session) ready() error {
	if s.link.Load() != nil {
		return nil
	}
	return s.start()
}

// flushServer writes the frames that were gathered. The caller holds c.mu.
func (s *session) flushServer() {
	if l := s.link.Load(); l != nil {
		l.In.Flush()
		s.answerUnsent(l)
	}
}
