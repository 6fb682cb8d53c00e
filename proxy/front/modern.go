package front

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/attache-mcp/attache/proxy/front/internal/mirrored"
	"github.com/attache-mcp/attache/proxy/front/internal/rename"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// postModern handles a message of revision 2026-07-28 or later. There is no handshake: each request
// names its revision and, if its host has one, its conversation. The headers are compared with the body before
// anything happens: a proxy in between may have decided by them.
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
	// Always rename a subscription, because it stays open, and all clients of an SDK give it the same id.
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
	if !x.answer(x.writer(&t.Stream, &c.Request)) {
		s.abandon(x.r.Context(), c)
	}
}

// rename gives a call an id and a progress token that no other has, if its message can be edited.
func (f *Front) rename(c *call, p *message) bool {
	if c.name = rename.Request(&p.m, c.Raw, f.renamed.Add(1)); c.name != nil {
		c.id, c.token = callid.Text(c.name.ID), callid.Text(c.name.Token)
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
		if s, err = f.openLocked("", key, Opening{Who: x.who, Credential: x.credential}); err != nil {
			return nil, err
		}
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

// withdraw removes calls that were not sent, and abandons their streams. Nobody reads these streams, and the
// relay may be blocked in a push of a server's message to one of them: see streamFor.
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
	s.left.Add(c.Raw)
	s.mu.Unlock()
	b := append([]byte(`{"requestId":`), c.sent()...)
	b = append(b, `,"reason":"the client closed the connection"}`...)
	_ = s.in.Put(ctx, wire.NewNotification(wire.Client, "notifications/cancelled", b))
}

// abandonLocked remembers the id and token of a cancelled call, because messages with them may still come,
// and must not go to another client. Only clients without a handshake share a session, and nobody else has
// the id of a renamed call. The caller removes the call under the same lock of s.mu, so that no other call can
// get the id in between.
func (s *session) abandonLocked(c *call) {
	if s.key != "" && c.name == nil {
		s.abandoned.Add(c.id, c.token)
	}
}

// notifyModern handles a notification. It ignores one without a session, and a cancellation that may be meant
// for the request of another client: see toCancel. It answers 202 in any case: see
// cancelsModern.
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

// toCancel returns the call that a cancellation of the request with the raw id ends. The cancellation does not say
// which client of the session has sent it, and a wrong guess would end the work of another client. An ignored
// cancellation costs only the work of one call. It returns nil unless exactly one call with that id was sent with
// this Authorization. It also returns nil if one of the last 64 replies was to a request with that id: go-sdk
// closes the stream and cancels, perhaps while the reply comes, and by then another client may use the id. Such a
// reply does not protect a subscription.
func (s *session) toCancel(id []byte, authorization string) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := callid.Text(id)
	calls := slices.DeleteFunc(slices.Collect(maps.Values(s.calls)), func(c *call) bool {
		return callid.Text(c.Raw) != key || c.request.Header.Get("Authorization") != authorization
	})
	// One cancellation takes one id: the others wait for theirs.
	if s.left.Take(id) || len(calls) != 1 || !calls[0].subscribes && s.replied.Take(id) {
		return nil
	}
	return calls[0]
}
