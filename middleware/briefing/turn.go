package briefing

import (
	"context"
	"errors"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// askAgain is how long a session is skipped after another process had its turn:
// [sessionstate.Turns] do not say whether that turn was spent. So the calls of every process
// except the one that gave the briefing cost one look-up a second, and the use of the session is
// recorded.
const askAgain = time.Second

// sweepTime is how long old turns are swept, beside everything else.
const sweepTime = 10 * time.Second

// A turn is the turn of one session, in this process and among all processes of the user.
type turn struct {
	c       *Conn
	s       *session
	key     string // in Options.Turns
	userKey string // in Options.UserTurns; "" if other processes cannot have the session
	tenant  string // for UserTurns
}

// turnOf returns the turn of s. suffix separates the turn of one channel.
//
// Among the user's processes the turn also belongs to the text: two servers may have different
// policies, and a process that knows only the session cannot spend the turn.
func (c *Conn) turnOf(view *sessionstate.Context, s *session, suffix string) turn {
	t := turn{c: c, s: s, key: view.Session.Value + s.window + suffix}
	if view.Principal != nil {
		t.tenant = view.Principal.Tenant
	}
	switch {
	case c.shared.o.UserTurns == nil:
	case view.Session.Source != sessionstate.None:
		t.userKey = t.key + "\n" + policy.Digest(s.text)
	case c.o.Results.Client().ByProcess:
		if process := c.o.ClientProcess(); process != "" {
			t.userKey = "process " + process + suffix + "\n" + policy.Digest(s.text)
		}
	}
	return t
}

// isShared reports whether other processes may have the session too, and can be asked.
func (t turn) isShared() bool {
	all := &t.c.shared.sessions
	all.mu.Lock()
	defer all.mu.Unlock()
	return t.userKey != "" && !all.alone
}

// take asks for the turn, holds reply back meanwhile, and then calls then with the result: why
// is "" if this process has the turn, and must settle it.
func (t turn) take(call *middleware.Call, reply *wire.Message, then func(reply *wire.Message, unseen int, why string) error) error {
	o := &t.c.shared.o
	mine, unseen, err := o.Turns.Take(context.Background(), t.key, 0)
	switch {
	case err != nil || !mine:
		return errors.Join(err, then(reply, unseen, "it is another response's turn"))
	case !t.isShared():
		return then(reply, unseen, "")
	}
	var ours bool
	var unseenByAll int
	taken := startLookup(o.Wait, func(ctx context.Context) error {
		turns, err := o.UserTurns(t.tenant)
		if err == nil {
			ours, unseenByAll, err = turns.Take(ctx, t.userKey, o.TTL)
		}
		return err
	})
	return t.c.await(call, reply, taken, func(reply *wire.Message, err error) error {
		switch {
		case err != nil:
			t.c.goAlone(err)
			return then(reply, unseen, "")
		case !ours:
			t.sweep()
			err := o.Turns.Settle(context.Background(), t.key, sessionstate.Open)
			return errors.Join(err, then(reply, unseenByAll, "it is another server's turn in this session, or was"))
		}
		return then(reply, unseenByAll, "")
	})
}

// sweep forgets old turns that the user's processes share, once a session. It runs when no reply
// waits for these turns any more: there may be one connection to them. If it fails, they are as
// good as before, and another session sweeps.
func (t turn) sweep() {
	all := &t.c.shared.sessions
	all.mu.Lock()
	swept := t.s.swept
	t.s.swept = true
	all.mu.Unlock()
	if swept {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
		defer cancel()
		if turns, err := t.c.shared.o.UserTurns(t.tenant); err == nil {
			_, _ = turns.Sweep(ctx, t.c.shared.o.TTL)
		}
	}()
}

// settle reports how the turn has ended. The reply waits for that, because a client that has
// seen it may call the next server at once.
func (t turn) settle(call *middleware.Call, reply *wire.Message, outcome sessionstate.Outcome) error {
	o := &t.c.shared.o
	err := o.Turns.Settle(context.Background(), t.key, outcome)
	if !t.isShared() {
		return err
	}
	settled := startLookup(o.Wait, func(ctx context.Context) error {
		turns, err := o.UserTurns(t.tenant)
		if err == nil {
			err = turns.Settle(ctx, t.userKey, outcome)
		}
		return err
	})
	return errors.Join(err, t.c.await(call, reply, settled, func(_ *wire.Message, err error) error {
		if err != nil {
			t.c.goAlone(err)
			return nil
		}
		t.sweep()
		return nil
	}))
}

// leaveAlone skips the session's calls for askAgain.
func (c *Conn) leaveAlone(s *session) {
	all := &c.shared.sessions
	all.mu.Lock()
	defer all.mu.Unlock()
	s.again = c.shared.o.Now().Add(askAgain)
}

// goAlone stops the use of the user's turns, unless Options.AskAgain is set: the briefing may then
// come once for each server, which is better than no briefing.
func (c *Conn) goAlone(err error) {
	c.shared.warnings.once("the briefing may come once a server, as what the servers of a session share could not be used; see docs/troubleshooting.md, or set briefing.once_per to server", err)
	all := &c.shared.sessions
	all.mu.Lock()
	defer all.mu.Unlock()
	all.alone = !c.shared.o.AskAgain
}

// A lookup is work that runs while other messages pass. err is its result after done is closed.
type lookup struct {
	done chan struct{}
	err  error
}

// startLookup runs f in a goroutine of its own. If f takes longer than limit, that is the error,
// and what f writes must not be read.
func startLookup(limit time.Duration, f func(context.Context) error) *lookup {
	l := &lookup{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- f(ctx) }()
		select {
		case l.err = <-result:
		case <-ctx.Done():
			l.err = ctx.Err()
		}
	}()
	return l
}

// await suspends reply until l is done, and then calls then with its error. A reply that cannot
// be suspended, because the session is ending, waits here; l has a limit of its own.
func (c *Conn) await(call *middleware.Call, reply *wire.Message, l *lookup, then func(reply *wire.Message, err error) error) error {
	call.Suspend(reply, l.done, 2*c.shared.o.Wait, func(_ context.Context, reply *wire.Message) error {
		<-l.done
		return then(reply, l.err)
	})
	return nil
}
