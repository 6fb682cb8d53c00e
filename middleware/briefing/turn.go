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

// askAgain is how long a session is skipped after another process had its turn, because
// [sessionstate.Turns] do not report whether that turn was spent. So in every process except the
// one that gave the briefing, calls cost one look-up a second, which also records the use of the
// session.
const askAgain = time.Second

// sweepTime bounds the removal of old turns.
const sweepTime = 10 * time.Second

// A turn is the turn of one session, in this process and among all processes of the user.
type turn struct {
	c       *Conn
	s       *session
	key     string // in Options.Turns
	userKey string // in Options.UserTurns; "" if other processes cannot have the session
	tenant  string // for UserTurns

	// Keys in Options.UserTurns for instructions, see instructionsTurn; "" for none.
	serverKey  string // counts the briefings of this server
	processKey string // the turn of this server in this process of the client
}

// turnOf returns the turn of s. suffix is for a channel with a turn of its own.
//
// Among the user's processes, a turn is for a session and a text: two servers may have different
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
			if c.o.Results.Client().ByDirectory {
				process += " " + policy.Digest(c.o.Directory)
			}
			t.userKey = "process " + process + suffix + "\n" + policy.Digest(s.text)
		}
	}
	return t
}

// instructionsTurn returns the turn for the server's instructions, which the client forgets when the
// process of the server ends. When the client resumes the session in another process, the server that
// gave the briefing gives it again. It does so once in each process of the client, or each time it is
// started if that process is unknown, or if only the process identifies the session: such a process may
// have several sessions.
func (c *Conn) instructionsTurn(view *sessionstate.Context, s *session, suffix string) turn {
	t := c.turnOf(view, s, suffix)
	if t.userKey == "" || c.o.Server == "" {
		return t
	}
	t.serverKey = t.userKey + "\nserver " + policy.Digest(c.o.Server)
	if process := c.o.ClientProcess(); process != "" && view.Session.Source != sessionstate.None {
		t.processKey = t.serverKey + "\nprocess " + process
	}
	return t
}

// isShared reports whether other processes may have the session too, and UserTurns can be asked.
func (t turn) isShared() bool {
	return t.userKey != "" && !t.s.unshared.Load()
}

// take asks for the turn, suspends reply meanwhile, and then calls then. why is "" if this
// process has the turn and must settle it, else the reason.
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
	taken := t.ask(func(ctx context.Context, turns sessionstate.Turns) (err error) {
		ours, unseenByAll, err = turns.Take(ctx, t.userKey, o.TTL)
		if err == nil && !ours && t.serverKey != "" {
			ours, err = t.takeAgain(ctx, turns)
		}
		return err
	})
	return t.c.await(call, reply, taken, func(reply *wire.Message, err error) error {
		switch {
		case err != nil && t.s.refused.Load(): // most likely the other process has given the briefing
			t.c.pause(t.s, retryAfter)
			return t.giveBack(reply, unseen, then)
		case err != nil:
			t.stopSharing(err)
			return then(reply, unseen, "")
		case !ours:
			t.sweep()
			return t.giveBack(reply, unseenByAll, then)
		}
		return then(reply, unseenByAll, "")
	})
}

// giveBack opens the turn of this process again, and calls then, because another process has the turn.
func (t turn) giveBack(reply *wire.Message, unseen int, then func(*wire.Message, int, string) error) error {
	err := t.c.shared.o.Turns.Settle(context.Background(), t.key, sessionstate.Open)
	return errors.Join(err, then(reply, unseen, turnOfOther))
}

// takeAgain reports whether this server may give the briefing again: an earlier process of the server
// gave it, and none did for this process of the client. [sessionstate.Turns] count turns that were
// settled as Unseen, so the count of serverKey is the number of briefings. takeAgain needs only the
// count, so it does not settle serverKey.
func (t turn) takeAgain(ctx context.Context, turns sessionstate.Turns) (mine bool, err error) {
	ttl := t.c.shared.o.TTL
	_, times, err := turns.Take(ctx, t.serverKey, ttl)
	if err != nil || times == 0 || t.processKey == "" {
		return times > 0, err
	}
	mine, _, err = turns.Take(ctx, t.processKey, ttl)
	return mine, err
}

// keep marks serverKey and processKey as used until the connection ends. Without it they would be
// forgotten in a session that lasts longer than TTL: calls of other servers use userKey, but only this
// process knows these two keys.
func (t turn) keep() {
	m, every := t.c.o.Memory, t.c.shared.o.TTL/4
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keep != nil {
		m.keep.Stop() // another session of the connection
	}
	if m.closed {
		return
	}
	m.keep = time.AfterFunc(every, func() {
		<-t.ask(func(ctx context.Context, turns sessionstate.Turns) error {
			err := turns.Settle(ctx, t.serverKey, sessionstate.Open)
			if t.processKey != "" {
				err = errors.Join(err, turns.Settle(ctx, t.processKey, sessionstate.Open))
			}
			return err
		}).done
		t.keep()
	})
}

// sweep removes old turns of the tenant from UserTurns, at most once a minute. It runs when no reply waits for these
// turns, because there may be only one connection to them. If it fails, a later one succeeds.
func (t turn) sweep() {
	if !t.c.shared.sessions.sweepIsDue(t.tenant) {
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

// settle stores how the turn has ended. The reply waits for that, because a client that has
// received it may call another server immediately.
func (t turn) settle(call *middleware.Call, reply *wire.Message, outcome sessionstate.Outcome) error {
	o := &t.c.shared.o
	err := o.Turns.Settle(context.Background(), t.key, outcome)
	if !t.isShared() {
		return err
	}
	settled := t.ask(func(ctx context.Context, turns sessionstate.Turns) error {
		err := turns.Settle(ctx, t.userKey, outcome)
		if t.processKey != "" {
			err = errors.Join(err, turns.Settle(ctx, t.processKey, outcome))
		}
		if t.serverKey != "" && outcome == sessionstate.Seen {
			err = errors.Join(err, turns.Settle(ctx, t.serverKey, sessionstate.Unseen))
		}
		return err
	})
	return errors.Join(err, t.c.await(call, reply, settled, func(_ *wire.Message, err error) error {
		if err != nil {
			t.stopSharing(err)
			return nil
		}
		if t.serverKey != "" && outcome == sessionstate.Seen {
			t.keep()
		}
		t.sweep()
		return nil
	}))
}

// pause skips the session's calls for d, or until the end of a longer pause.
func (c *Conn) pause(s *session, d time.Duration) {
	all := &c.shared.sessions
	all.mu.Lock()
	defer all.mu.Unlock()
	if to := time.Now().Add(d); to.After(s.pausedTo) {
		s.pausedTo = to
	}
}

// stopSharing stops the use of UserTurns for the session. Each server may then give the briefing, which
// is better than no briefing.
func (t turn) stopSharing(err error) {
	t.c.shared.warnings.once("the briefing may come once a server, because the database that the servers of a session share could not be used; see docs/troubleshooting.md, or set briefing.once_per to server", "err", err)
	t.s.unshared.Store(true)
}

// A lookup runs in a goroutine of its own. err is its result and may be read after done is closed.
type lookup struct {
	done chan struct{}
	err  error
}

// ask starts f with UserTurns. If opening them and f take longer than Options.Wait, the lookup
// fails, and variables that f writes must not be read.
func (t turn) ask(f func(context.Context, sessionstate.Turns) error) *lookup {
	o, l := &t.c.shared.o, &lookup{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		ctx, cancel := context.WithTimeout(context.Background(), o.Wait)
		defer cancel()
		result := make(chan error, 1)
		go func() {
			turns, err := o.UserTurns(t.tenant)
			if err == nil {
				err = f(ctx, turns)
			}
			result <- err
		}()
		select {
		case l.err = <-result:
		case <-ctx.Done():
			l.err = ctx.Err()
		}
	}()
	return l
}

// await suspends reply until l is done, and then calls then with its error. A reply that cannot
// be suspended, because the session is ending, waits in the resume function. l has its own limit.
func (c *Conn) await(call *middleware.Call, reply *wire.Message, l *lookup, then func(reply *wire.Message, err error) error) error {
	call.Suspend(reply, l.done, 2*c.shared.o.Wait, func(_ context.Context, reply *wire.Message) error {
		<-l.done
		return then(reply, l.err)
	})
	return nil
}
