package revive

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/proxy/internal/asks"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Policy is a proxy.Restart, which describes the fields.
type Policy struct {
	Name      string
	Hold      time.Duration
	Hang      time.Duration
	Notice    bool
	Quiet     func() bool
	Resumed   bool
	Retry     func(tool string) bool
	Unpaced   bool
	Wanted    func() bool // never nil
	Changed   func(method, before, after string)
	Restarted func(exit string, lost int, down time.Duration)
}

// A Relay has the methods of a session that its Supervisor needs.
type Relay interface {
	// Start starts a server and connects the link to it.
	Start(*Link) error
	// Replace replaces the link last, whose server has ended, by next. No frame is on its
	// way meanwhile. It returns how many calls were answered with an error. It does nothing
	// when ctx is done.
	Replace(ctx context.Context, last, next *Link, ending Ending) (lost int)
	// Send queues a message of attache's own.
	Send(to wire.Peer, m *wire.Message)
	// Awaits reports whether the call with the raw id has no answer; with nil, whether any
	// call to the server has none, except subscriptions, which may be silent.
	Awaits(id []byte) bool
}

// Options has what a Supervisor needs besides its policy.
type Options struct {
	Link LinkOptions  // Hold is taken from the policy
	Asks *asks.Table  // requests of attache's own
	Go   func(func()) // runs a function on a new goroutine, unless the session is over
	Log  *slog.Logger
}

// A Supervisor starts the server of a session again when it has ended, and records what
// that needs. Make one with New. Its methods may be called from any goroutine.
type Supervisor struct {
	policy Policy
	o      Options
	relay  Relay

	record   Record
	requests serverRequests
	listens  listens
	repeated repeatedCalls
	notice   atomic.Pointer[restart] // the restart that the model does not know yet
	byHand   chan struct{}           // receives from Restart

	// Used by Run only:
	pace pace
	died time.Time // when the last ready server ended; zero while one is ready
	lost int       // calls answered with an error since then
}

const defaultHold = 10 * time.Second

// New returns the supervisor of a session's server.
func New(relay Relay, p Policy, o Options) *Supervisor {
	if p.Hold <= 0 {
		p.Hold = defaultHold
	}
	v := &Supervisor{policy: p, o: o, relay: relay, byHand: make(chan struct{}, 1)}
	if p.Notice && p.Resumed {
		v.notice.Store(&restart{time.Now(), "the session with the server%s was opened again"})
	}
	return v
}

// Hold returns how long a line may wait for the next server.
func (v *Supervisor) Hold() time.Duration { return v.policy.Hold }

// MayRevive reports whether the server is started again if it ends now (R1, R3).
func (v *Supervisor) MayRevive() bool { return v.record.Armed() && v.policy.Wanted() }

// Run starts the server again each time that it has ended. It returns when the session is
// over, or must end because the server is not started again.
func (v *Supervisor) Run(ctx context.Context, l *Link) {
	for l != nil {
		if v.policy.Hang > 0 {
			watched := l // l may be the next link, or nil, when the function runs
			v.o.Go(func() { v.watchHang(ctx, watched) })
		}
		select {
		case <-l.Ended():
			l = v.revive(ctx, l)
		case <-ctx.Done():
			return
		}
	}
}

// revive starts the server again after that of last has ended, and tries again until that
// succeeds. It returns nil if the session is over, or must end.
func (v *Supervisor) revive(ctx context.Context, last *Link) *Link {
	for v.MayRevive() && !v.pace.GivenUp(time.Now()) {
		next := v.takeOver(ctx, last)
		if next == nil {
			return nil
		}
		err := v.bringUp(ctx, next)
		switch {
		case err == nil:
			return next
		case ctx.Err() != nil || !v.MayRevive():
			return nil
		case errors.Is(err, errOther):
			v.o.Log.Error("the server that was started again is another one than the client knows; the session ends", "err", err)
			return nil
		}
		v.o.Log.Warn("the server could not be started again", "err", err)
		last = next // it has what the client sent meanwhile, for the link after it
	}
	return nil
}

// takeOver replaces a link whose server has ended by a new one. It returns nil if the
// session ends meanwhile.
func (v *Supervisor) takeOver(ctx context.Context, last *Link) *Link {
	died := time.Now()
	// Replace needs the client's direction, which may wait for the server to read.
	last.CloseInput() // unblocks a write
	ending := last.stop()
	next := v.nextLink(last, ending, died)
	last.Gate.Close() // unblocks a writer that waits for room
	v.o.Asks.GiveUp(wire.Server)
	if v.policy.Notice {
		v.notice.Store(ending.restart(died))
	}
	if !last.ready.IsZero() { // otherwise the end of the one before it still counts
		v.died = died
		v.repeated.begin()
	}
	lost := make(chan int, 1)
	go func() { lost <- v.relay.Replace(ctx, last, next, ending) }()
	select {
	case n := <-lost:
		v.lost += n
		what := "the server has ended and is started again"
		if ending.lost {
			what = "the server has lost the session, and another one is opened"
		}
		v.o.Log.Warn(what, "exit", ending.Exit, "calls_lost", n, "crash_loop", v.pace.Down())
	case <-ctx.Done():
		return nil // Replace waits for a client that has stopped within a long line
	}
	// The client would show a question that nobody waits for (R15).
	for _, id := range v.requests.Orphan() {
		v.relay.Send(wire.Client, wire.NewNotification(wire.Server, "notifications/cancelled", cancelParams(id, "the server ended")))
	}
	return next
}

func (v *Supervisor) nextLink(last *Link, ending Ending, died time.Time) *Link {
	ordered := v.restartOrdered()
	// A server that has lost the session has not crashed: another session is opened at once.
	if !ordered && !v.policy.Unpaced && (!ending.lost || last.ready.IsZero()) {
		v.pace.Died(last.ready, died)
	}
	o := v.o.Link
	if o.Hold = v.policy.Hold; v.pace.Down() {
		o.Hold = 0 // calls are answered at once (R13)
	}
	next := NewLink(o, ending)
	if ordered {
		next.Gate.Want() // or await would wait for a frame if the server has ended cleanly
	}
	return next
}

func cancelParams(id []byte, why string) []byte {
	return append(append([]byte(`{"requestId":`), id...), `,"reason":"`+why+`"}`...)
}

// bringUp starts the server of a link, sends it the first messages, and then lets frames
// pass. If the last server ended cleanly, bringUp first waits until a frame needs the next
// one. If it crashed, the next one is started at once, even if the last one was not in use,
// because nothing measures when a message last passed (R4).
func (v *Supervisor) bringUp(ctx context.Context, l *Link) error {
	if !v.policy.Unpaced {
		if err := v.await(ctx, l); err != nil {
			return err
		}
	}
	if err := v.relay.Start(l); err != nil {
		return err
	}
	if err := v.replay(ctx, l); err != nil {
		l.stop()
		// What it still writes is handled before the next server is started (R2).
		select {
		case <-l.Ended():
		case <-ctx.Done():
		}
		return err
	}
	v.ready(ctx, l)
	return nil
}

// await waits until it is time to start the server of a link.
func (v *Supervisor) await(ctx context.Context, l *Link) error {
	if l.before.Clean() || v.pace.Down() {
		select {
		case <-l.Gate.wanted:
		case <-v.byHand:
			v.pace = pace{}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// This wait comes after the other: the delay began with the end of the last server.
	select {
	case <-time.After(v.pace.Delay(time.Now())):
	case <-v.byHand:
		v.pace = pace{}
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// ready lets frames pass to a server that has got its first messages.
func (v *Supervisor) ready(ctx context.Context, l *Link) {
	l.ready = time.Now()
	v.restartOrdered() // this start has fulfilled an order that came meanwhile
	if v.policy.Notice {
		v.notice.Store(l.before.restart(l.started))
	}
	down := l.ready.Sub(v.died)
	v.o.Log.Info("the server is up again", "down", down)
	if v.policy.Restarted != nil {
		v.policy.Restarted(l.before.Exit, v.lost, down)
	}
	v.died, v.lost = time.Time{}, 0
	open := func(lines []byte) []byte {
		lines = v.stillWanted(lines)
		l.show(lines)
		return lines
	}
	// On another goroutine, because Run must see if the server ends meanwhile. The end closes stdin.
	go l.Gate.Open(l.stdin(), open) // blocks while the server does not read
	v.o.Go(func() { v.compareLists(ctx) })
}

// stillWanted returns the lines without requests, and those whose requests have no answer.
func (v *Supervisor) stillWanted(lines []byte) (out []byte) {
	for line := range bytes.Lines(lines) {
		if _, wanted := isWanted(line, func(id []byte) bool { return v.o.Asks.Owns(id) || v.relay.Awaits(id) }); wanted {
			out = append(out, line...)
		}
	}
	return out
}

// Attentive reports whether calls of tools must be passed to Sent too: because some may be repeated, the
// next result gets a notice, or the first result ends the handshake.
func (v *Supervisor) Attentive() bool {
	return v.policy.Retry != nil || v.notice.Load() != nil || !v.record.Armed()
}

// Repeatable reports whether the line of a message may also be sent to the next server.
func (v *Supervisor) Repeatable(m *wire.Message) bool { return Repeatable(m, v.policy.Retry) }

// Sent records a message on its way to the server. keeps is that of [Record.Sent].
func (v *Supervisor) Sent(c *relayed.Call, m *wire.Message, keeps bool) {
	if take := v.record.Sent(m, keeps); take != nil { // innermost, so it sees the reply as the server wrote it
		onReply(c, take)
	}
	if m.MethodIs("notifications/cancelled") {
		v.listens.End(m.Get("params", "requestId").Raw)
	}
	switch {
	case m.Kind() != wire.Request:
	case v.notice.Load() != nil && m.MethodIs("tools/call"):
		c.OnReply(v.putNotice)
	case m.MethodIs("subscriptions/listen"):
		v.listens.Begin(m.ID())
		onReply(c, func(reply *wire.Message) { v.listens.End(reply.ID()) })
	}
}

// Resends prepares a call whose line is sent to another server than that of Sent.
func (v *Supervisor) Resends(c *relayed.Call) {
	if v.policy.Notice {
		c.OnReply(v.putNotice)
	}
}

func onReply(c *relayed.Call, take func(reply *wire.Message)) {
	c.OnReply(func(_ context.Context, reply *wire.Message) error {
		take(reply)
		return nil
	})
}

// putNotice adds the notice about a restart to the result of a tool, once (R10). A client
// may show only the structuredContent of a result that has it, so putNotice skips such a
// result.
func (v *Supervisor) putNotice(_ context.Context, reply *wire.Message) error {
	at := v.notice.Load()
	if at == nil || v.policy.Quiet != nil && v.policy.Quiet() {
		return nil
	}
	if !reply.Plain() || !reply.Get("result", "content").IsArray() || reply.Get("result", "structuredContent").Exists() {
		return nil
	}
	if !v.notice.CompareAndSwap(at, nil) { // another result has got it, or there was another restart
		return nil
	}
	err := reply.Prepend(at.notice(v.policy.Name), "result", "content")
	if err != nil {
		v.notice.CompareAndSwap(nil, at)
	}
	return err
}

// Repeats reports whether a call that the last server may have run is sent to the next
// one (R8): once, and not if an equal call was also running when the previous server ended
// (R14). Subscriptions are requested again each time (R6). Relay.Replace calls it for each
// call in flight whose line was kept.
func (v *Supervisor) Repeats(id, line []byte, again bool) bool {
	m := wire.Parse(wire.Client, line)
	often := v.repeated.add(m) // in each case, for the next end
	switch {
	case v.listens.Again(id):
		return true
	case again || often:
		return false
	}
	v.repeated.mute(m)
	return true
}

// KeepsBack records a request or notification of the server, and reports whether to drop
// it. less is the raw id of a subscription to which this server grants less than the last
// one, which the client must learn (R6).
func (v *Supervisor) KeepsBack(m *wire.Message) (drop bool, less []byte) {
	switch m.Kind() {
	case wire.Request:
		if err := v.requests.Asked(m, v.o.Asks.NextID); err != nil {
			v.o.Log.Warn("a request of the server's was dropped: its id is that of one whose server has ended", "err", err)
			return true, nil
		}
	case wire.Notification:
		v.listens.Ended(m)
		if err := v.requests.Cancelled(m); err != nil {
			v.o.Log.Warn("a cancellation of the server's was dropped: the id of its request could not be replaced", "err", err)
			return true, nil
		}
		if v.repeated.isMuted(m, v.relay.Awaits) {
			return true, nil
		}
		return v.listens.Granted(m)
	}
	return false, nil
}

// LeftBehind records a reply of the client, and reports whether it is for a server that has
// ended.
func (v *Supervisor) LeftBehind(m *wire.Message) bool { return v.requests.Answered(m) }

// LessParams returns the params of notifications/cancelled for a subscription to which the
// server grants less than before.
func LessParams(id []byte) []byte {
	return cancelParams(id, "the server was restarted and grants less")
}
