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

// An exchange is one message of the client, or an array of messages, and the server's answer. Its fields
// belong to the goroutine that makes it, and from start on to that of run. Others then only cancel it
// (cancelExchange) or wait for it (keepOrder, awaitSent).
type exchange struct {
	s      *Server
	ctx    context.Context
	cancel context.CancelCauseFunc

	method  string // "" for a reply or an array, and if it is too long
	reply   bool   // a reply to a request of the server
	modern  bool   // it names its revision, as all requests of 2026-07-28 do
	body    body
	headers http.Header                    // those that mirror the message
	trace   http.Header                    // those of its trace context
	version string                         // the revision that it names
	ticket  ticket                         // the session that it was sent in; without id and version for initialize and in 2026-07-28
	tried   struct{ session, mirror bool } // why it was sent again
	retry   retry                          // for a server that cannot be reached

	whole      chan struct{} // not nil for a long message; closed when ids is known
	settled    chan struct{} // closed by markSettled; nil unless delayNext was called
	settle     func()        // closes settled, once; nil if settled is
	cancels    *exchange     // the request that it cancels, if that may not have been sent yet
	ended      chan struct{} // closed at the end of the exchange; nil unless its cancellation waits for that
	linger     *time.Timer   // closes the stream if the server does not
	cancelled  atomic.Bool   // by the client, so there may be no answer
	ids        [][]byte      // raw ids of the requests without an answer
	unreadable int           // requests whose ids cannot be read; 0 after the first reply, which may be theirs
	first      []byte        // the first id that ids had, for leave; nil for none
	more       [][]byte      // the others
	beside     any           // wire.Message.Beside of the replies: see httpstatus
	resumed    bool          // its stream was resumed, so messages may repeat
	counted    bool          // in Server.calls
}

func (s *Server) sendLine(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	// The reader uses its buffer for the next line, and the exchange may have to send this one again.
	line = bytes.Clone(line)
	s.sendMessage(wire.Parse(wire.Client, line), line, nil)
}

// sendMessage sends a message. It keeps line, and releases the lease when the line was sent.
func (s *Server) sendMessage(m *wire.Message, line []byte, lease wire.Lease) {
	// Nothing of it was sent, so whatever it is can go to the next session. An exchange that has begun returns
	// requests alone: see exchange.giveBack.
	if s.isLost() {
		s.giveBack(line)
		return
	}
	x := s.newExchange()
	x.body = body{line: line[:len(m.Frame())], lease: lease, ledger: &s.ledger}
	// This may block, and with it the relay. drop, which each exchange calls, takes the message out.
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
	// A reply delays nothing, and a cancellation that waits for its own request must not delay others.
	if x.method == "initialize" || !x.mayBeAnswered() && !x.reply && x.cancels == nil {
		x.delayNext()
	}
	x.start()
	x.keepOrder()
}

func (s *Server) newExchange() *exchange {
	x := &exchange{s: s}
	x.ctx, x.cancel = context.WithCancelCause(s.ctx)
	return x
}

// delayNext makes keepOrder delay the next message until markSettled.
func (x *exchange) delayNext() {
	settled := make(chan struct{})
	x.settled, x.settle = settled, sync.OnceFunc(func() { close(settled) })
}

// markSettled records that every request of the exchange has an answer, and lets the next message go.
func (x *exchange) markSettled() {
	if x.settle != nil {
		x.settle()
	}
}

// describe records what m is and which requests it has.
func (x *exchange) describe(m *wire.Message) {
	if m.Kind() == wire.Batch {
		for member := range m.Messages() {
			x.await(member)
		}
		return
	}
	x.await(m)
	if x.reply = m.Kind().IsReply(); len(m.Method()) <= maxMirroredText {
		x.method = m.Method()
	}
	x.mirrorMessage(m)
}

// await adds a request to those without an answer. attache cannot answer a request whose id it cannot
// read, but the server may.
func (x *exchange) await(m *wire.Message) {
	if m.Kind() == wire.Notification || m.Kind().IsReply() {
		return
	}
	if id := callid.Clean(m.ID()); id != nil && m.Kind() == wire.Request {
		x.ids = append(x.ids, bytes.Clone(id))
		return
	}
	x.unreadable++
}

// mayBeAnswered reports whether a request has no answer yet.
func (x *exchange) mayBeAnswered() bool { return len(x.ids)+x.unreadable > 0 }

// start runs the exchange in a goroutine.
func (x *exchange) start() {
	if len(x.ids) > 0 {
		x.first, x.more = x.ids[0], slices.Clone(x.ids[1:])
		x.s.enter(x)
	}
	go x.run()
}

// settleTime is how long a notification may delay the next message.
const settleTime = 10 * time.Second

// keepOrder blocks while the next message must not overtake this one. Messages after initialize need
// its result, and a server that has not seen notifications/initialized refuses requests.
func (x *exchange) keepOrder() {
	switch {
	case x.settled == nil:
	case x.method == "initialize":
		<-x.settled
	default:
		select {
		case <-x.settled:
		case <-time.After(settleTime):
		}
	}
}

// run sends the message and passes on the answer.
func (x *exchange) run() {
	if x.first != nil { // a reply needs no slot: requests in flight may wait for it
		x.s.slots <- struct{}{}
		defer func() { <-x.s.slots }()
	}
	defer x.end()
	// A server that gets the cancellation first may ignore it, and then execute the request.
	if x.cancels != nil && !x.cancels.awaitSent() {
		x.body.drop()
		return
	}
	resp, refusal, err := x.do()
	// When the session was lost, the request may still have waited for its credential or for the server.
	unsent := err != nil && x.s.isLost() && !x.body.begun.Load()
	if (unsent || errors.Is(err, errLost)) && x.giveBack() {
		return
	}
	x.body.drop() // from here on it is not sent again
	// The answer to a long message may come before its end, where its id may be, and fail and read need ids.
	if x.whole != nil {
		if err != nil {
			x.body.long.Close() // the transport has not, if it was not opened
		}
		<-x.whole
	}
	if err == nil && refusal == nil && x.method == "notifications/initialized" && !x.modern {
		x.s.listen(x.ticket) // before markSettled: the next message waits for the stream
	}
	// The server has the notification. The next message need not wait until the answer, which may be a stream, ends.
	if len(x.ids) == 0 {
		x.markSettled()
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

// end removes the exchange from the table and releases what it holds.
func (x *exchange) end() {
	x.markSettled()
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

// do sends the message until the server accepts it, or refuses it and it must not be sent again.
func (x *exchange) do() (*http.Response, *refusal, error) {
	for {
		if x.s.isLost() {
			return nil, nil, errLost
		}
		// Each attempt takes the ticket of its time: the client may have opened another session meanwhile.
		x.ticket = x.s.session.ticket()
		// These have no session id and no negotiated version, so they cannot lose the session either.
		if x.modern || x.method == "initialize" {
			x.ticket = ticket{generation: x.ticket.generation}
		}
		resp, err := x.post()
		if errors.As(err, new(unreachedError)) {
			if x.awaitServer("") {
				continue
			}
			x.s.logUnreached(err)
		}
		if err != nil {
			return nil, nil, err
		}
		x.s.logReached() // any answer shows that the server is there, also a refusal
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

// post sends the message once, and waits for the header of the answer.
func (x *exchange) post() (*http.Response, error) {
	// Nobody waits for the answer to a notification or to a reply.
	if limit := x.s.o.FirstByte; limit > 0 && x.first != nil {
		x.body.timer = func() *time.Timer {
			return time.AfterFunc(limit, func() {
				x.cancel(fmt.Errorf("the server did not begin to answer within %v (server.timeouts.first_byte); it may have executed the request", limit))
			})
		}
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

// recover handles a refusal of a message that the server has not executed. It reports whether the
// message is to be sent again.
func (x *exchange) recover(r *refusal) (again bool) {
	switch {
	case r.lostSession(x.ticket) && x.ticket.generation == x.s.session.ticket().generation:
		x.s.lose(r)
		return true // do then returns errLost, with which run gives the message back
	// A reply belongs to a request of the session before: the new one could take it for the answer to its own.
	case r.lostSession(x.ticket) && !x.tried.session && !x.reply: // the client has opened another session
		x.tried.session = true
		return true
	case r.status == http.StatusServiceUnavailable && r.after != "" && (r.unexecuted || x.isRepeatable() && !x.isAnswer(r)):
		return x.awaitServer(r.after)
	case r.code == wire.CodeHeaderMismatch && x.modern && x.method == "tools/call" && !x.tried.mirror:
		// The server compares the headers before it executes a call, so it has not executed this one.
		x.tried.mirror = true
		return x.s.mirror.learnAgain(x)
	}
	return false
}

func (x *exchange) header() http.Header {
	h := make(http.Header, 8)
	h["Accept"], h["Content-Type"] = acceptsBoth, isJSON
	maps.Copy(h, x.headers)
	maps.Copy(h, x.trace)
	if !x.modern {
		x.ticket.headers(h)
	}
	return h
}

// Header values that all requests share. Nobody changes them.
var (
	acceptsBoth = []string{"application/json, text/event-stream"}
	isJSON      = []string{"application/json"}
)

// awaits returns the index in ids of the request with that id, -1 for none.
func (x *exchange) awaits(id []byte) int {
	k, long := callid.Of(id)
	return slices.IndexFunc(x.ids, func(other []byte) bool {
		otherKey, otherLong := callid.Of(other)
		return otherKey == k && otherLong == long
	})
}

// answered removes a request that was answered from ids.
func (x *exchange) answered(i int) {
	if x.ids = slices.Delete(x.ids, i, i+1); len(x.ids) == 0 {
		x.markSettled()
	}
}

// lingerTime is how long a stream is read on after the last answer.
const lingerTime = 30 * time.Second

// endLater closes the stream after lingerTime. The server should close it before, but need not.
func (x *exchange) endLater() {
	x.linger = time.AfterFunc(lingerTime, func() { x.cancel(nil) })
}

// fail answers the requests that have no answer with an error.
func (x *exchange) fail(text string) {
	// When the session has ended, the relay answers all calls in flight with the reason.
	if x.cancelled.Load() || x.s.ctx.Err() != nil {
		return // nobody waits, or the relay will answer
	}
	if x.method == "initialize" && len(x.ids) > 0 {
		x.s.noteRefusal(text)
	}
	switch {
	case x.unreadable > 0:
		x.s.log.Warn("the remote server did not answer a message whose id cannot be read", "method", x.method, "why", text)
	case x.first == nil && x.whole == nil:
		x.s.log.Warn("the remote server did not take a message", "method", x.method, "why", text)
	}
	ids := x.ids
	x.ids = nil
	// The message is settled first: the relay may wait for that, and Write may wait for the relay (see outbox.Outbox).
	x.markSettled()
	for _, id := range ids {
		x.s.out.Write(wire.ErrorReply(id, wire.CodeInternalError, text).Line(), x.beside)
	}
	x.s.out.Flush()
}
