//go:build linux

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

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// A ledger knows what was sent and received.
type ledger struct {
	refused, unsure atomic.Int64 // sends that a limit refused, and of which it is not known

	mu       sync.Mutex
	teams    map[string][]teams.Ref // that can be written to
	next     int
	all      map[teams.Ref]bool // that were written to
	sent     map[string]bool
	received map[string]int
}

func newLedger() *ledger {
	return &ledger{teams: map[string][]teams.Ref{}, all: map[teams.Ref]bool{}, sent: map[string]bool{}, received: map[string]int{}}
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

// peer returns another session of a team, each in turn.
func (l *ledger) peer(team string, me teams.Ref) (teams.Ref, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.teams[team]
	for range all {
		l.next++
		if to := all[l.next%len(all)]; to != me {
			l.all[to] = true
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

// settle receives what still waits, and compares what was sent with what was received.
func (w *world) settle(ctx context.Context, a *attache) error {
	l := w.ledger
	for ref := range l.all {
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

// The limits that are tried, as package teams has that of a mailbox.
const (
	childrenAllowed = 10
	mailboxHolds    = 50
)

// limits tries to exceed limits from all fronts at once.
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
	limits.MaxChildren, limits.SpawnEvery = childrenAllowed, 0
	created, err := count(ctx, 3*childrenAllowed, func(n int) error {
		_, _, err := store(n).Create(ctx, target.Ref, teams.Child{SpawnKey: fmt.Sprint(n), Key: rand.Text(), Token: rand.Text(), Message: "work"}, limits)
		return err
	})
	if err != nil || created != childrenAllowed {
		return fmt.Errorf("%d agents were started at once, and the limit is %d: %w", created, childrenAllowed, err)
	}
	arrived, err := count(ctx, mailboxHolds+10, func(n int) error {
		claim := claim
		claim.Key = fmt.Sprint(claim.Key, n)
		from, err := store(n).Attach(ctx, claim, teams.Attachment{})
		if err == nil {
			_, err = store(n).Send(ctx, from.Ref, teams.Draft{To: target.ID, Body: rand.Text(), SendKey: "only"})
		}
		return err
	})
	if err != nil || arrived != mailboxHolds {
		return fmt.Errorf("%d messages are in a mailbox, and the limit is %d: %w", arrived, mailboxHolds, err)
	}
	fmt.Fprintf(w.o.Out, "Limits: of %d agents started at once %d began, of %d messages to one session %d were accepted.\n\n",
		3*childrenAllowed, created, mailboxHolds+10, arrived)
	return nil
}

// count does something n times at once, each until the database has answered, and returns how
// often no limit refused it.
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

// answered runs f again until the database has answered.
func answered(ctx context.Context, f func() error) error {
	err := f()
	for errors.Is(err, teams.ErrUnavailable) && pause(ctx, 10*time.Millisecond) {
		err = f()
	}
	return err
}

// isRefusal reports whether a limit refused a request.
func isRefusal(err error) bool {
	var refused teams.Refusal
	return errors.As(err, &refused) && !errors.Is(err, teams.ErrUnavailable)
}
