package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// An exchange is one message of the client's, or an array of them, and what the server
// answers to it.
type exchange struct {
	s      *Server
	ctx    context.Context
	cancel context.CancelCauseFunc

	method  string // of the message, empty for a reply or an array
	name    string // of the tool that it calls
	reply   bool   // it answers a request of the server's
	modern  bool   // it names its revision, as all requests of 2026-07-28 do
	body    body
	headers http.Header                    // that mirror the message
	version string                         // that it names
	meta    []byte                         // its raw _meta, if it names a revision
	ticket  ticket                         // the session it was sent in
	tried   struct{ session, mirror bool } // it was sent again for this reason
	wait    waiting                        // for a server that cannot be reached

	whole   chan struct{} // not nil for a long message; closed when ids is known
	settled chan struct{} // nil, or closed when nothing is to be answered any more, and the server has begun to answer
	settle  func()        // closes settled, once; nil if that is
	behind  *exchange     // the request that it cancels, if that may not have been sent
	left    chan struct{} // not nil if another waits behind it; closed when it has left the table
	linger  *time.Timer   // ends the stream that the server does not end
	lost    atomic.Bool   // the client has cancelled it: an answer may be missing
	ids     [][]byte      // raw ids of requests that are not answered
	unread  int           // messages that may be requests whose ids cannot be read, none of them answered
	first   []byte        // the first of them; nil if there was none
	more    [][]byte      // the others, of an array
	beside  any           // of the replies: see httpstatus
	resumed bool          // its stream was taken up again, and may repeat what other streams had
	counted bool          // the end waits for it
}

// sendLine sends a whole line of the relay's.
func (s *Server) sendLine(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	line = bytes.Clone(line)
	var m wire.Message
	m.Reset(wire.Client, line)
	m.LookEnvelope()
	s.sendMessage(&m, line, nil)
}

// sendMessage sends a message of the relay's, whose line it keeps. It releases the lease when the
// line has left.
func (s *Server) sendMessage(m *wire.Message, line []byte, lease wire.Lease) {
	if s.isLost() {
		s.giveBack(line)
		return
	}
	x := s.newExchange()
	x.body = body{line: line[:len(m.Frame())], lease: lease, ledger: &s.ledger}
	s.ledger.enter(len(x.body.line))
	x.describe(m)
	switch {
	case m.MethodIs("notifications/cancelled"):
		if s.cancelExchange(x, m.Get("params", "requestId")) {
			x.body.drop()
			x.cancel(nil)
			return
		}
	case m.MethodIs("initialize"):
		s.beginSession()
	}
	if x.method == "initialize" || !x.mayBeAnswered() && !x.reply && x.behind == nil {
		x.holdsUp()
	}
	x.start()
	x.keepOrder()
}

func (s *Server) newExchange() *exchange {
	x := &exchange{s: s}
	x.ctx, x.cancel = context.WithCancelCause(s.ctx)
	return x
}

// holdsUp has the exchange say when the messages behind it may follow.
func (x *exchange) holdsUp() {
	settled := make(chan struct{})
	x.settled, x.settle = settled, sync.OnceFunc(func() { close(settled) })
}

// hasSettled notes that nothing is to be answered any more.
func (x *exchange) hasSettled() {
	if x.settle != nil {
		x.settle()
	}
}

// describe notes what a message is.
func (x *exchange) describe(m *wire.Message) {
	if m.Kind() == wire.Batch {
		for e := range m.Root().Elements() {
			var member wire.Message
			member.Reset(wire.Client, e.Raw)
			member.LookEnvelope()
			x.await(&member)
		}
		return
	}
	x.await(m)
	x.method, x.reply = m.Method(), m.Kind().IsReply()
	x.mirrorMessage(m)
}

// await notes a request that is to be answered. attache itself cannot answer one whose id it
// cannot read, but the server may.
func (x *exchange) await(m *wire.Message) {
	if m.Kind() == wire.Notification || m.Kind().IsReply() {
		return
	}
	if id := callid.Clean(m.ID()); id != nil && m.Kind() == wire.Request {
		x.ids = append(x.ids, bytes.Clone(id))
		return
	}
	x.unread++
}

// mayBeAnswered reports whether the server may have an answer to give.
func (x *exchange) mayBeAnswered() bool { return len(x.ids)+x.unread > 0 }

// start begins the exchange beside others.
func (x *exchange) start() {
	if len(x.ids) > 0 {
		x.first, x.more = x.ids[0], slices.Clone(x.ids[1:])
		x.s.enter(x)
	}
	go x.run()
}

// settleTime is how long a notification holds up the messages behind it.
const settleTime = 10 * time.Second

// keepOrder holds up the next message until it cannot overtake this one where that
// matters: what follows initialize needs its result, and a server that has not seen
// notifications/initialized refuses requests.
func (x *exchange) keepOrder() {
	switch {
	case x.settled == nil:
	case x.method == "initialize":
		<-x.settled
	default:
		t := time.NewTimer(settleTime)
		defer t.Stop()
		select {
		case <-x.settled:
		case <-t.C:
		}
	}
}

// run does the exchange.
func (x *exchange) run() {
	if x.first != nil {
		x.s.slots <- struct{}{}
		defer func() { <-x.s.slots }()
	}
	defer x.end()
	if x.behind != nil && !x.behind.awaitSent() {
		x.body.drop()
		return
	}
	resp, refusal, err := x.do()
	unsent := err != nil && x.s.isLost() && !x.body.begun.Load()
	if (unsent || errors.Is(err, errLost)) && x.giveBack() {
		return
	}
	x.body.drop()
	if x.whole != nil {
		if err != nil {
			x.body.long.Close() // it may not have been opened
		}
		<-x.whole
	}
	if err == nil && refusal == nil && x.method == "notifications/initialized" && !x.modern {
		x.s.listen.start(x.s, x.ticket)
	}
	if len(x.ids) == 0 {
		x.hasSettled()
	}
	switch {
	case err != nil:
		x.fail(err.Error())
	case refusal != nil:
		x.refused(refusal)
	default:
		x.read(resp)
	}
}

// end takes the exchange out of the table.
func (x *exchange) end() {
	x.hasSettled()
	if x.linger != nil {
		x.linger.Stop()
	}
	if x.first != nil {
		x.s.leave(x)
		if x.counted {
			x.s.calls.Done()
		}
	}
	x.cancel(nil)
}

// do sends the message until the server takes it or refuses it for good.
func (x *exchange) do() (*http.Response, *refusal, error) {
	for {
		if x.s.isLost() {
			return nil, nil, errLost
		}
		x.ticket = x.s.session.ticket()
		if x.modern || x.method == "initialize" {
			x.ticket = ticket{generation: x.ticket.generation}
		}
		resp, err := x.post()
		if errors.As(err, new(unreachedError)) {
			if x.awaitServer("") {
				continue
			}
			x.s.isAway(err)
		}
		if err != nil {
			return nil, nil, err
		}
		x.s.isThere()
		if !x.modern {
			x.s.session.adopt(resp.Header, x.ticket.generation)
		}
		if resp.StatusCode < 300 {
			x.s.reached.Store(true)
			return resp, nil, nil
		}
		refusal := readRefusal(resp)
		if !x.recover(refusal) {
			return nil, refusal, nil
		}
	}
}

// post sends the message once, and waits for the beginning of the answer.
func (x *exchange) post() (*http.Response, error) {
	if limit := x.s.o.FirstByte; limit > 0 && x.first != nil {
		t := time.AfterFunc(limit, func() {
			x.cancel(fmt.Errorf("the server did not begin to answer within %v (server.timeouts.first_byte); it may have executed the request", limit))
		})
		defer t.Stop()
	}
	resp, err := x.s.send(x.ctx, http.MethodPost, x.header(), &x.body)
	if err != nil {
		if cause := context.Cause(x.ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	return resp, nil
}

// recover puts right why the server has refused the message without executing it, and
// reports whether it is to be sent again.
func (x *exchange) recover(r *refusal) (again bool) {
	switch {
	case r.lostSession(x.ticket) && x.ticket.generation == x.s.session.ticket().generation:
		x.s.lose(r)
		return true
	case r.lostSession(x.ticket) && !x.tried.session && !x.reply: // of a session that the client has left
		x.tried.session = true
		return true
	case r.status == http.StatusServiceUnavailable && r.after != "" && (r.unexecuted || x.isRepeatable() && !x.isAnswer(r)):
		return x.awaitServer(r.after)
	case r.code == wire.CodeHeaderMismatch && x.modern && x.method == "tools/call" && !x.tried.mirror:
		x.tried.mirror = true
		return x.s.mirror.learnAgain(x)
	}
	return false
}

// header returns the headers of the exchange's own.
func (x *exchange) header() http.Header {
	h := make(http.Header, 8)
	h["Accept"], h["Content-Type"] = acceptsBoth, isJSON
	maps.Copy(h, x.headers)
	if !x.modern {
		x.ticket.headers(h)
	}
	return h
}

// Values of headers, which nobody changes.
var (
	acceptsBoth = []string{"application/json, text/event-stream"}
	isJSON      = []string{"application/json"}
)

// awaits returns which of the requests without an answer has the id, -1 for none.
func (x *exchange) awaits(id []byte) int {
	k, long := callid.Of(id)
	return slices.IndexFunc(x.ids, func(other []byte) bool {
		otherKey, otherLong := callid.Of(other)
		return otherKey == k && otherLong == long
	})
}

// answered notes the answer to a request.
func (x *exchange) answered(i int) {
	if x.ids = slices.Delete(x.ids, i, i+1); len(x.ids) == 0 {
		x.hasSettled()
	}
}

// lingerTime is how long a stream is read on that has nothing to answer.
const lingerTime = 30 * time.Second

// endLater ends the stream after a while. The server should, but need not.
func (x *exchange) endLater() {
	x.linger = time.AfterFunc(lingerTime, func() { x.cancel(nil) })
}

// fail answers the requests that have no answer with an error of our own.
func (x *exchange) fail(text string) {
	if x.lost.Load() || x.s.ctx.Err() != nil {
		return // nobody waits, or the relay answers
	}
	if x.method == "initialize" && len(x.ids) > 0 {
		x.s.noteRefusal(text)
	}
	switch {
	case x.unread > 0:
		x.s.log.Warn("the remote server did not answer a message whose id cannot be read", "method", x.method, "why", text)
	case x.first == nil && x.whole == nil:
		x.s.log.Warn("the remote server did not take a message", "method", x.method, "why", text)
	}
	ids := x.ids
	x.ids = nil
	x.hasSettled()
	for _, id := range ids {
		x.s.out.Write(wire.ErrorReply(id, wire.CodeInternalError, text).Line(), x.beside)
	}
	x.s.out.Flush()
}

// beginSession notes that the client opens a new session, and ends the one before.
func (s *Server) beginSession() {
	before := s.session.begin()
	s.listen.stop()
	if before.id != "" {
		s.calls.Go(func() { s.endSession(before, settleTime) }) // the end waits for it
	}
}

// endSession tells the server that a session is over. Servers may refuse that.
func (s *Server) endSession(t ticket, limit time.Duration) {
	if t.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	h := http.Header{}
	t.headers(h)
	resp, err := s.send(ctx, http.MethodDelete, h, nil)
	if err != nil {
		s.log.Debug("the remote session could not be ended", "why", err)
		return
	}
	drain(resp)
}
