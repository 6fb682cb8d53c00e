package front

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/answer"
	"github.com/attache-mcp/attache/proxy/front/internal/bare"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/front/internal/revision"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/wire"
)

// maxGets is how many GET streams a session may have. Messages go to the newest one only. The others stay open: if
// the newest ended them, two live clients that reconnect would end each other's stream for ever (HTTP.md, section 2.1).
const maxGets = 4

// get opens a stream for messages that belong to no request, or takes up the stream of a request again.
func (x *exchange) get() {
	if x.accept, _ = accept.Parse(x.r.Header["Accept"]); !x.accept.Events {
		x.refuse(http.StatusNotAcceptable, nil, wire.CodeInvalidRequest, "a GET opens a stream of events: accept text/event-stream")
		return
	}
	id, ok := x.sessionID()
	if !ok {
		return
	}
	x.accept.JSON = false
	if last := x.r.Header.Get("Last-Event-Id"); last != "" && !outbox.IsGetID(last) {
		x.resume(id, last)
		return
	}
	t := newStream(true)
	s := x.session(id, nil)
	// The session may have been closed since it was found, and may go on: look again.
	for s != nil && !s.attach(t) {
		s.release()
		s = x.session(id, nil)
	}
	if s == nil {
		return
	}
	x.w.Header().Set(sessionHeader, s.id)
	x.watchCredential(s, t, t.Close)
	var first []byte
	if revision.Resumes(x.header(versionHeader)) {
		first = outbox.BeginGet()
	}
	if response := bare.Take(x.w, x.r); response != nil {
		// The function must not refer to x, or the request of x would stay in memory for as long as the stream
		// is open.
		x.f.streams.Begin()
		answer.ServeBare(response, &t.Stream, first, &x.f.pulse, func() {
			s.detach(t)
			s.release()
			s.f.streams.End()
		})
		return
	}
	defer s.release()
	defer s.detach(t)
	w := x.writer(&t.Stream, nil)
	w.Prefix = first
	x.answer(w)
}

// checkTime bounds how long a check of a stream's credential may take.
const checkTime = 10 * time.Second

// watchCredential checks the credential of x again and again until t, a stream of s, has ended, and calls
// end when it is refused. Otherwise the owner of a revoked key could read what the server sends for as
// long as the stream stays open. Between two checks it has no goroutine, only a timer, and the end of the
// stream stops that timer. Only one check runs at a time, because each check sets the timer for the next check.
func (x *exchange) watchCredential(s *session, t *stream, end func()) {
	if !x.f.authenticates() {
		return
	}
	f, id, credential, base := x.f, x.who.ID, x.credential, context.Background()
	ask := func(ctx context.Context) (Principal, error) { return f.o.Authenticate(ctx, credential) }
	if f.o.AuthenticateRequest != nil {
		r := x.r // kept in memory only here, because many streams stay open for hours
		base = context.WithoutCancel(r.Context())
		ask = func(ctx context.Context) (Principal, error) { return f.o.AuthenticateRequest(r.WithContext(ctx)) }
	}
	var timer *time.Timer
	check := func() {
		if t.Ended() {
			return
		}
		ctx, cancel := context.WithTimeout(base, checkTime)
		defer cancel()
		switch who, err := ask(ctx); {
		// An issuer that is down says nothing about the credential, so the stream goes on.
		case err != nil && !errors.Is(err, ErrUnavailable), err == nil && who.ID != id:
			f.log.Info("a stream was ended: its credential is no longer accepted", "err", err)
			end()
			if errors.Is(err, ErrEnded) { // its process would run until the session is idle
				s.end("the credential of the session is no longer valid")
			}
		default:
			timer.Reset(f.o.Reauthenticate)
		}
	}
	timer = time.AfterFunc(math.MaxInt64, check) // check must not run before timer is set
	timer.Reset(f.o.Reauthenticate)
	t.StopAtEnd(timer)
}

// sessionID returns the session id of a GET or DELETE. ok is false if the request was refused.
func (x *exchange) sessionID() (id string, ok bool) {
	if id = x.r.Header.Get(sessionHeader); id == "" {
		x.refuse(http.StatusBadRequest, nil, wire.CodeInvalidRequest, "the header Mcp-Session-Id is missing: begin with initialize")
	}
	return id, id != ""
}

// attach makes t the newest GET stream, and gives it the messages that wait for a stream. Both are one step under
// s.mu, so that no new message overtakes the waiting messages. It reports false if the session is closed.
func (s *session) attach(t *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if len(s.gets) >= maxGets {
		s.gets[0].Close()
		s.gets = s.gets[1:]
	}
	s.gets = append(s.gets, t)
	s.deliverPendingLocked(&t.Stream)
	return true
}

func (s *session) detach(t *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// attach may have closed it, and taken it out.
	if i := slices.Index(s.gets, t); i >= 0 {
		s.gets = slices.Concat(s.gets[:i], s.gets[i+1:])
	}
}

// delete ends a session because its client asks for it.
func (x *exchange) delete() {
	id, ok := x.sessionID()
	if !ok {
		return
	}
	switch known, err := x.f.forget(x.r.Context(), id, x.who); {
	case err != nil:
		x.refuseSession(nil, sessions.NewKey(id, x.who.ID), err)
	case !known:
		x.noSession(nil)
	default:
		x.finish(http.StatusNoContent)
	}
}
