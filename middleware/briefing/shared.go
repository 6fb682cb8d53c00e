package briefing

import (
	"context"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// askAgain is how long a session is left alone whose turn another process has, or had: a
// [sessionstate.Store] does not say which. So the calls of all processes but the one that
// gave the briefing cost a look-up a second, and the use of the session is noted.
const askAgain = time.Second

// isShared reports whether other processes may have view's session too, and can be
// asked.
func (b *Briefing) isShared(view *sessionstate.Context) bool {
	if b.o.Shared == nil || view.Session.Source == sessionstate.None {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.alone
}

// sharedKey is the key of the turn to say text in a session. Two servers may have
// different things to say, and whoever knows the session alone cannot spend the turn.
func sharedKey(view *sessionstate.Context, text string) string {
	return view.Session.Value + "\n" + policy.Digest(text)
}

// takeShared asks the shared store for the turn that this reply has in this process.
func (b *Briefing) takeShared(call *middleware.Call, view *sessionstate.Context, s *session, t tool, reply *wire.Message) error {
	b.mu.Lock()
	first := !s.asked
	s.asked = true
	b.mu.Unlock()
	var mine bool
	taken := within(b.o.Wait, func(ctx context.Context) error {
		store, err := b.o.Shared()
		if err == nil && first {
			_, err = store.Sweep(ctx, b.o.TTL)
		}
		if err == nil {
			mine, err = store.Take(ctx, sharedKey(view, s.text))
		}
		return err
	})
	return b.await(call, reply, taken, func(reply *wire.Message, err error) error {
		switch {
		case err != nil:
			b.goAlone(err)
		case !mine:
			b.leaveAlone(s)
			skip(call, "it is another server's turn in this session, or was")
			return b.o.Store.Settle(context.Background(), view.Session.Value, sessionstate.Open)
		}
		return b.give(call, view, s, t, reply)
	})
}

// settleShared says in the shared store what became of the turn, before the reply
// goes: whoever has seen it may ask the next server at once.
func (b *Briefing) settleShared(call *middleware.Call, view *sessionstate.Context, s *session, o sessionstate.Outcome, reply *wire.Message) error {
	if !b.isShared(view) {
		return nil
	}
	settled := within(b.o.Wait, func(ctx context.Context) error {
		store, err := b.o.Shared()
		if err == nil {
			err = store.Settle(ctx, sharedKey(view, s.text), o)
		}
		return err
	})
	return b.await(call, reply, settled, func(_ *wire.Message, err error) error {
		if err != nil {
			b.goAlone(err)
		}
		return nil
	})
}

// leaveAlone has the session's calls pass for a while.
func (b *Briefing) leaveAlone(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.again = b.o.Now().Add(askAgain)
}

// goAlone does without the shared store from here on: the briefing may come once a
// server, which is better than not at all.
func (b *Briefing) goAlone(err error) {
	b.warnOnce("the briefing may come once a server, as what the servers of a session share could not be used; see docs/troubleshooting.md, or set briefing.once_per to server", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alone = true
}

// An aside is something done beside the messages. err is what came of it, once over is
// closed.
type aside struct {
	over chan struct{}
	err  error
}

// within does f beside the messages. If f takes longer than limit that is the error, and
// what f leaves behind is not to be read.
func within(limit time.Duration, f func(context.Context) error) *aside {
	a := &aside{over: make(chan struct{})}
	go func() {
		defer close(a.over)
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- f(ctx) }()
		select {
		case a.err = <-done:
		case <-ctx.Done():
			a.err = ctx.Err()
		}
	}()
	return a
}

// await holds reply back until a is over, and then calls then with it. What cannot be
// held back, as the session is ending, waits here; a has a limit of its own.
func (b *Briefing) await(call *middleware.Call, reply *wire.Message, a *aside, then func(reply *wire.Message, err error) error) error {
	call.Suspend(reply, a.over, 2*b.o.Wait, func(_ context.Context, reply *wire.Message) error {
		<-a.over
		return then(reply, a.err)
	})
	return nil
}
