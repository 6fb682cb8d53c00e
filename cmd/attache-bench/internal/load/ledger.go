package load

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// A ledger records the messages sent and received.
type ledger struct {
	refused, unsure atomic.Int64 // sends that a limit refused, and sends with an unknown outcome

	mu       sync.Mutex
	teams    map[string][]teams.Ref // present members of each team
	next     int
	written  map[teams.Ref]bool // members that were written to
	sent     map[string]bool
	received map[string]int
}

func newLedger() *ledger {
	return &ledger{teams: map[string][]teams.Ref{}, written: map[teams.Ref]bool{}, sent: map[string]bool{}, received: map[string]int{}}
}

func (l *ledger) enter(team string, ref teams.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.teams[team] = append(l.teams[team], ref)
}

func (l *ledger) leave(team string, ref teams.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.teams[team] = slices.DeleteFunc(l.teams[team], func(r teams.Ref) bool { return r == ref })
}

// peer returns another member of a team, each in turn.
func (l *ledger) peer(team string, me teams.Ref) (teams.Ref, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.teams[team]
	for range all {
		l.next++
		if to := all[l.next%len(all)]; to != me {
			l.written[to] = true
			return to, true
		}
	}
	return teams.Ref{}, false
}

func (l *ledger) send(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[id] = true
}

func (l *ledger) receive(all []teams.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range all {
		l.received[m.ID]++
	}
}

// settle receives the messages that still wait, and compares sent and received messages.
func (w *world) settle(ctx context.Context) error {
	a, err := w.connect(w.direct, 1)
	if err != nil {
		return err
	}
	defer a.server.Close()
	l := w.ledger
	for ref := range l.written {
		for newest := int64(1); newest > 0; {
			err := answered(ctx, func() (err error) {
				if err = a.receive(ctx, ref); err == nil {
					newest, err = a.teams.Mail(ctx, ref)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	lost, twice := 0, 0
	for id := range l.sent {
		if l.received[id] == 0 {
			lost++
		}
	}
	for _, n := range l.received {
		twice += n - 1
	}
	fmt.Fprintf(w.o.Out, "Messages: %d sent, %d received, %d lost, %d received again; %d refused by limits, %d failed.\n\n",
		len(l.sent), len(l.received), lost, twice, l.refused.Load(), l.unsure.Load())
	if lost > 0 || int64(len(l.received)) > int64(len(l.sent))+l.unsure.Load() {
		return fmt.Errorf("%d messages were sent and %d received", len(l.sent), len(l.received))
	}
	return nil
}

// The limits to test. The one of a mailbox is that of package teams.
const (
	maxChildren = 10
	mailboxSize = 50
)

// limits tries to exceed the limits from all fronts at once.
func (w *world) limits(ctx context.Context, homes [][]*attache) error {
	claim := teams.Claim{Key: rand.Text(), Workspace: rand.Text(), Trust: sessionstate.Direct}
	store := func(n int) *teams.Store { return homes[n%len(homes)][0].teams }
	var target *teams.Session
	err := answered(ctx, func() (err error) {
		target, err = store(0).Attach(ctx, claim, teams.Attachment{})
		return err
	})
	if err != nil {
		return err
	}
	limits := teams.DefaultLimits()
	limits.MaxChildren, limits.SpawnEvery = maxChildren, 0
	created, err := count(ctx, 3*maxChildren, func(n int) error {
		_, _, err := store(n).Create(ctx, target.Ref, teams.Child{SpawnKey: fmt.Sprint(n), Key: rand.Text(), Token: rand.Text(), Message: "work"}, limits)
		return err
	})
	if err != nil || created != maxChildren {
		return fmt.Errorf("%d agents were started at once, and the limit is %d: %w", created, maxChildren, err)
	}
	arrived, err := count(ctx, mailboxSize+10, func(n int) error {
		claim := claim
		claim.Key = fmt.Sprint(claim.Key, n)
		from, err := store(n).Attach(ctx, claim, teams.Attachment{})
		if err == nil {
			_, err = store(n).Send(ctx, from.Ref, teams.Draft{To: target.ID, Body: rand.Text(), SendKey: "only"})
		}
		return err
	})
	if err != nil || arrived != mailboxSize {
		return fmt.Errorf("%d messages are in a mailbox, and the limit is %d: %w", arrived, mailboxSize, err)
	}
	fmt.Fprintf(w.o.Out, "Limits: of %d agents started at once %d began, of %d messages to one session %d were accepted.\n\n",
		3*maxChildren, created, mailboxSize+10, arrived)
	return nil
}

// count calls f n times at once, each until the database has answered, and returns the number
// of calls that no limit refused.
func count(ctx context.Context, n int, f func(int) error) (int, error) {
	var done atomic.Int64
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			switch err := answered(ctx, func() error { return f(i) }); {
			case err == nil:
				done.Add(1)
			case !isRefusal(err):
				errs[i] = err
			}
		})
	}
	all.Wait()
	return int(done.Load()), errors.Join(errs...)
}

// answered calls f until the database has answered.
func answered(ctx context.Context, f func() error) error {
	err := f()
	for errors.Is(err, teams.ErrUnavailable) && machine.Pause(ctx, 10*time.Millisecond) {
		err = f()
	}
	return err
}

// isRefusal reports whether a limit refused a request.
func isRefusal(err error) bool {
	var refused teams.Refusal
	return errors.As(err, &refused) && !errors.Is(err, teams.ErrUnavailable)
}
