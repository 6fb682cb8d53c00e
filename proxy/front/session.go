package front

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/internal/inbox"
	"github.com/attache-mcp/attache/proxy/front/internal/mirrored"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A session is a client's session: a relay, the calls that wait for it, and the streams
// that its messages go to.
type session struct {
	f    *Front
	log  *slog.Logger
	id   string // what the client calls it; "" in revision 2026-07-28
	key  string // where it is in byKey; "" in the revisions before
	who  Principal
	seen func(who Principal, credential string)
	in   *inbox.Inbox
	stop context.CancelFunc // ends the relay whatever it waits for

	kept   *sessions.Entry // nil without a Store, and in revision 2026-07-28
	fate   fate            // guarded by f.mu
	params mirrored.Params
	asked  callid.Unread // ids of requests of the server's that the client has not answered

	mu        sync.Mutex
	calls     map[string]*call // by id
	tokens    map[string]*call // by progress token
	gets      []*stream        // open GET streams, the newest last
	pending   [][]byte         // messages that no stream took yet
	waiting   int              // bytes of pending
	dropped   bool             // a message was dropped, and logged
	version   string           // the revision that initialize agreed on
	over      bool
	abandoned map[string]struct{} // ids of cancelled calls whose replies may still come
	number    uint64              // of the last call
	users     int                 // HTTP requests that are being served
	used      time.Time           // when the last of them ended
	timer     *time.Timer         // ends an idle session; when that is over, stops its relay if it stalls
	settled   chan struct{}
}

// A call is a request of the client's that waits for its reply.
type call struct {
	id         string // as callKey has it
	request    *http.Request
	raw        []byte // as the client wrote it
	token      string // "" for none
	stream     *stream
	number     uint64 // of the session's calls
	initialize bool
	recorded   func(reply *wire.Message) // records what the reply agrees to; nil for nothing
	listsTools bool                      // in a revision that has annotations
	listens    bool                      // it is a subscription, which takes its own notifications alone
}

// errOver is what a message meets that comes to a session that is over.
var errOver = inbox.ErrClosed

// open makes a session and starts its relay. The caller holds f.mu and has taken a
// place among the limits for it.
func (f *Front) open(id string, o Opening) (*session, error) {
	s := &session{
		f: f, id: id, who: o.Who, in: inbox.New(),
		calls: map[string]*call{}, tokens: map[string]*call{}, used: time.Now(),
	}
	o.Request, o.Label = s.request, s.label()
	if id != "" && f.keeper != nil {
		s.kept = f.keeper.New(sessions.NewKey(id, o.Who.ID))
		o.Session = s.kept.Key.ID
	}
	relay, err := f.o.Open(o)
	if err != nil {
		return nil, err
	}
	s.seen, s.log = relay.Seen, cmp.Or(relay.Options.Log, f.log.With("client", s.label()))
	s.mu.Lock()
	s.timer = time.AfterFunc(f.o.Idle, s.expire) // which may come at once
	s.mu.Unlock()
	ro := relay.Options
	ro.ClientLines, ro.ClientOut = s.in, &output{s: s}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	f.relays.Add(1)
	go s.run(ctx, ro, relay.Closed)
	return s, nil
}

// request returns the HTTP request of the call with a raw id, nil if there is none.
func (s *session) request(id []byte) *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.callLocked(id); c != nil {
		return c.request
	}
	return nil
}

// run is the life of the relay.
func (s *session) run(ctx context.Context, o proxy.Options, closed func()) {
	defer s.f.relays.Done()
	defer s.stop()
	err := proxy.Run(ctx, o)
	if closed != nil {
		closed()
	}
	text := "the session is over"
	if err != nil {
		text += ": " + err.Error()
	}
	s.close(text, s.fateOfRelay())
	s.mu.Lock()
	s.timer.Stop() // which would keep the session's memory
	s.mu.Unlock()
	s.handOver()
}

// expire ends a session that nobody has used for long enough, and else looks again when
// that may be so.
func (s *session) expire() {
	s.mu.Lock()
	left := s.f.o.Idle
	if s.users == 0 {
		left -= time.Since(s.used)
	}
	if left > 0 && !s.over {
		s.timer.Reset(left)
	}
	idle := left <= 0 && !s.over
	s.mu.Unlock()
	if idle {
		s.log.Info("a session that nobody used was ended")
		s.end("the session was idle for too long")
	}
}

// endUnused ends a session soon, unless its client comes back.
func (s *session) endUnused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used
	time.AfterFunc(restTime, func() {
		s.mu.Lock()
		unused := s.users == 0 && s.used.Equal(used)
		s.mu.Unlock()
		if unused {
			s.end("the client left while the session was opened")
		}
	})
}

// label names the session in the log without giving its id away.
func (s *session) label() string {
	if s.id != "" {
		return s.id[:8]
	}
	return "2026-07-28"
}

// use notes that an HTTP request uses the session, until release. It reports false if
// the session is over.
func (s *session) use() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.users++
	return true
}

// crowded reports whether the session has more requests than one may have.
func (s *session) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users > s.f.o.Limits.PerSession()+maxGets
}

func (s *session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.used = time.Now()
	}
}

// end takes the session out of the tables and ends its relay, which it does not wait
// for. Calls in flight are answered with text.
func (s *session) end(text string) { s.close(text, ended) }

func (s *session) close(text string, why fate) (closed bool) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return s.closeLocked(text, why)
}

// closeLocked closes the session for the reason why, unless it is closed. It reports false if
// calls keep it open. The caller holds f.mu.
func (s *session) closeLocked(text string, why fate) (closed bool) {
	s.mu.Lock()
	if s.over || why == idle && len(s.calls) > 0 {
		defer s.mu.Unlock()
		return s.over
	}
	s.over = true
	s.f.o.Limits.Close(s.who.ID)
	s.timer.Stop()
	gets := s.gets
	for _, c := range s.calls {
		s.answerLocked(c, text)
	}
	s.gets, s.pending = nil, nil
	s.mu.Unlock()
	s.f.removeLocked(s)
	s.part(why)
	s.in.Close()
	s.stopStalled(-1)
	for _, t := range gets {
		t.close()
	}
	return true
}

// stallTime is how long the relay of a session that is over may read nothing.
const stallTime = 1500 * time.Millisecond

// stopStalled stops a relay that does not come to the end of its input, as its upstream does
// not read. before is how much of the input was left stallTime ago.
func (s *session) stopStalled(before int) {
	left := s.in.Left()
	switch left {
	case 0:
	case before:
		s.stop()
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.timer = time.AfterFunc(stallTime, func() { s.stopStalled(left) })
	}
}

// answerLocked answers a call with an error of attache's own. The caller holds s.mu.
func (s *session) answerLocked(c *call, text string) {
	reply := wire.ErrorReply(c.raw, wire.CodeInternalError, text).Frame()
	closes := s.dropLocked(c)
	c.stream.force(item{data: reply, final: closes, failed: true}, closes)
}

// awaitCalls returns when no call is in flight, or ctx is done.
func (s *session) awaitCalls(ctx context.Context) {
	s.mu.Lock()
	if len(s.calls) == 0 || s.over {
		s.mu.Unlock()
		return
	}
	if s.settled == nil {
		s.settled = make(chan struct{})
	}
	settled := s.settled
	s.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}

// settleLocked tells who waits in awaitCalls. The caller holds s.mu.
func (s *session) settleLocked() {
	if s.settled != nil && len(s.calls) == 0 {
		close(s.settled)
		s.settled = nil
	}
}

// add enters the calls of a message before it is sent. It reports false, and enters
// none, if an id or a progress token of them is in use.
func (s *session) add(calls []*call) (added bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false, errOver
	}
	for i, c := range calls {
		if slices.ContainsFunc(calls[:i], func(other *call) bool { return other.id == c.id }) || s.calls[c.id] != nil || c.token != "" && s.tokens[c.token] != nil {
			return false, nil
		}
	}
	for _, c := range calls {
		s.calls[c.id] = c
		c.stream.calls++
		s.number++
		c.number = s.number
		if c.token != "" {
			s.tokens[c.token] = c
		}
	}
	if t := calls[0].stream; t.events && s.getLocked() == nil {
		s.deliverPendingLocked(t)
	}
	return true, nil
}

// dropLocked takes a call out of the table, and reports whether its stream has no other.
// The caller holds s.mu.
func (s *session) dropLocked(c *call) (closes bool) {
	delete(s.calls, c.id)
	if c.token != "" && s.tokens[c.token] == c {
		delete(s.tokens, c.token)
	}
	s.settleLocked()
	c.stream.calls--
	return c.stream.calls <= 0
}
