package front

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/answer"
	"github.com/attache-mcp/attache/proxy/front/internal/limit"
	"github.com/attache-mcp/attache/proxy/front/internal/revision"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// post handles a POST, which has a message. The checks that need no body come before the body is read. No relay gets
// the message before all checks have passed, so a refused request has not been executed.
func (x *exchange) post() {
	if !accept.IsJSON(x.header("Content-Type")) {
		x.refuse(http.StatusUnsupportedMediaType, nil, wire.CodeInvalidRequest, "the Content-Type of a message is application/json")
		return
	}
	var ok bool
	if x.accept, ok = accept.Parse(x.r.Header["Accept"]); !ok {
		x.refuse(http.StatusNotAcceptable, nil, wire.CodeInvalidRequest, "answers are application/json or text/event-stream: accept them")
		return
	}
	// Before the body is read, so that too many requests cost little memory.
	if err := x.f.o.Limits.Begin(x.who.ID); err != nil {
		x.logRefusal(&x.f.refused.limit, slog.LevelWarn, err)
		x.busy(nil, "too many requests are being served: try again")
		return
	}
	defer x.f.o.Limits.Finish(x.who.ID)
	line, ok := x.readBody()
	defer x.body.Release()
	if !ok {
		return
	}
	// The names of the last relay are most often those of this one, so the relay need not scan
	// again.
	p, code, text := parse(line, *x.f.names.Load())
	if text != "" {
		x.refuse(http.StatusBadRequest, nil, code, text)
		return
	}
	x.body.Lend(&p.m)
	p.request = x.r
	if p.revision != "" || !revision.HasHandshake(x.header(versionHeader)) || x.cancelsModern(p) {
		x.postModern(p)
		return
	}
	x.postLegacy(p)
}

// header returns a header of the request. The name must be in canonical form.
func (x *exchange) header(name string) string {
	if v := x.r.Header[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// cancelsModern reports whether a message cancels a request of revision 2026-07-28. That revision has
// no rules for the headers of notifications, so the absence of a session tells. Refusing it ends go-sdk clients.
func (x *exchange) cancelsModern(p *message) bool {
	return p.m.Kind() == wire.Notification && p.m.MethodIs("notifications/cancelled") &&
		x.header(sessionHeader) == "" && x.header(versionHeader) == ""
}

// postLegacy handles a message of a revision with a handshake. The header need only name a known revision,
// because the session has the revision that initialize negotiated.
func (x *exchange) postLegacy(p *message) {
	if version := x.header(versionHeader); version != "" && !revision.IsLegacy(version) {
		x.refuse(http.StatusBadRequest, p.id, wire.CodeInvalidRequest, "the revision in the header MCP-Protocol-Version is not known")
		return
	}
	id := x.header(sessionHeader)
	if id == "" && p.id != nil && p.m.MethodIs("initialize") {
		x.initialize(p)
		return
	}
	if id == "" {
		x.refuse(http.StatusBadRequest, p.id, wire.CodeInvalidRequest, "the header Mcp-Session-Id is missing: begin with initialize")
		return
	}
	// A session may be closed between the look-up and the delivery. The next look-up continues it,
	// or refuses.
	for {
		s := x.session(id, p.id)
		if s == nil {
			return
		}
		x.w.Header()[sessionHeader] = x.r.Header[sessionHeader][:1]
		w, err := x.deliver(s, p)
		if err != nil {
			s.release()
			continue
		}
		defer s.release() // also if writing the answer panics
		if w != nil {
			x.answer(w)
		}
		return
	}
}

// session returns the session of that id and marks it as used; the caller calls release later. It returns nil if
// it has refused the request, whose raw id is request. If a session was closed between the look-up and use, it is
// looked up again: it may go on, here or in another front.
func (x *exchange) session(id string, request []byte) *session {
	for {
		s, err := x.f.lookup(x.r.Context(), id, x.who, x.credential)
		switch {
		case err != nil:
			x.refuseSession(request, sessions.NewKey(id, x.who.ID), err)
			return nil
		case s == nil:
			x.noSession(request)
			return nil
		case s.use():
			x.reportSender(s)
			return s
		}
	}
}

// reportSender tells the session's relay who sends the request.
func (x *exchange) reportSender(s *session) {
	if s.seen != nil {
		s.seen(x.who, x.credential)
	}
}

func (x *exchange) noSession(id []byte) {
	x.refuse(http.StatusNotFound, id, wire.CodeInvalidRequest, "there is no such session: begin a new one with initialize")
}

// maxBatch is how many messages an array may have, as in servers of the TypeScript SDK 1.
const maxBatch = 100

// takesBatch reports whether an array of messages may be sent in the session.
func (s *session) takesBatch(p *message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return revision.HasBatches(s.version) && len(p.members) > 0 && len(p.members) <= maxBatch && !slices.ContainsFunc(p.members, func(v wire.Value) bool {
		return v.Get("method").Equals("initialize") || v.Get("id").Exists() && v.Get("method").Exists() && !callid.HasOneID(v)
	})
}

// initialize opens a session and handles its first message. The session ends if the handshake fails: no client
// goes on with a session whose initialize was refused.
func (x *exchange) initialize(p *message) {
	s, err := x.f.create(sessions.Route(x.header(routeHeader)), x.who, x.credential)
	if err != nil {
		x.refuseSession(p.id, sessions.Key{}, err)
		return
	}
	if !s.use() {
		x.noSession(p.id)
		return
	}
	defer s.release()
	x.w.Header()[sessionHeader] = []string{s.id}
	w, err := x.deliver(s, p)
	if err != nil {
		x.noSession(p.id)
	}
	switch answered := w == nil || x.answer(w); {
	case !answered && w.Mode == answer.Events:
		s.endUnused() // the client disconnected, but it may have read the session id
	case !answered || !s.initialized():
		s.end("the session could not be opened")
	}
}

// initialized reports whether initialize was answered with a result, or may still be.
func (s *session) initialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version != "" || len(s.calls) > 0
}

// refuseFull refuses a request because no session can be opened, or does not take it, for the reason err.
func (x *exchange) refuseFull(id []byte, err error) {
	switch {
	case err == errInUse:
		x.refuse(http.StatusBadRequest, id, wire.CodeInvalidRequest, err.Error())
	case errors.Is(err, limit.ErrPrincipalFull):
		x.logRefusal(&x.f.refused.limit, slog.LevelWarn, fmt.Errorf("%w: %s", err, x.who.ID))
		x.refuse(http.StatusTooManyRequests, id, wire.CodeInternalError, "too many sessions of yours are in use: end one, or try again later")
	case errors.Is(err, errDraining): // also for a call of a session that another front will continue
		x.w.Header().Set("Connection", "close") // a balancer of connections chooses another front for the next one
		x.busy(id, err.Error()+": try again later")
	case errors.Is(err, ErrBusy):
		x.logRefusal(&x.f.refused.limit, slog.LevelWarn, err)
		x.busy(id, "no session can be opened now: "+err.Error()+": try again later")
	default:
		x.logRefusal(&x.f.refused.session, slog.LevelError, fmt.Errorf("the session could not be opened: %w", err))
		x.busy(id, "no session can be opened now: try again later")
	}
}

func (x *exchange) refuseCrowded(id []byte) {
	x.logRefusal(&x.f.refused.limit, slog.LevelWarn, errors.New("one session has more requests in flight than a tenth of serve.limits.in_flight, at least 64"))
	x.refuse(http.StatusTooManyRequests, id, wire.CodeInternalError, "too many requests of this session are in flight: try again when some are answered")
}

// deliver hands a message to the relay of a session. It returns the writer of the answer, nil if there is
// none or the HTTP request has been answered. Nobody may use p after that. The error is errClosed if the
// session is closed; then the request has not been answered, and p may be delivered to another session.
//
// The order matters. The calls are in the table before the relay has the message, because the reply may come before
// hand returns. If hand fails with errClosed after that, closeLocked has answered the calls on their stream, so the
// writer has something to write.
func (x *exchange) deliver(s *session, p *message) (*answer.Writer, error) {
	t := newStream(x.accept.Events)
	if p.m.Kind() == wire.Batch && !s.takesBatch(p) {
		x.refuse(http.StatusBadRequest, nil, wire.CodeInvalidRequest, "this array of messages is not accepted: send them one by one")
		return nil, nil
	}
	calls := p.calls(t)
	switch {
	// A session that no other front can continue ends with this front, so it takes no more calls.
	case len(calls) > 0 && s.entry == nil && x.f.Draining():
		x.refuseFull(p.id, errDraining)
		return nil, nil
	case s.crowded():
		x.refuseCrowded(p.id)
		return nil, nil
	case p.m.Kind().IsReply() && !s.awaitsReply(&p.m):
		s.log.Info("a reply of the client that answers no request of the server was dropped")
		x.body.Release()
		x.finish(http.StatusAccepted)
		return nil, nil
	}
	if len(calls) > 0 {
		if s.entry != nil {
			calls[0].onReply = s.entry.Note(&p.m)
		}
		switch err := s.add(calls); err {
		case nil:
		case errInUse:
			x.refuseFull(p.id, err)
			return nil, nil
		default:
			return nil, err
		}
	}
	// Before hand, after which the message belongs to the relay.
	cancelled := p.cancels()
	err := x.hand(s, p)
	if err != nil && p.m.Kind().IsReply() {
		if id := p.m.Get("id").Raw; len(id) > 0 { // an error may have none
			s.serverRequests.Add(id) // the client may send it again
		}
	}
	if len(calls) == 0 && errors.Is(err, errClosed) {
		return nil, err
	}
	x.body.Release()
	switch {
	case len(calls) == 0 && err == nil:
		s.cancelled(cancelled, "client")
		x.finish(http.StatusAccepted)
	// The client has disconnected while the message waited for the relay.
	case err != nil && !errors.Is(err, errClosed):
		s.withdraw(calls...)
	default:
		return x.writer(&t.Stream, &calls[0].Request), nil
	}
	return nil, nil
}

// hand hands a message to the relay of a session. It remembers the ArgumentNames of the relay, with
// which parse scans the next message, so that the relay need not scan it again. Most sessions of a
// front have the same rules, so one value serves all. With other names the relay scans again.
func (x *exchange) hand(s *session, p *message) error {
	p.m.Beside = x.who.Value
	err := s.in.Put(x.r.Context(), &p.m)
	if names := p.m.ArgumentNames(); !slices.EqualFunc(names, *x.f.names.Load(), slices.Equal) {
		x.f.names.Store(&names)
	}
	return err
}

// cancels returns callid.Text of the request that a message cancels, "" if it cancels none.
func (p *message) cancels() string {
	if !p.m.MethodIs("notifications/cancelled") {
		return ""
	}
	return callid.Text(p.m.Get("params", "requestId").Raw)
}

// cancelled answers a call that was cancelled, because the upstream will not answer it, and a stream without a reply
// makes some clients wait. id is the key of the call; by is "client" or "server". A server may only cancel
// subscriptions and its own requests, and its request may have the same id as a call of the client. cancelled looks
// the call up by its id and does not get the call of toCancel: if another client has used the id meanwhile, the
// server may have been told to cancel the other call, and would then send no reply to it.
func (s *session) cancelled(id, by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// initialize cannot be cancelled (specification, basic/utilities/cancellation).
	if c := s.calls[id]; c != nil && id != "" && !c.Initialize && (c.subscribes || by == "client") {
		s.answerLocked(c, "the "+by+" cancelled the request")
		s.abandonLocked(c)
	}
}
