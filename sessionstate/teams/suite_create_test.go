package teams_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/sessionstate/teams"
)

// A child has the workspace of its parent and at most its trust.
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

// Each limit has its own text.
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

	for _, r := range []teams.Ref{one, two} { // an ended session frees its place
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
	b.same(b.session(other).Children, 1) // the refused creation has changed nothing
	_, err = create(b.person("elsewhere", "direct"))
	b.check(err)

	l.MaxChildren = 10
	_, err = create(parent)
	b.refused(err, "Spawn limit reached (4 sessions in the life of one)")

	_, err = b.EndByOperator(b.Context(), one)
	b.check(err)
	_, err = create(one)
	b.refused(err, "Session context not available")
}

// A second child is refused immediately after the first, and created a second later.
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

// Ten parents at once all succeed; thirty attempts of one parent create ten children, and ten
// attempts within a second create one.
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

// Ending a session also ends the children that it creates at the same time.
func endWhileCreating(b *bench) {
	l := teams.Limits{MaxChildren: 1000, MaxSpawned: 1000, MaxDepth: 2, MaxSessions: 1000}
	for range 5 {
		parent := b.person("w", "direct")
		next, begun, children := make(chan teams.Child, 1000), make(chan bool, 1), make(chan teams.Ref, 1000)
		for range cap(next) {
			next <- b.newChild("direct")
		}
		close(next)
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for c := range next {
					child, _, err := b.Create(b.Context(), parent, c, l)
					if err != nil {
						return // the parent has ended
					}
					children <- child.Ref
					select {
					case begun <- true:
					default:
					}
				}
			})
		}
		<-begun
		_, err := b.EndByOperator(b.Context(), parent)
		b.check(err)
		wait.Wait()
		close(children)
		for child := range children {
			b.same(b.session(child).State, teams.Ended)
		}
	}
}

// A session that its processes attach to while it is ended stays ended.
func endWhileAttaching(b *bench) {
	parent := b.person("w", "direct")
	for range 20 {
		b.pass(time.Second)
		c := b.newChild("direct")
		child, _, err := b.Create(b.Context(), parent, c, teams.Limits{MaxChildren: 100, MaxSpawned: 100, MaxDepth: 2, MaxSessions: 100})
		b.check(err)
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for err := error(nil); err == nil; {
					_, err = b.Attach(b.Context(), teams.Claim{Key: c.Key, Token: c.Token, Trust: "direct"}, attachment)
				}
			})
		}
		ended, err := b.End(b.Context(), parent, child.ID)
		b.check(err)
		b.same(len(ended), 1)
		time.Sleep(5 * time.Millisecond)
		b.same(b.session(child.Ref).State, teams.Ended)
		wait.Wait()
	}
}

// Repeated calls with the same key create one child.
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
		b.Error("the key of another parent returned the same session")
	}
	c = b.newChild("direct")
	c.SpawnKey = "another"
	if _, made, err = b.Create(b.Context(), parent, c, teams.DefaultLimits()); !made || err != nil {
		b.Errorf("another key made no session: %v", err)
	}
}

// Only the first of several callers that end a run releases the slot and reports.
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
		b.Errorf("the parent got %+v", messages)
	}
	b.same(b.session(keeps).State, teams.Starting)
}

// A report arrives whatever its bytes are, although PostgreSQL accepts only UTF-8 without NUL.
func reportOfAnyBytes(b *bench) {
	parent := b.person("w", "direct")
	_, err := b.EndRun(b.Context(), teams.RunRef{Ref: b.child(parent, "direct"), Run: 1}, teams.Ending{Report: "a\x00b\xff\xfec\n"})
	b.check(err)
	b.same(b.read(parent), []string{"a\ufffdb\ufffdc\n"})
}

// A run whose supervisor is gone fails exactly once. If the supervisor only lost the connection to
// the database, its later result counts, also once.
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
	reports := b.read(parent)
	if len(reports) != 1 || !strings.HasPrefix(reports[0], "lost: ") {
		b.Errorf("the parent got %q", reports)
	}
	v, err := b.RenewRun(b.Context(), lost)
	b.check(err)
	b.same(v.Over, true)                  // if its supervisor continues, it must stop the agent
	b.same(b.session(lost.Ref).Queued, 0) // its task would start the agent again
	for _, first := range []bool{true, false} {
		mine, err := b.EndRun(b.Context(), lost, teams.Ending{Report: "late"})
		b.check(err)
		b.same(mine, first)
	}
	b.same([]any{b.session(lost.Ref).State, b.session(parent).Children, b.read(parent)}, []any{teams.Finished, 1, []string{"late"}})
}

// After a run at most one other begins, which counts as a running child again.
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
	b.same(begin(), 0) // it is running
	open, err := b.Resumable(b.Context(), "", "w")
	b.check(err)
	b.same(len(open), 0)
	_, err = b.EndRun(b.Context(), teams.RunRef{Ref: child, Run: 1}, teams.Ending{})
	b.check(err)
	b.same(b.session(parent).Children, 0)
	open, err = b.Resumable(b.Context(), "", "w")
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
	b.check(b.MarkRunning(b.Context(), teams.RunRef{Ref: child, Run: 1}, "of the first run"))
	v, err := b.RenewRun(b.Context(), teams.RunRef{Ref: child, Run: 1})
	b.check(err)
	b.same([]any{v.Over, b.session(child).State, b.session(child).AgentSession}, []any{true, teams.Starting, ""})
	b.read(child)
	_, err = b.EndRun(b.Context(), teams.RunRef{Ref: child, Run: 2}, teams.Ending{})
	b.check(err)
	b.same(begin(), 0) // no message is queued
}

// If an agent could not be started, its messages are not tried again and again: their senders get a
// notice. An agent that has never run cannot be resumed.
func notStarted(b *bench) {
	parent, peer := b.person("w", "direct"), b.person("w", "direct")
	b.pass(time.Second)
	c := b.newChild("direct")
	c.AgentSession = "id"
	made, _, err := b.Create(b.Context(), parent, c, teams.DefaultLimits())
	b.check(err)
	child := made.Ref
	fail := func(run int) {
		b.Helper()
		_, err := b.EndRun(b.Context(), teams.RunRef{Ref: child, Run: run}, teams.Ending{Failed: true, NotStarted: true, Report: "could not start"})
		b.check(err)
	}
	fail(1)
	b.same([]any{b.session(child).Queued, b.session(child).AgentSession, b.read(parent)}, []any{0, "", []string{"could not start"}})

	child = b.child(parent, "direct")
	b.read(child)
	b.check(b.MarkRunning(b.Context(), teams.RunRef{Ref: child, Run: 1}, "id"))
	_, err = b.EndRun(b.Context(), teams.RunRef{Ref: child, Run: 1}, teams.Ending{Report: "done"})
	b.check(err)
	b.write(peer, child, "more")
	run, err := b.BeginRun(b.Context(), child, teams.DefaultLimits(), "k", "token")
	b.check(err)
	fail(run)
	b.same([]any{b.session(child).Queued, b.read(parent)}, []any{1, []string{"done"}}) // it is tried again for a while
	b.pass(2 * time.Minute)
	run, err = b.BeginRun(b.Context(), child, teams.DefaultLimits(), "k", "token")
	b.check(err)
	fail(run)
	b.same([]any{run, b.session(child).Queued, b.session(child).AgentSession, b.read(parent)}, []any{3, 0, "id", []string{"could not start"}})
	if got := b.read(peer); len(got) != 1 || !strings.HasSuffix(got[0], " did not arrive: its agent could not be started") {
		b.Errorf("the sender got %q", got)
	}
	open, err := b.Resumable(b.Context(), "", "w")
	b.check(err)
	b.same(len(open), 0)
}

// The token of a session names its tenant, for a process without a credential. It opens only that session.
func proofInTenant(b *bench) {
	parent := b.claim(teams.Claim{Tenant: "acme", Key: "parent", Workspace: "w", Trust: "direct"})
	c := b.newChild("direct")
	c.Token = teams.NewToken("acme")
	child, _, err := b.Create(b.Context(), parent.Ref, c, teams.DefaultLimits())
	b.check(err)
	b.same(b.claim(teams.Claim{Key: c.Key, Token: c.Token, Workspace: "w", Trust: "direct"}).Ref, child.Ref)
	b.check(b.MarkRunning(b.Context(), teams.RunRef{Ref: child.Ref, Run: 1}, "thread-1"))
	b.same(b.claim(teams.Claim{Key: "thread-1", Conversation: true, Token: c.Token, Trust: "direct"}).Ref, child.Ref)
	for name, claim := range map[string]teams.Claim{
		"the session of a person": {Key: "parent", Token: c.Token},
		"no session":              {Key: "unknown", Token: c.Token},
		"another token":           {Key: c.Key, Token: teams.NewToken("acme")},
		"another's conversation":  {Key: "thread-1", Conversation: true, Token: teams.NewToken("acme")},
		"another tenant":          {Key: c.Key, Token: teams.NewToken("beta")},
	} {
		claim.Workspace, claim.Trust = "w", "direct"
		if got, err := b.Attach(b.Context(), claim, attachment); !errors.Is(err, teams.ErrUnproved) {
			b.Errorf("%s: claimed %+v, %v", name, got, err)
		}
	}
	// A token without a tenant, as of an earlier version, names none. So does one of no tenant.
	for _, token := range []string{"ABC", "ABC.", "ABC.%", teams.NewToken("")} {
		got := b.claim(teams.Claim{Key: "key " + token, Token: token, Workspace: "w", Trust: "direct"})
		b.same([]any{got.Tenant, got.CreatedBy}, []any{"", "user"})
	}
}
