package front

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/wire"
)

// lookup returns the session of that id, nil if there is none. One that another process has
// left is opened again.
func (f *Front) lookup(ctx context.Context, id string, who Principal, credential string) (*session, error) {
	if s := f.find(id, who); s != nil || f.keeper == nil {
		return s, nil
	}
	key := sessions.NewKey(id, who.ID)
	for begun := false; !begun; {
		var err error
		if begun, err = f.keeper.Begin(ctx, key); err != nil {
			return nil, err
		}
		if s := f.find(id, who); s != nil {
			if begun {
				f.keeper.Free(key)
			}
			return s, nil
		}
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
	s, err := f.resume(id, who, credential, saved)
	if err != nil {
		f.keeper.GiveBack(key) // another front may have room for it
	}
	return s, err
}

// resume opens a session again that another process has left.
func (f *Front) resume(id string, who Principal, credential string, saved sessions.Session) (*session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.openLocked(id, Opening{Who: who, Credential: credential, Resumed: true})
	if err != nil {
		return nil, err
	}
	s.kept.Restore(saved)
	f.byID[id] = s
	s.in.Hold()
	t := newStream(false)
	m, err := s.ask(t, "initialize", []byte(saved.Initialize))
	if err != nil {
		return nil, err // its relay has ended already
	}
	s.in.First(m)
	go s.shakeHands(t)
	return s, nil
}

// ask returns a request of attache's own, whose reply goes to t. Its id is a number of 31 bits: some
// servers answer no text, some cut longer numbers off, and some write 16 digits with an exponent.
func (s *session) ask(t *stream, method string, params []byte) (*wire.Message, error) {
	id := strconv.AppendInt(nil, 1<<30+rand.Int64N(1<<30), 10)
	c := &call{id: string(id), raw: id, stream: t, initialize: method == "initialize"}
	_, err := s.add([]*call{c})
	return wire.NewRequest(wire.Client, id, method, params), err
}

// shakeHands waits for the reply to the initialize of a session that was opened again, on t,
// tells the server what else it has to know, and lets go what waits behind that (rule R5 of
// docs/restart.md). A server that agrees to something else than before would not do what the
// client expects of it, so the session has ended. One that gives no result may give one next time.
func (s *session) shakeHands(t *stream) {
	select {
	case <-t.wake:
	case <-time.After(time.Minute): // as in a relay whose server ended
	}
	items, _, _ := t.take(nil)
	var m wire.Message
	if len(items) > 0 {
		m.Reset(wire.Server, items[0].data)
	}
	if !m.LookEnvelope() || m.Kind() != wire.Result {
		s.close("the session was to go on with another process of the server, which does not answer: try again later: "+cmp.Or(m.ErrorObject().Get("message").Text(), "no result"), left)
		return
	}
	if err := s.kept.Same(&m); err != nil {
		s.end("the session was to go on with another process of the server, which is " + err.Error() + ": begin a new session with initialize")
		return
	}
	s.log.Info("a session goes on that another process of attache had")
	s.in.First(wire.NewNotification(wire.Client, "notifications/initialized", nil))
	ignored := newStream(false)
	ignored.leave()
	for _, q := range s.kept.Requests() {
		if m, err := s.ask(ignored, q.Method, q.Params); err == nil {
			s.in.First(m)
		}
	}
	s.in.Release()
}

// A fate says why a session is closed.
type fate uint8

const (
	ended fate = iota // for good
	left              // another process may have it
	idle              // left, but only if no call is in flight
	lost              // another process has it
)

// fateOfRelay returns what becomes of the session when its relay ends by itself. One that was
// to go on, and has not yet, may do so with the next request.
func (s *session) fateOfRelay() fate {
	s.mu.Lock()
	begun := s.version != ""
	s.mu.Unlock()
	if s.kept != nil && s.kept.Saved() && !begun {
		return left
	}
	return ended
}

// part says in the Store that the session is closed. Until it is said requests for it wait.
// The caller holds f.mu.
func (s *session) part(why fate) {
	if s.kept == nil || why == lost {
		return
	}
	s.kept.Part()
	if s.fate = why; why == ended {
		s.f.relays.Go(func() { s.kept.Leave(true) })
	}
}

// handOver lets another process take a session that was left, as its relay has ended: two
// processes of a server that has locks must not run at once.
func (s *session) handOver() {
	s.f.mu.Lock()
	why := s.fate
	s.f.mu.Unlock()
	if why == left || why == idle {
		s.kept.Leave(false)
	}
}

// leaveIdle leaves the session when no call is in flight, or ctx is done.
func (s *session) leaveIdle(ctx context.Context) {
	for s.awaitCalls(ctx); ctx.Err() == nil; s.awaitCalls(ctx) {
		if s.close("", idle) {
			return
		}
	}
	s.close("the proxy is shutting down", left)
}

// forget ends a session at its client's wish, and reports whether there was one.
func (f *Front) forget(ctx context.Context, id string, who Principal) (known bool, err error) {
	if s := f.find(id, who); s != nil {
		s.end("the client ended the session")
		return true, nil
	}
	if f.keeper == nil {
		return false, nil
	}
	return f.keeper.Forget(ctx, sessions.NewKey(id, who.ID))
}

// Recheck closes the sessions that another front has taken, which it could while this one
// did not show that it is alive. After an error it has to be called again.
func (f *Front) Recheck(ctx context.Context) error {
	kept := map[*sessions.Entry]*session{}
	f.mu.Lock()
	for _, s := range f.byID {
		if s.kept != nil {
			kept[s.kept] = s
		}
	}
	f.mu.Unlock()
	return sessions.Recheck(ctx, slices.Collect(maps.Keys(kept)), func(k *sessions.Entry) {
		kept[k].close("another front has the session now", lost)
	})
}

// routeHeader has what a balancer has chosen this front by, to open a session. The id of the
// session begins with it, so that the balancer can choose the same one by the id.
const routeHeader = "Attache-Route"

// frontHeader names the front that a balancer should send a request to which was refused with
// 503.
const frontHeader = "Attache-Front"

// misled answers a request that this front cannot take, for the session of a key or for a new
// one, and says which front can.
func (x *exchange) misled(id []byte, key sessions.Key, err error) {
	elsewhere := errors.Is(err, sessions.ErrElsewhere)
	if x.f.keeper != nil && (elsewhere || errors.Is(err, errDraining)) {
		front := x.f.keeper.Elsewhere(x.r.Context(), key)
		if front != "" {
			x.w.Header()[frontHeader] = []string{front}
		}
		if elsewhere {
			x.f.keeper.Misled(front)
		}
	}
	if !elsewhere {
		x.full(id, err)
		return
	}
	x.busy(id, "another front of attache has this session, or had it and has just died: try again later; if this goes on, the balancer in front of them must send the requests of a session to one of them")
}
