package teams_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/teams"
)

// A bench has a store, its clock, and helpers for tests.
type bench struct {
	*testing.T
	*teams.Store
	mu    sync.Mutex
	clock time.Time
	made  int
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clock
}

// pass advances the clock.
func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(d)
}

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) refused(err error, want string) {
	b.Helper()
	var refusal teams.Refusal
	if !errors.As(err, &refusal) || refusal.Error() != want {
		b.Fatalf("got the error %v, want the refusal %q", err, want)
	}
}

// person registers a session of a person.
func (b *bench) person(workspace, trust string) teams.Ref {
	b.Helper()
	b.made++
	return b.claim(teams.Claim{Key: fmt.Sprint("key ", b.made), Workspace: workspace, Trust: trust}).Ref
}

func (b *bench) claim(c teams.Claim) *teams.Session {
	b.Helper()
	s, err := b.Attach(b.Context(), c, attachment)
	b.check(err)
	return s
}

var attachment = teams.Attachment{Instance: "one", Server: "git", Host: "here", PID: 1}

// child creates a child that keeps running, and waits for the rate limit.
func (b *bench) child(parent teams.Ref, trust string) teams.Ref {
	b.Helper()
	b.pass(time.Second)
	b.made++
	s, _, err := b.Create(b.Context(), parent, b.newChild(trust), teams.DefaultLimits())
	b.check(err)
	return s.Ref
}

func (b *bench) newChild(trust string) teams.Child {
	b.made++
	key := fmt.Sprint("child ", b.made)
	return teams.Child{Title: "Review cart", Agent: "reviewer", Trust: trust, Message: "look", Key: key, Token: "token of " + key}
}

func (b *bench) session(ref teams.Ref) *teams.Session {
	b.Helper()
	s, err := b.Session(b.Context(), ref)
	b.check(err)
	return s
}

// write sends a message and waits for the limits on messages.
func (b *bench) write(from, to teams.Ref, body string) {
	b.Helper()
	b.pass(11 * time.Second)
	_, err := b.Send(b.Context(), from, teams.Draft{To: to.ID, Body: body})
	b.check(err)
}

func (b *bench) take(ref teams.Ref) *teams.Taking {
	b.Helper()
	taking, err := b.Take(b.Context(), ref, teams.TakeOption{Limit: teams.ReadLimit})
	b.check(err)
	return taking
}

func (b *bench) settle(taking *teams.Taking, o teams.Outcome) {
	b.Helper()
	b.check(b.Settle(b.Context(), taking, o, "one"))
}

// read takes all messages of a session and settles them.
func (b *bench) read(ref teams.Ref) (bodies []string) {
	b.Helper()
	taking := b.take(ref)
	b.settle(taking, teams.Arrived)
	for _, m := range taking.Messages {
		bodies = append(bodies, m.Body)
	}
	return bodies
}

func (b *bench) same(got, want any) {
	b.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.Fatalf("got %.200v, want %.200v", fmt.Sprint(got), fmt.Sprint(want))
	}
}
