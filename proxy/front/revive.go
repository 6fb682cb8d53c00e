package front

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/answer"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/wire"
)

// lookup returns the session of that id, nil if there is none. It continues a session that another
// process has released. It may ask the Store, so it is called without f.mu.
func (f *Front) lookup(ctx context.Context, id string, who Principal, credential string) (*session, error) {
	s, key, err := f.findOrHold(ctx, id, who)
	if s != nil || err != nil || f.keeper == nil {
		return s, err
	}
	defer f.keeper.Free(key)
	if f.Draining() {
		return nil, errDraining
	}
	saved, err := f.keeper.Take(ctx, key)
	if errors.Is(err, sessions.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err = f.resume(id, who, credential, saved)
	if err != nil {
		f.keeper.GiveBack(key) // another front may be able to continue it
	}
	return s, err
}

// findOrHold returns the session of that id. If this front does not have it and there is a keeper,
// findOrHold returns nil, and the caller holds key in the keeper: until it calls Free, all other requests for that
// session wait, so that one of them continues it or ends it, and the others find the result.
func (f *Front) findOrHold(ctx context.Context, id string, who Principal) (s *session, key sessions.Key, err error) {
	if s = f.find(id, who); s != nil || f.keeper == nil {
		return s, key, nil
	}
	key = sessions.NewKey(id, who.ID)
	for begun := false; s == nil && !begun; {
		if begun, err = f.keeper.Begin(ctx, key); err != nil {
			return nil, key, err
		}
		// Another request may have continued the session while this one waited.
		if s = f.find(id, who); s != nil && begun {
			f.keeper.Free(key)
		}
	}
	return s, key, nil
}

// resume continues a session that another process has released. It returns at once: the request that needs the
// session waits in the inbox until the server has answered.
func (f *Front) resume(id string, who Principal, credential string, saved sessions.Session) (*session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.openLocked(id, "", Opening{Who: who, Credential: credential, Resumed: true})
	if err != nil {
		return nil, err
	}
	s.entry.Restore(saved)
	// Under f.mu since openLocked, so the id is not found before the state is restored.
	f.byID[id] = s
	// Messages of the client wait until shakeHands has repeated the handshake.
	s.in.Hold()
	t := newStream(false)
	m, _ := s.ask(t, "initialize", []byte(saved.Initialize)) // f.mu is held, so s is not closed
	s.in.First(m)
	go s.shakeHands(t)
	return s, nil
}

// ask adds a call for a request of the front itself, whose reply goes to t, and returns the request. The end of the
// session answers this call too, like the calls of the client. Its id is a number of 31 bits: some servers do not
// answer string ids, some truncate longer numbers, and some write 16 digits with an exponent.
func (s *session) ask(t *stream, method string, params []byte) (*wire.Message, error) {
	// A random number is hardly ever the id of a request of the client: those are counters or texts.
	id := strconv.AppendInt(nil, 1<<30+rand.Int64N(1<<30), 10)
	c := &call{Request: answer.Request{Raw: id, Initialize: method == "initialize"}, id: string(id), stream: t}
	return wire.NewRequest(wire.Client, id, method, params), s.add([]*call{c})
}

// shakeHands completes the handshake of a session that is continued here (rule R5 of docs/restart.md).
// It waits on t for the reply to initialize, repeats the recorded requests, and releases the messages
// that wait for that. A server that negotiates something else than before would not behave as the
// client expects, so then the session ends. A server that gives no result may give one next time.
func (s *session) shakeHands(t *stream) {
	select {
	case <-t.Wake():
	case <-time.After(time.Minute): // as for a server that is started again
	}
	items, _, _ := t.Take(nil)
	var m wire.Message
	if len(items) > 0 {
		m.Reset(wire.Server, items[0].Data)
	}
	if !m.LookEnvelope() || m.Kind() != wire.Result {
		s.close("the session was to go on with another process of the server, which does not answer: try again later: "+cmp.Or(m.ErrorObject().Get("message").Text(), "no result"), reasonReleased)
		return
	}
	if err := s.entry.Same(&m); err != nil {
		s.end("the session was to go on with another process of the server, which is " + err.Error() + ": begin a new session with initialize")
		return
	}
	s.log.Info("a session that another attache process had continues here")
	s.in.First(wire.NewNotification(wire.Client, "notifications/initialized", nil))
	// The client has had the replies to these requests from the other process.
	ignored := newStream(false)
	ignored.Abandon()
	for _, q := range s.entry.Requests() {
		if m, err := s.ask(ignored, q.Method, q.Params); err == nil {
			s.in.First(m)
		}
	}
	s.in.Release()
}

// reasonRelayEnded returns the reason to close the session with when its relay has ended. If the session should
// continue here and has not done so yet, the next request may try again: perhaps its server only failed to start
// this time.
func (s *session) reasonRelayEnded() closeReason {
	s.mu.Lock()
	begun := s.version != ""
	s.mu.Unlock()
	if s.entry != nil && s.entry.Saved() && !begun {
		return reasonReleased
	}
	return reasonEnded
}

// recordClose records in the Store that the session is closed. Requests for the session wait in the keeper
// until that is done, because Part is called here, under f.mu, before a request can miss the session in the
// tables. Leave asks the Store and must not block f.mu. So a goroutine calls Leave for a session that has
// ended, and handOver calls it for a session that goes on. The caller holds f.mu.
func (s *session) recordClose(why closeReason) {
	if s.entry == nil || why == reasonTaken {
		return
	}
	s.entry.Part()
	if s.closeReason = why; why == reasonEnded {
		// Drain waits for relays, and so for this too.
		s.f.relays.Go(func() { s.entry.Leave(true) })
	}
}

// handOver lets another process continue a session that this one released. It is called after the
// relay has ended, because two processes of a server that uses locks must not run at once.
func (s *session) handOver() {
	s.f.mu.Lock()
	why := s.closeReason
	s.f.mu.Unlock()
	if why == reasonReleased || why == reasonIdle {
		s.entry.Leave(false)
	}
}

// runningLocked returns the calls in flight other than subscriptions. The caller holds s.mu.
func (s *session) runningLocked() []*call {
	return slices.DeleteFunc(slices.Collect(maps.Values(s.calls)), func(c *call) bool { return c.subscribes })
}

// releaseIdle releases the session when no call is running, or when ctx is done. It tries again, because a call may
// come between the last reply and the closing; the closing finds that call under s.mu.
func (s *session) releaseIdle(ctx context.Context) {
	for why := reasonIdle; !s.close("the proxy is shutting down", why); {
		if s.awaitCalls(ctx); ctx.Err() != nil {
			why = reasonReleased
		}
	}
}

// forget ends a session because its client asks for it, and reports whether there was one. A session that waits in the
// Store is deleted there, without starting a server for it.
func (f *Front) forget(ctx context.Context, id string, who Principal) (known bool, err error) {
	s, key, err := f.findOrHold(ctx, id, who)
	switch {
	case s != nil:
		s.end("the client ended the session")
		return true, nil
	case err != nil || f.keeper == nil:
		return false, err
	}
	defer f.keeper.Free(key)
	return f.keeper.Forget(ctx, key)
}

// Recheck stores the sessions whose latest state could not be stored, because a session that is not in
// the Store ends with this front. It closes those of them that another front has taken over. If all is
// set, it checks every session: call it so after this front did not renew its lease in time, because
// other fronts could take over any session. After an error, call it again.
func (f *Front) Recheck(ctx context.Context, all bool) error {
	kept := map[*sessions.Entry]*session{}
	f.mu.Lock()
	for _, s := range f.byID {
		if s.entry != nil && (all || s.entry.Unsaved()) {
			kept[s.entry] = s
		}
	}
	f.mu.Unlock()
	return sessions.Recheck(ctx, slices.Collect(maps.Keys(kept)), func(k *sessions.Entry) {
		kept[k].close("another front has the session now", reasonTaken)
	})
}

// routeHeader has the value by which a balancer has chosen this front for a new session. The session
// id begins with it, so that the balancer can choose the same front again.
const routeHeader = "Attache-Route"

// frontHeader names the front that a balancer should send a request to that was refused with 503.
const frontHeader = "Attache-Front"

// refuseSession refuses a request for a session that this front does not have or cannot open, and
// names the front that has the session. key is zero for a new session.
func (x *exchange) refuseSession(id []byte, key sessions.Key, err error) {
	elsewhere, front := errors.Is(err, sessions.ErrElsewhere), ""
	if x.f.keeper != nil && (elsewhere || errors.Is(err, errDraining)) {
		if front = x.f.keeper.Elsewhere(x.r.Context(), key); front != "" {
			x.w.Header()[frontHeader] = []string{front}
		}
	}
	switch {
	case elsewhere:
		x.f.keeper.Misled(front)
		x.busy(id, "another front of attache has this session, or had it and has just died: try again later; if this goes on, the balancer in front of them must send the requests of a session to one of them")
	case front == "" && x.r.Method == http.MethodGet && errors.Is(err, errDraining):
		panic(http.ErrAbortHandler) // without an answer go-sdk tries again; 503 ends its session
	default:
		x.refuseFull(id, err)
	}
}
