package front

import (
	"context"
	"errors"
	"net/http"

	"github.com/attache-mcp/attache/proxy/front/internal/mirrored"
	"github.com/attache-mcp/attache/proxy/front/internal/rename"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/wire"
)

// postModern handles a message of revision 2026-07-28 or later. There is no handshake: each request
// names its revision and, if its host has one, its conversation.
func (x *exchange) postModern(p *message) {
	switch {
	case p.m.Kind() == wire.Batch || p.m.Kind().IsReply():
		x.refuse(http.StatusBadRequest, nil, wire.CodeInvalidRequest, "in this revision a client sends only requests and notifications, one at a time")
		return
	case p.id == nil:
		x.notifyModern(p)
		return
	case p.revision == "":
		x.refuse(http.StatusBadRequest, p.id, wire.CodeInvalidParams, "_meta lacks "+protocolKey+", which the header MCP-Protocol-Version announces")
		return
	}
	if why := mirrored.Mismatch(x.r.Header, &p.m, p.revision, p.doubt); why != "" {
		x.refuse(http.StatusBadRequest, p.id, wire.CodeHeaderMismatch, why)
		return
	}
	t := newStream(x.accept.Events)
	c := p.calls(t)[0]
	if c.subscribes {
		x.f.rename(c, p)
	}
	s, err := x.f.join(c, p, x)
	if err != nil {
		x.refuseSession(p.id, sessions.Key{}, err)
		return
	}
	defer s.release()
	x.reportSender(s)
	// The call is in the table already, because join needs it there, so it is taken out again.
	if s.crowded() {
		s.withdraw(c)
		x.refuseCrowded(p.id)
		return
	}
	// The tools of the session are known only now that it was found.
	if why := s.params.Mismatch(x.r.Header, &p.m); why != "" {
		s.withdraw(c)
		x.refuse(http.StatusBadRequest, p.id, wire.CodeHeaderMismatch, why)
		return
	}
	err = x.hand(s, p)
	x.body.Release()
	if err != nil && !errors.Is(err, errClosed) {
		s.withdraw(c)
		return
	}
	if c.subscribes && x.accept.Events {
		x.accept.JSON = false // so that the header is sent at once
		ctx, cancel := context.WithCancel(x.r.Context())
		defer cancel()
		x.r = x.r.WithContext(ctx)
		x.watchCredential(s, t, cancel)
	}
	// The client has closed the connection, which in this revision cancels the request.
	if !x.answer(&writer{x: x, t: &t.Stream, call: c}) {
		s.abandon(x.r.Context(), c)
	}
}

// rename gives a call an id and a progress token that no other has, if its message can be edited.
func (f *Front) rename(c *call, p *message) bool {
	if c.name = rename.Request(&p.m, c.raw, f.renamed.Add(1)); c.name != nil {
		c.id, c.token = callKey(c.name.ID), callKey(c.name.Token)
	}
	return c.name != nil
}

// join adds c, the call of p, to the session that p belongs to, and returns the session in use. It renames
// c if a request there has its id, because only that server has its tasks, and returns errInUse if it cannot.
// If there is no session, join opens one.
func (f *Front) join(c *call, p *message, x *exchange) (*session, error) {
	key := f.keys.Of(x.who.ID, &p.m, f.o.Conversation)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.draining {
		return nil, errDraining
	}
	s := f.byKey[key]
	if s == nil {
		var err error
		if s, err = f.openLocked("", Opening{Who: x.who, Credential: x.credential}); err != nil {
			return nil, err
		}
		s.key = key
		f.byKey[key] = s
	}
	s.use() // it is not closed, because f.mu is held since it was found
	err := s.add([]*call{c})
	if err != nil && c.name == nil && f.rename(c, p) {
		err = s.add([]*call{c})
	}
	if err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// stale reports whether an abandoned call with the id or token of c may still get messages. The caller holds s.mu.
func (s *session) stale(c *call) bool {
	_, id := s.abandoned[c.id]
	_, token := s.abandoned["token "+c.token]
	return id || token
}

// settleLocked forgets an abandoned call with that raw id: after its reply nothing comes for it. The caller
// holds s.mu.
func (s *session) settleLocked(raw []byte) {
	id := callKey(raw)
	delete(s.abandoned, s.abandoned[id])
	delete(s.abandoned, id)
}

// withdraw removes calls that were not sent, and abandons their streams: nobody reads them, and the
// relay may be blocked in a push.
func (s *session) withdraw(calls ...*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range calls {
		if s.calls[c.id] == c {
			s.dropLocked(c)
		}
		c.stream.Abandon()
	}
}

// maxAbandoned is how many ids and tokens of abandoned requests a session remembers.
const maxAbandoned = 10_000

// abandon cancels a call whose client has closed the connection, as revision 2026-07-28 demands. ctx is
// the context of the call's request and is done, so abandon does not wait for a relay that does not read.
func (s *session) abandon(ctx context.Context, c *call) {
	s.mu.Lock()
	if s.calls[c.id] != c {
		s.mu.Unlock()
		return
	}
	s.dropLocked(c)
	s.abandonLocked(c)
	// A cancellation that comes as well must not hit a request of another client with this id: see
	// notifyModern.
	s.left.Add(c.raw)
	s.mu.Unlock()
	b := append([]byte(`{"requestId":`), c.sent()...)
	b = append(b, `,"reason":"the client closed the connection"}`...)
	_ = s.in.Put(ctx, wire.NewNotification(wire.Client, "notifications/cancelled", b))
}

// abandonLocked remembers the id and token of a cancelled call, because messages with them may still come,
// and must not go to another client. Only clients without a handshake share a session, and nobody else has
// the id of a renamed call. The caller holds s.mu.
func (s *session) abandonLocked(c *call) {
	if s.key == "" || c.name != nil {
		return
	}
	if s.abandoned == nil || len(s.abandoned) >= maxAbandoned {
		s.abandoned = map[string]string{}
	}
	token := ""
	if c.token != "" {
		token = "token " + c.token // no raw id begins like this
		s.abandoned[token] = ""
	}
	s.abandoned[c.id] = token
}

// notifyModern handles a notification. It ignores one without a session, and a cancellation that may be meant
// for the request of another client: see toCancel.
func (x *exchange) notifyModern(p *message) {
	key, cancelled := x.f.keys.Of(x.who.ID, &p.m, x.f.o.Conversation), p.cancels()
	x.f.mu.Lock()
	s := x.f.byKey[key]
	x.f.mu.Unlock()
	var c *call
	if s != nil && cancelled != "" {
		c = s.toCancel(p.m.Get("params", "requestId").Raw, x.header("Authorization"))
	}
	if s != nil && (cancelled == "" || c != nil) && s.use() {
		defer s.release()
		if c != nil && c.name != nil {
			cancelled = c.id
			_ = p.m.Set(c.sent(), "params", "requestId")
		}
		_ = x.hand(s, p)
		s.cancelled(cancelled, "client")
	}
	x.body.Release()
	x.finish(http.StatusAccepted)
}

// toCancel returns the call that a cancellation of the request with the raw id ends. It returns nil if no call
// with that id was sent with this Authorization, or several were, or if one of the last 64 replies was to a
// request with that id: go-sdk closes the stream and cancels, maybe as the reply comes, and by then the id may
// be that of another client. Such a reply does not protect a subscription.
func (s *session) toCancel(id []byte, authorization string) *call {
	calls := s.named(callKey(id), authorization)
	// One cancellation takes one id: the others wait for theirs.
	if s.left.Take(id) || len(calls) != 1 || !calls[0].subscribes && s.replied.Take(id) {
		return nil
	}
	return calls[0]
}

// named returns the calls in flight that were sent with that id and Authorization.
func (s *session) named(id, authorization string) (calls []*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if callKey(c.raw) == id && c.request.Header.Get("Authorization") == authorization {
			calls = append(calls, c)
		}
	}
	return calls
}
