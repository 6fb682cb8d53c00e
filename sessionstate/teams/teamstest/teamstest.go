// Package teamstest is the suite that every store of package teams passes. It quotes the
// rules of the design by their numbers.
package teamstest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/teams"
)

// Run runs the suite. open opens a new, empty store with a clock.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) *teams.Store) {
	for _, test := range []struct {
		name string
		run  func(*bench)
	}{
		{"Attach", attach},
		{"Proof", proof},
		{"States", states},
		{"CreateInherits", createInherits},
		{"CreateLimits", createLimits},
		{"CreateRate", createRate},
		{"CreateAtOnce", createAtOnce},
		{"CreateKey", createKey},
		{"SlotsComeBackOnce", slotsComeBackOnce},
		{"LostRun", lostRun},
		{"Resume", resume},
		{"WhoMayWrite", whoMayWrite},
		{"SendLimits", sendLimits},
		{"SendKey", sendKey},
		{"SendersAtOnce", sendersAtOnce},
		{"TakeInOrder", takeInOrder},
		{"TakeWhatFits", takeWhatFits},
		{"TakenAgain", takenAgain},
		{"Unsure", unsure},
		{"Receipts", receipts},
		{"Expiry", expiry},
		{"End", end},
		{"List", list},
		{"Wake", wake},
		{"ClockSetBack", clockSetBack},
		{"Sweep", sweep},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &bench{T: t, clock: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)}
			b.Store = open(t, b.now)
			test.run(b)
		})
	}
}

// A bench is a store, its clock, and what makes a test short.
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

// pass moves the clock.
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

// child creates a child, whose run goes on, and waits out the rate limit.
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

// write sends a message and waits out the limits on messages.
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

// T6 to T9, T11: a session is one across the processes that know its key.
func attach(b *bench) {
	c := teams.Claim{Key: "k", Workspace: "w", Trust: "direct", Title: "claude-code in shop"}
	first := b.claim(c)
	if !teams.IsHandle(first.ID) || first.CreatedBy != "user" || first.Depth != 0 || first.State != teams.Working {
		b.Errorf("registered as %+v", first)
	}
	c.Title = ""
	second, err := b.Attach(b.Context(), c, teams.Attachment{Instance: "two"})
	b.check(err)
	b.same(second.Ref, first.Ref)
	b.same(second.Title, "claude-code in shop")

	if other := b.claim(teams.Claim{Tenant: "acme", Key: "k", Workspace: "w", Trust: "direct"}); other.ID == first.ID {
		b.Error("another tenant's session of the same key is the same session")
	}
	_, err = b.Attach(b.Context(), teams.Claim{Key: "unknown"}, attachment)
	b.refused(err, "Session context not available")
	if known := b.claim(teams.Claim{Key: "k", Trust: "direct"}); known.ID != first.ID || known.Workspace != "w" {
		b.Errorf("a process without a workspace is of %+v", known)
	}
	b.same(b.claim(teams.Claim{Key: "k", Workspace: "w", Trust: "sandboxed"}).Trust, "sandboxed")
	b.same(b.claim(teams.Claim{Key: "k", Workspace: "w", Trust: "direct"}).Trust, "sandboxed") // only down
}

// T22: a spawned session is proved by its token, or known by what its host wrote into _meta.
func proof(b *bench) {
	parent := b.person("w", "direct")
	b.pass(time.Second)
	c := b.newChild("sandboxed")
	child, _, err := b.Create(b.Context(), parent, c, teams.DefaultLimits())
	b.check(err)
	for _, token := range []string{"", "guessed"} {
		_, err = b.Attach(b.Context(), teams.Claim{Key: c.Key, Token: token, Workspace: "w", Trust: "direct"}, attachment)
		if !errors.Is(err, teams.ErrUnproved) {
			b.Errorf("with the token %q: %v", token, err)
		}
	}
	proved := b.claim(teams.Claim{Key: c.Key, Token: c.Token, Workspace: "elsewhere", Trust: "direct"})
	if proved.ID != child.ID || proved.Trust != "sandboxed" || proved.Workspace != "w" {
		b.Errorf("proved as %+v", proved)
	}
	b.check(b.MarkRunning(b.Context(), teams.RunRef{Ref: child.Ref, Run: 1}, "thread-1"))
	b.same(b.claim(teams.Claim{Key: "thread-1", Conversation: true, Trust: "direct"}).ID, child.ID)
	if other := b.claim(teams.Claim{Key: "thread-1", Workspace: "w", Trust: "direct"}); other.ID == child.ID {
		b.Error("a variable with the id of an agent's program makes a session that of the agent")
	}
}

// T9, T10.
func states(b *bench) {
	ref := b.person("w", "direct")
	b.same(b.session(ref).State, teams.Working)
	b.pass(80 * time.Second)
	b.same(b.session(ref).State, teams.Idle)
	b.check(b.Renew(b.Context(), ref, "one", b.now()))
	b.same(b.session(ref).State, teams.Working)
	b.pass(teams.Lease)
	b.same(b.session(ref).State, teams.Gone)
	b.check(b.Renew(b.Context(), ref, "one", b.now()))
	b.check(b.Detach(b.Context(), ref, "one"))
	b.same(b.session(ref).State, teams.Gone)
	if err := b.Renew(b.Context(), ref, "one", b.now()); !teams.IsGone(err) {
		b.Errorf("renewing a lease that is not there: %v", err)
	}

	b.check(b.Store.Sweep(b.Context(), time.Hour))
	parent := b.person("w", "direct")
	child := b.child(parent, "direct")
	run := teams.RunRef{Ref: child, Run: 1}
	b.same(b.session(child).State, teams.Starting)
	b.check(b.MarkRunning(b.Context(), run, ""))
	b.same(b.session(child).State, teams.Working)
	_, err := b.EndRun(b.Context(), run, teams.Ending{Failed: true, ExitStatus: 3, CostUSD: "0.02"})
	b.check(err)
	s := b.session(child)
	b.same(s.State, teams.Failed)
	b.same([]any{s.ExitStatus, s.CostUSD, s.Active()}, []any{3, "0.02", false})
}

// T11, T12: the child has the workspace of its parent, and at most its trust.
func createInherits(b *bench) {
	for _, row := range [][3]string{
		{"direct", "direct", "direct"}, {"direct", "sandboxed", "sandboxed"},
		{"sandboxed", "direct", "sandboxed"}, {"sandboxed", "sandboxed", "sandboxed"}, {"direct", "", "sandboxed"},
	} {
		parent := b.person("w", row[0])
		s := b.session(b.child(parent, row[1]))
		got := []any{s.Workspace, s.Trust, s.Parent, s.CreatedBy, s.Depth, s.Title, s.Agent, s.Run, s.Queued}
		b.same(got, []any{"w", row[2], parent.ID, "agent:" + parent.ID, 1, "Review cart", "reviewer", 1, 1})
		first := b.take(s.Ref).Messages[0]
		b.same([]any{first.Kind, first.Body, first.Relation, first.From}, []any{teams.First, "look", teams.FromParent, parent.ID})
	}
}

// T12, T20: each limit has its text.
func createLimits(b *bench) {
	l := teams.Limits{MaxChildren: 2, MaxSpawned: 4, MaxDepth: 2, MaxSessions: 5}
	create := func(parent teams.Ref) (teams.Ref, error) {
		s, _, err := b.Create(b.Context(), parent, b.newChild("direct"), l)
		if err != nil {
			return teams.Ref{}, err
		}
		return s.Ref, nil
	}
	parent := b.person("w", "direct")
	one, err := create(parent)
	b.check(err)
	two, err := create(parent)
	b.check(err)
	_, err = create(parent)
	b.refused(err, "Spawn limit reached (2 child sessions)")

	grandchild, err := create(one)
	b.check(err)
	_, err = create(grandchild)
	b.refused(err, "Too deep: sessions started by sessions may not start more")

	for _, r := range []teams.Ref{one, two} { // who has ended frees its place
		_, err = b.EndRun(b.Context(), teams.RunRef{Ref: r, Run: 1}, teams.Ending{})
		b.check(err)
	}
	for range 2 {
		_, err = create(parent)
		b.check(err)
	}
	b.same(b.session(parent).Children, 2)
	_, err = create(b.person("w", "direct"))
	b.check(err)
	other := b.person("w", "direct")
	_, err = create(other)
	b.check(err)
	_, err = create(other)
	b.refused(err, "Spawn limit reached (5 sessions in this workspace)")
	b.same(b.session(other).Children, 1) // what was taken before is given back
	_, err = create(b.person("elsewhere", "direct"))
	b.check(err)

	l.MaxChildren = 10
	_, err = create(parent)
	b.refused(err, "Spawn limit reached (4 sessions in the life of one)")
}

// T12: create, create at once: error, a second later: works.
func createRate(b *bench) {
	parent := b.person("w", "direct")
	_, _, err := b.Create(b.Context(), parent, b.newChild("direct"), teams.DefaultLimits())
	b.check(err)
	b.pass(200 * time.Millisecond)
	_, _, err = b.Create(b.Context(), parent, b.newChild("direct"), teams.DefaultLimits())
	b.refused(err, "Rate limit exceeded (1 session per second): try again in 0.8 s")
	b.pass(800 * time.Millisecond)
	_, _, err = b.Create(b.Context(), parent, b.newChild("direct"), teams.DefaultLimits())
	b.check(err)
}

// Ten parents at once all succeed, thirty tries of one give ten, and ten within a second one.
func createAtOnce(b *bench) {
	try := func(n int, parent func(i int) teams.Ref, l teams.Limits) (made int) {
		results := make(chan error)
		var parents []teams.Ref
		var children []teams.Child
		for i := range n {
			parents, children = append(parents, parent(i)), append(children, b.newChild("direct"))
		}
		for i := range n {
			go func() {
				_, _, err := b.Create(b.Context(), parents[i], children[i], l)
				results <- err
			}()
		}
		for range n {
			var refusal teams.Refusal
			switch err := <-results; {
			case err == nil:
				made++
			case !errors.As(err, &refusal):
				b.Error(err)
			}
		}
		return made
	}
	l := teams.DefaultLimits()
	b.same(try(10, func(int) teams.Ref { return b.person("w", "direct") }, l), 10)
	one := b.person("w", "direct")
	b.same(try(10, func(int) teams.Ref { return one }, l), 1)
	l.SpawnEvery = 0
	two := b.person("w", "direct")
	b.same(try(30, func(int) teams.Ref { return two }, l), 10)
}

// T19.
func createKey(b *bench) {
	parent := b.person("w", "direct")
	c := b.newChild("direct")
	c.SpawnKey = "retry"
	first, made, err := b.Create(b.Context(), parent, c, teams.DefaultLimits())
	b.check(err)
	b.same(made, true)
	again, made, err := b.Create(b.Context(), parent, c, teams.DefaultLimits())
	b.check(err)
	b.same([]any{again.ID, made, b.session(parent).Children}, []any{first.ID, false, 1})
	b.pass(time.Second)
	other, _, err := b.Create(b.Context(), b.person("w", "direct"), func() teams.Child { c := b.newChild("direct"); c.SpawnKey = "retry"; return c }(), teams.DefaultLimits())
	b.check(err)
	if other.ID == first.ID {
		b.Error("the key of another parent gave the same session")
	}
}

// T12, T27: whoever ends a run first gives the slot back and reports, and nobody else.
func slotsComeBackOnce(b *bench) {
	parent := b.person("w", "direct")
	keeps := b.child(parent, "direct")
	run := teams.RunRef{Ref: b.child(parent, "sandboxed"), Run: 1}
	results := make(chan bool)
	for range 10 {
		go func() {
			mine, err := b.EndRun(b.Context(), run, teams.Ending{Report: "done"})
			if err != nil {
				b.Error(err)
			}
			results <- mine
		}()
	}
	n := 0
	for range 10 {
		if <-results {
			n++
		}
	}
	b.same(n, 1)
	b.same(b.session(parent).Children, 1)
	messages := b.take(parent).Messages
	if len(messages) != 1 || messages[0].Kind != teams.Result || messages[0].Body != "done" ||
		messages[0].From != run.ID || messages[0].Relation != teams.FromChild || messages[0].Trust != "sandboxed" {
		b.Errorf("the parent was told %+v", messages)
	}
	b.same(b.session(keeps).State, teams.Starting)
}

// T25: a run whose supervisor is gone is failed, once, by whoever sees it.
func lostRun(b *bench) {
	parent := b.person("w", "direct")
	lost, kept := teams.RunRef{Ref: b.child(parent, "direct"), Run: 1}, teams.RunRef{Ref: b.child(parent, "direct"), Run: 1}
	b.pass(60 * time.Second)
	_, err := b.RenewRun(b.Context(), kept)
	b.check(err)
	b.check(b.Store.Sweep(b.Context(), time.Hour))
	b.same(b.session(parent).Children, 2)
	b.pass(40 * time.Second)
	for range 3 {
		b.check(b.Store.Sweep(b.Context(), time.Hour))
	}
	b.same([]any{b.session(lost.Ref).State, b.session(kept.Ref).State, b.session(parent).Children}, []any{teams.Failed, teams.Starting, 1})
	told := b.read(parent)
	if len(told) != 1 || !strings.HasPrefix(told[0], "lost: ") {
		b.Errorf("the parent was told %q", told)
	}
	v, err := b.RenewRun(b.Context(), lost)
	b.check(err)
	b.same(v.Over, true) // its supervisor, if it comes back, has to stop
	mine, err := b.EndRun(b.Context(), lost, teams.Ending{Report: "late"})
	b.check(err)
	b.same(mine, false)
}

// T30: a run that is over is followed by at most one other, which counts as a child again.
func resume(b *bench) {
	parent := b.person("w", "direct")
	child := b.child(parent, "direct")
	b.read(child)
	begin := func() int {
		run, err := b.BeginRun(b.Context(), child, teams.DefaultLimits(), rand.Text(), "token")
		b.check(err)
		return run
	}
	b.write(parent, child, "more")
	b.same(begin(), 0) // it runs
	_, err := b.EndRun(b.Context(), teams.RunRef{Ref: child, Run: 1}, teams.Ending{})
	b.check(err)
	b.same(b.session(parent).Children, 0)
	open, err := b.Resumable(b.Context(), "", "w")
	b.check(err)
	b.same([]any{len(open), open[0].ID}, []any{1, child.ID})

	l := teams.DefaultLimits()
	l.MaxChildren = 0
	run, err := b.BeginRun(b.Context(), child, l, "k", "token")
	b.check(err)
	b.same([]any{run, b.session(child).State}, []any{0, teams.Finished})
	b.same([]any{begin(), begin()}, []any{2, 0})
	b.same([]any{b.session(parent).Children, b.session(child).State}, []any{1, teams.Starting})
	if mine, err := b.EndRun(b.Context(), teams.RunRef{Ref: child, Run: 1}, teams.Ending{}); mine || err != nil {
		b.Errorf("the end of the first run counts for the second: %v, %v", mine, err)
	}
	b.read(child)
	_, err = b.EndRun(b.Context(), teams.RunRef{Ref: child, Run: 2}, teams.Ending{})
	b.check(err)
	b.same(begin(), 0) // no message waits
}

// T36, over all pairs of trust and relation.
func whoMayWrite(b *bench) {
	for _, fromTrust := range []string{"direct", "sandboxed"} {
		for _, toTrust := range []string{"direct", "sandboxed"} {
			for _, relation := range []string{"peer", "parent", "child", "self", "elsewhere", "tenant", "ended", "unknown"} {
				for _, answer := range []bool{true, false} {
					from, to, possible := b.pair(relation, fromTrust, toTrust)
					if !possible {
						continue
					}
					may := fromTrust == "direct" || toTrust == "sandboxed" || relation == "parent" && answer
					if !slices.Contains([]string{"peer", "parent", "child"}, relation) {
						may = false
					}
					b.pass(time.Minute)
					_, err := b.Send(b.Context(), from, teams.Draft{To: to.ID, Body: "hello", AnswerParent: answer})
					if may != (err == nil) || !may && !errors.Is(err, teams.ErrTarget) {
						b.Errorf("%s to %s %s (replies %v): %v, want allowed %v", fromTrust, toTrust, relation, answer, err, may)
					}
				}
			}
		}
	}
}

// pair makes two sessions, of which the second is something to the first. It reports false
// for a pair that cannot be: a child has at most its parent's trust.
func (b *bench) pair(relation, fromTrust, toTrust string) (from, to teams.Ref, possible bool) {
	switch relation {
	case "parent":
		to = b.person("w", toTrust)
		return b.child(to, fromTrust), to, toTrust == "direct" || fromTrust == "sandboxed"
	case "child":
		from = b.person("w", fromTrust)
		return from, b.child(from, toTrust), fromTrust == "direct" || toTrust == "sandboxed"
	case "self":
		from = b.person("w", fromTrust)
		return from, from, true
	case "elsewhere":
		return b.person("w", fromTrust), b.person("w2", toTrust), true
	case "tenant":
		b.made++
		other := b.claim(teams.Claim{Tenant: "acme", Key: fmt.Sprint(b.made), Workspace: "w", Trust: toTrust})
		return b.person("w", fromTrust), other.Ref, true
	case "ended":
		from, to = b.person("w", fromTrust), b.person("w", toTrust)
		_, err := b.EndByOperator(b.Context(), to)
		b.check(err)
		return from, to, true
	case "unknown":
		return b.person("w", fromTrust), teams.Ref{ID: "ses_000000000000"}, true
	}
	return b.person("w", fromTrust), b.person("w", toTrust), true
}

// T37, T20.
func sendLimits(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	n := 0
	send := func() error {
		n++
		_, err := b.Send(b.Context(), from, teams.Draft{To: to.ID, Body: fmt.Sprint("text ", n)})
		return err
	}
	for range 3 {
		b.check(send())
	}
	b.pass(7 * time.Second)
	b.refused(send(), "Rate limit exceeded (3 messages per 10 seconds to one session): try again in 3.0 s")
	for range 2 {
		b.pass(5 * time.Second)
		for range 3 {
			b.check(send())
		}
		b.pass(5 * time.Second)
	}
	b.pass(5 * time.Second)
	b.check(send())
	b.refused(send(), "Rate limit exceeded (10 messages per minute to one session): try again in 28.0 s")

	_, err := b.Send(b.Context(), from, teams.Draft{To: to.ID, Body: "text 1"})
	b.refused(err, "You have sent this text there already")
	b.pass(10 * time.Minute)
	b.check(func() error { _, err := b.Send(b.Context(), from, teams.Draft{To: to.ID, Body: "text 1"}); return err }())

	for i := b.session(to).Queued; i < 50; i++ {
		b.write(from, to, fmt.Sprint("more ", i))
	}
	b.pass(time.Minute)
	b.refused(send(), "That session has 50 unread messages")
	b.read(to)
	b.check(send())
}

// T19.
func sendKey(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	d := teams.Draft{To: to.ID, Body: "hello", SendKey: "k"}
	first, err := b.Send(b.Context(), from, d)
	b.check(err)
	again, err := b.Send(b.Context(), from, d)
	b.check(err)
	b.same([]any{again.ID, b.session(to).Queued}, []any{first.ID, 1})
}

// Ten senders to one target.
func sendersAtOnce(b *bench) {
	to := b.person("w", "direct")
	var wait sync.WaitGroup
	for i := range 10 {
		from := b.person("w", "direct")
		wait.Go(func() {
			if _, err := b.Send(b.Context(), from, teams.Draft{To: to.ID, Body: fmt.Sprint(i)}); err != nil {
				b.Error(err)
			}
		})
	}
	wait.Wait()
	bodies := b.read(to)
	slices.Sort(bodies)
	b.same(bodies, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})
}

// T14, T38: one taker at a time, in the order of sending.
func takeInOrder(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	mail := func() bool {
		has, peers, err := b.HasMail(b.Context(), to)
		b.check(err)
		b.same(peers, true)
		return has
	}
	before, err := b.Version(b.Context())
	b.check(err)
	b.same(mail(), false)
	for _, body := range []string{"one", "two", "three"} {
		b.write(from, to, body)
	}
	after, err := b.Version(b.Context())
	b.check(err)
	b.same([]any{mail(), before == after}, []any{true, false})

	first := b.take(to)
	b.same(len(first.Messages), 3)
	b.same(len(b.take(to).Messages), 0) // another has the inbox
	b.write(from, to, "four")
	b.settle(first, teams.Arrived)
	b.same(b.read(to), []string{"four"})
	b.same([]any{mail(), b.session(to).Queued}, []any{false, 0})

	b.write(from, to, "five")
	b.settle(b.take(to), teams.NotSent)
	second := b.take(to)
	b.same([]any{second.Messages[0].Body, second.Messages[0].Again}, []any{"five", false})
}

// T33.
func takeWhatFits(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	long := strings.Repeat("ü", teams.CarryLimit+1)
	half := strings.Repeat("x", teams.CarryLimit/2+1)
	for _, body := range []string{half, long, half + "2"} {
		b.write(from, to, body)
	}
	carry := func() *teams.Taking {
		taking, err := b.Take(b.Context(), to, teams.TakeOption{Limit: teams.CarryLimit, Cut: true})
		b.check(err)
		b.settle(taking, teams.Arrived)
		return taking
	}
	first := carry()
	b.same([]any{len(first.Messages), first.Messages[1].Cut, first.Messages[1].Body, first.Remaining}, []any{2, true, strings.Repeat("ü", 500), 1})
	second := carry()
	b.same([]any{len(second.Messages), second.Messages[0].Body, second.Remaining}, []any{1, half + "2", 0})
	b.same(len(carry().Messages), 0) // what was announced is not announced again
	has, _, err := b.HasMail(b.Context(), to)
	b.check(err)
	b.same(has, false)

	peek, err := b.Take(b.Context(), to, teams.TakeOption{Limit: teams.ReadLimit, Peek: true})
	b.check(err)
	b.same([]any{len(peek.Messages), peek.Messages[0].Body == long, peek.Messages[0].Again}, []any{1, true, false})
	b.same(b.read(to), []string{long})
	b.same(b.session(to).Queued, 0)
}

// T35: what a taker that died has not settled comes again, and says so.
func takenAgain(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	b.write(from, to, "one")
	dead := b.take(to)
	b.pass(teams.InboxLease)
	second := b.take(to)
	b.same([]any{len(second.Messages), second.Messages[0].Again, second.Messages[0].ID}, []any{1, true, dead.Messages[0].ID})
	b.settle(second, teams.Arrived)
	b.settle(dead, teams.Arrived) // it was only slow
	b.same(b.session(to).Queued, 0)
	b.same(len(b.take(to).Messages), 0)
}

// T34.
func unsure(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	b.write(from, to, "one")
	for i := range 3 {
		taking := b.take(to)
		b.same([]any{len(taking.Messages), taking.Messages[0].Again}, []any{1, i > 0})
		b.settle(taking, teams.Unsure)
	}
	b.same([]any{len(b.take(to).Messages), b.session(to).Queued}, []any{0, 0})
}

// T35: the sender learns each change once.
func receipts(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	got := func() (states []string) {
		all, err := b.Store.Receipts(b.Context(), from)
		b.check(err)
		for _, r := range all {
			b.same(r.To, to.ID)
			states = append(states, r.State)
		}
		return states
	}
	b.write(from, to, "one")
	b.same(got(), []string(nil))
	taking := b.take(to)
	b.settle(taking, teams.Arrived)
	b.same(got(), []string{"carried"})
	b.same(got(), []string(nil))
	b.check(b.MarkSeen(b.Context(), taking))
	b.same(got(), []string{"seen"})
}

// T35: a sender is told unasked of what will not arrive.
func expiry(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	b.write(from, to, "one")
	b.pass(teams.Expiry)
	b.claim(teams.Claim{Key: "key 1", Workspace: "w", Trust: "direct"})
	for range 2 {
		b.check(b.Store.Sweep(b.Context(), time.Hour))
	}
	told := b.take(from).Messages
	if len(told) != 1 || told[0].Kind != teams.Notice || !strings.Contains(told[0].Body, "did not arrive") {
		b.Errorf("the sender was told %+v", told)
	}
	all, err := b.Store.Receipts(b.Context(), from)
	b.check(err)
	b.same([]any{len(all), all[0].State, b.session(to).Queued}, []any{1, "expired", 0})
}

// T29.
func end(b *bench) {
	parent := b.person("w", "direct")
	child := b.child(parent, "direct")
	grandchild := b.child(child, "direct")
	stranger := b.person("w", "direct")
	for _, target := range []teams.Ref{child, parent, {ID: "ses_000000000000"}} {
		_, err := b.Store.End(b.Context(), stranger, target.ID)
		b.refused(err, "Cannot end session")
	}
	b.write(stranger, grandchild, "hello")
	ended, err := b.Store.End(b.Context(), parent, child.ID)
	b.check(err)
	slices.Sort(ended)
	want := []string{child.ID, grandchild.ID}
	slices.Sort(want)
	b.same(ended, want)
	ended, err = b.Store.End(b.Context(), parent, grandchild.ID)
	b.check(err)
	b.same(len(ended), 0)
	b.same(b.session(grandchild).State, teams.Ended)
	v, err := b.RenewRun(b.Context(), teams.RunRef{Ref: grandchild, Run: 1})
	b.check(err)
	b.same(v.Over, true)
	told := b.take(stranger).Messages
	if len(told) != 1 || told[0].Kind != teams.Notice {
		b.Errorf("the sender was told %+v", told)
	}
	_, err = b.Send(b.Context(), parent, teams.Draft{To: child.ID, Body: "hello"})
	b.refused(err, "Cannot send message to session")
	mine, err := b.EndRun(b.Context(), teams.RunRef{Ref: child, Run: 1}, teams.Ending{Failed: true, Report: "ended"})
	b.check(err)
	b.same([]any{mine, b.read(parent)}, []any{true, []string{"ended"}})

	run := teams.RunRef{Ref: b.child(stranger, "direct"), Run: 1}
	view := func() teams.RunView {
		v, err := b.RenewRun(b.Context(), run)
		b.check(err)
		return v
	}
	b.same(view(), teams.RunView{})
	b.check(b.Detach(b.Context(), stranger, "one"))
	b.pass(teams.ParentGone - time.Minute)
	b.same(view(), teams.RunView{}) // its parent may come back
	b.pass(time.Minute)
	b.same(view(), teams.RunView{ParentOver: true})
}

// T36, and the filters.
func list(b *bench) {
	direct := b.person("w", "direct")
	sandboxed := b.child(direct, "sandboxed")
	grandchild := b.child(sandboxed, "direct")
	b.person("elsewhere", "direct")
	got := func(me teams.Ref, f teams.Filter) (ids []string) {
		for {
			sessions, cursor, err := b.List(b.Context(), me, f)
			b.check(err)
			for _, s := range sessions {
				ids = append(ids, s.ID)
				if s.ID == direct.ID && me != direct && (s.Title != "" || s.CreatedBy != "") {
					b.Errorf("a sandboxed session sees of its parent %+v", s)
				}
			}
			if f.Cursor = cursor; cursor == "" {
				return ids
			}
		}
	}
	all := []string{grandchild.ID, sandboxed.ID, direct.ID}
	for _, limit := range []int{0, 1, 2, 3, 100} {
		b.same(got(direct, teams.Filter{Limit: limit}), all)
	}
	b.same(got(sandboxed, teams.Filter{}), all)      // its own parent
	b.same(got(grandchild, teams.Filter{}), all[:2]) // nothing direct
	b.same(got(direct, teams.Filter{ChildrenOf: direct.ID}), all[1:2])
	b.same(got(direct, teams.Filter{Agent: "reviewer"}), all[:2])
	b.same(got(direct, teams.Filter{Agent: "other"}), []string(nil))
	_, err := b.EndRun(b.Context(), teams.RunRef{Ref: grandchild, Run: 1}, teams.Ending{})
	b.check(err)
	b.same(got(direct, teams.Filter{Active: true}), all[1:])
	_, _, err = b.List(b.Context(), direct, teams.Filter{Cursor: "x"})
	b.refused(err, teams.ErrCursor.Error())
}

// T31.
func wake(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	claim := func() int {
		n, _, err := b.ClaimWake(b.Context(), to, 5*time.Second, 30*time.Second)
		b.check(err)
		return n
	}
	b.write(from, to, "one")
	b.same(claim(), 0)
	b.pass(5 * time.Second)
	b.same([]any{claim(), claim()}, []any{1, 0})
	b.pass(30 * time.Second)
	b.same(claim(), 1)
	b.read(to)
	b.pass(30 * time.Second)
	b.same(claim(), 0)
}

// T9, T14: what was taken before the clock was set back is free again.
func clockSetBack(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	b.write(from, to, "one")
	b.take(to)
	parent := b.person("w", "direct")
	b.child(parent, "direct")
	b.pass(-time.Hour)
	b.same(len(b.take(to).Messages), 1)
	b.same(b.session(to).State, teams.Gone)
	_, _, err := b.Create(b.Context(), parent, b.newChild("direct"), teams.DefaultLimits())
	b.check(err)
}

// What is over is forgotten, and nothing else.
func sweep(b *bench) {
	parent := b.person("w", "direct")
	child := b.child(parent, "direct")
	b.read(child)
	_, err := b.EndRun(b.Context(), teams.RunRef{Ref: child, Run: 1}, teams.Ending{Report: "done"})
	b.check(err)
	b.read(parent)
	for range 11 {
		b.pass(23 * time.Hour)
		b.claim(teams.Claim{Key: "key 1", Workspace: "w", Trust: "direct"})
		b.check(b.Store.Sweep(b.Context(), time.Hour))
	}
	b.same(b.session(parent).State, teams.Working)
	if _, err := b.Session(b.Context(), child); !teams.IsGone(err) {
		b.Errorf("the child is kept: %v", err)
	}
	b.pass(24 * time.Hour)
	b.check(b.Store.Sweep(b.Context(), time.Hour))
	b.same(b.session(parent).State, teams.Ended)
	b.claim(teams.Claim{Key: "key 1", Workspace: "w", Trust: "direct"})
	b.same(b.session(parent).State, teams.Working) // a person's session comes back
}
