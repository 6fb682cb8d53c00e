package teams_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/teams"
)

// runSuite runs the tests for all databases. open opens a new, empty store with a clock.
func runSuite(t *testing.T, open func(t *testing.T, now func() time.Time) *teams.Store) {
	for _, test := range []struct {
		name string
		run  func(*bench)
	}{
		{"Attach", attach},
		{"Proof", proof},
		{"ProofInTenant", proofInTenant},
		{"States", states},
		{"CreateInherits", createInherits},
		{"CreateLimits", createLimits},
		{"CreateRate", createRate},
		{"CreateAtOnce", createAtOnce},
		{"EndWhileCreating", endWhileCreating},
		{"EndWhileAttaching", endWhileAttaching},
		{"CreateKey", createKey},
		{"SlotsComeBackOnce", slotsComeBackOnce},
		{"ReportOfAnyBytes", reportOfAnyBytes},
		{"LostRun", lostRun},
		{"Resume", resume},
		{"NotStarted", notStarted},
		{"WhoMayWrite", whoMayWrite},
		{"SendLimits", sendLimits},
		{"SendKey", sendKey},
		{"KeysAtOnce", keysAtOnce},
		{"SendersAtOnce", sendersAtOnce},
		{"TakeInOrder", takeInOrder},
		{"TakeWhatFits", takeWhatFits},
		{"TakeOfMany", takeOfMany},
		{"TakenAgain", takenAgain},
		{"Unsure", unsure},
		{"Unread", unread},
		{"Receipts", receipts},
		{"ManyReceipts", manyReceipts},
		{"Expiry", expiry},
		{"End", end},
		{"ParentOver", parentOver},
		{"List", list},
		{"Agents", agents},
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

// All processes with the same key share a session.
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
		b.Errorf("a process without a workspace has the session %+v", known)
	}
	b.same(b.claim(teams.Claim{Key: "k", Workspace: "w", Trust: "sandboxed"}).Trust, "sandboxed")
	b.same(b.claim(teams.Claim{Key: "k", Workspace: "w", Trust: "direct"}).Trust, "sandboxed") // trust is only lowered
}

// A spawned session is authenticated by its token, or by the id that its host writes into _meta.
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
		b.Errorf("authenticated as %+v", proved)
	}
	b.check(b.MarkRunning(b.Context(), teams.RunRef{Ref: child.Ref, Run: 1}, "thread-1"))
	b.same(b.claim(teams.Claim{Key: "thread-1", Conversation: true, Trust: "direct"}).ID, child.ID)
	if other := b.claim(teams.Claim{Key: "thread-1", Workspace: "w", Trust: "direct"}); other.ID == child.ID {
		b.Error("a session key from a variable claims the session of an agent")
	}
}

// A process can renew the leases of all processes of its session on its own host, but on no other.
func onHosts(b *bench) {
	claim := teams.Claim{Key: "on hosts", Workspace: "w", Trust: "direct"}
	ref := b.claim(claim).Ref
	b.check(b.Detach(b.Context(), ref, attachment.Instance))
	state := func(want teams.State) {
		b.Helper()
		b.same(b.session(ref).State, want)
	}
	for _, host := range []string{"here", "there"} {
		for _, name := range []string{" one", " two"} {
			_, err := b.Attach(b.Context(), claim, teams.Attachment{Instance: host + name, Host: host})
			b.check(err)
		}
	}
	b.pass(80 * time.Second)
	b.check(b.Renew(b.Context(), ref, teams.Renewal{Instance: "here one", Host: "here", Since: time.Hour}))
	b.check(b.Detach(b.Context(), ref, "here one"))
	b.pass(80 * time.Second)
	state(teams.Idle)
	b.check(b.Detach(b.Context(), ref, "here two"))
	state(teams.Gone)
}

// A session is working after a call, idle later, and gone when no process renews its lease.
func states(b *bench) {
	ref := b.person("w", "direct")
	called := b.now()
	b.same(b.session(ref).State, teams.Working)
	b.pass(80 * time.Second)
	other := b.person("w", "direct")
	b.same([]any{b.session(ref).State, b.session(ref).LastActive.Equal(called), b.session(ref).Wakes}, []any{teams.Idle, true, false})
	b.check(b.Renew(b.Context(), ref, teams.Renewal{Instance: "one"}))
	b.same([]any{b.session(ref).State, b.session(ref).LastActive.Equal(b.now())}, []any{teams.Working, true})
	b.pass(teams.Lease - time.Second)
	b.check(b.Renew(b.Context(), other, teams.Renewal{Instance: "one"}))
	b.pass(time.Second)
	b.same(b.session(ref).State, teams.Gone)
	b.check(b.Renew(b.Context(), ref, teams.Renewal{Instance: "one"}))
	b.check(b.Detach(b.Context(), ref, "one"))
	b.same(b.session(ref).State, teams.Gone)
	if err := b.Renew(b.Context(), ref, teams.Renewal{Instance: "one"}); !errors.Is(err, teams.ErrNoSession) {
		b.Errorf("renewing a lease that does not exist: %v", err)
	}
	onHosts(b)

	b.check(b.Store.Sweep(b.Context(), time.Hour))
	parent := b.person("w", "direct")
	child := b.child(parent, "direct")
	run := teams.RunRef{Ref: child, Run: 1}
	b.same(b.session(child).State, teams.Starting)
	b.check(b.MarkRunning(b.Context(), run, ""))
	b.same(b.session(child).State, teams.Working)
	for _, started := range []bool{false, true} {
		lost := b.child(parent, "direct")
		if started {
			b.check(b.MarkRunning(b.Context(), teams.RunRef{Ref: lost, Run: 1}, ""))
		}
		b.pass(teams.Lease)
		b.same(b.session(lost).State, teams.Failed) // before a sweep, too
	}
	_, err := b.EndRun(b.Context(), run, teams.Ending{Failed: true, ExitStatus: 3, CostUSD: "0.02"})
	b.check(err)
	s := b.session(child)
	b.same(s.State, teams.Failed)
	b.same([]any{s.ExitStatus, s.CostUSD, s.Active()}, []any{3, "0.02", false})
}

// A session can end its descendants and no others.
func end(b *bench) {
	parent := b.person("w", "direct")
	child := b.child(parent, "direct")
	grandchild := b.child(child, "direct")
	stranger := b.person("w", "direct")
	b.child(stranger, "direct") // which gives it no rights over those of others
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
	messages := b.take(stranger).Messages
	if len(messages) != 1 || messages[0].Kind != teams.Notice {
		b.Errorf("the sender got %+v", messages)
	}
	_, err = b.Send(b.Context(), parent, teams.Draft{To: child.ID, Body: "hello"})
	b.refused(err, "Cannot send message to session")
	mine, err := b.EndRun(b.Context(), teams.RunRef{Ref: child, Run: 1}, teams.Ending{Failed: true, Report: "ended"})
	b.check(err)
	b.same([]any{mine, b.read(parent)}, []any{true, []string{"ended"}})
}

// A session is over for its children after it has been gone for ten minutes.
func parentOver(b *bench) {
	key := teams.Claim{Key: "person", Workspace: "w", Trust: "direct"}
	person, agent := b.claim(key).Ref, b.child(b.person("w", "direct"), "direct")
	ofPerson, ofAgent := teams.RunRef{Ref: b.child(person, "direct"), Run: 1}, teams.RunRef{Ref: b.child(agent, "direct"), Run: 1}
	over := func() (all []teams.RunView) {
		for _, run := range []teams.RunRef{ofPerson, ofAgent} {
			v, err := b.RenewRun(b.Context(), run)
			b.check(err)
			all = append(all, v)
		}
		return all
	}
	there, gone := teams.RunView{}, teams.RunView{ParentOver: true}
	b.same(over(), []teams.RunView{there, there})
	b.check(b.Detach(b.Context(), person, "one"))
	b.pass(teams.ParentGone)
	_, err := b.RenewRun(b.Context(), teams.RunRef{Ref: agent, Run: 1})
	b.check(err)
	b.same(over(), []teams.RunView{gone, there}) // a running agent is not gone, even without a process of attache
	b.claim(key)
	_, err = b.EndRun(b.Context(), teams.RunRef{Ref: agent, Run: 1}, teams.Ending{})
	b.check(err)
	b.pass(teams.ParentGone - time.Second)
	b.check(b.Renew(b.Context(), person, teams.Renewal{Instance: "one"}))
	b.same(over(), []teams.RunView{there, there})
	b.pass(time.Second)
	b.same(over(), []teams.RunView{there, gone})

	b.same(b.session(ofAgent.Ref).ParentOver, false) // it is running, and its template decides whether it continues
	for _, run := range []teams.RunRef{ofPerson, ofAgent} {
		_, err := b.EndRun(b.Context(), run, teams.Ending{})
		b.check(err)
	}
	b.same([]bool{b.session(ofPerson.Ref).ParentOver, b.session(ofAgent.Ref).ParentOver}, []bool{false, true})
	b.pass(48 * time.Hour)
	b.check(b.Store.Sweep(b.Context(), time.Hour))
	b.same([]any{b.session(person).State, b.session(ofPerson.Ref).ParentOver}, []any{teams.Ended, true})
}

// list tests which sessions a session sees, and the filters.
func list(b *bench) {
	direct := b.claim(teams.Claim{Key: "a person", Workspace: "w", Trust: "direct", Title: "claude-code in shop"}).Ref
	sandboxed := b.child(direct, "sandboxed")
	grandchild := b.child(sandboxed, "direct")
	b.person("elsewhere", "direct")
	got := func(me teams.Ref, f teams.Filter) (ids []string) {
		for {
			sessions, cursor, err := b.List(b.Context(), me, f)
			b.check(err)
			if f.Limit > 0 && len(sessions) > f.Limit {
				b.Errorf("a page of %d has %d sessions", f.Limit, len(sessions))
			}
			for _, s := range sessions {
				ids = append(ids, s.ID)
				if own := me == direct; s.ID == direct.ID && (own != (s.Title != "") || own != (s.CreatedBy != "")) {
					b.Errorf("%s sees %+v", me.ID, s)
				}
				if s.ID == sandboxed.ID && (me == grandchild) != (s.Parent == "" && s.CreatedBy == "") {
					b.Errorf("%s sees the parent %q (%s) of a sandboxed session, which is direct", me.ID, s.Parent, s.CreatedBy)
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
	if _, cursor, err := b.List(b.Context(), direct, teams.Filter{Limit: len(all)}); cursor != "" || err != nil {
		b.Errorf("after a full page, which is the last one, the cursor is %q, %v", cursor, err)
	}
	b.same(got(sandboxed, teams.Filter{}), all)      // including its own parent
	b.same(got(grandchild, teams.Filter{}), all[:2]) // no direct session
	b.same(got(direct, teams.Filter{ChildrenOf: direct.ID}), all[1:2])
	b.same(got(direct, teams.Filter{Agent: "reviewer"}), all[:2])
	b.same(got(direct, teams.Filter{Agent: "other"}), []string(nil))
	_, err := b.EndRun(b.Context(), teams.RunRef{Ref: grandchild, Run: 1}, teams.Ending{})
	b.check(err)
	b.same(got(direct, teams.Filter{Active: true}), all[1:])
	_, err = b.EndByOperator(b.Context(), grandchild)
	b.check(err)
	b.same(got(direct, teams.Filter{}), all[1:])
	_, _, err = b.List(b.Context(), direct, teams.Filter{Cursor: "x"})
	b.refused(err, teams.ErrCursor.Error())
}

// The operator's list has the newest agent first, and one can be found by its handle.
func agents(b *bench) {
	first := b.child(b.person("w", "direct"), "direct")
	b.pass(time.Millisecond)
	second := b.child(b.person("w", "direct"), "direct")
	ids := func(handle string) (ids []string) {
		found, err := b.Agents(b.Context(), handle)
		b.check(err)
		for _, s := range found {
			ids = append(ids, s.ID)
		}
		return ids
	}
	b.same(ids(""), []string{second.ID, first.ID})
	b.same(ids(first.ID), []string{first.ID})
}

// A session is woken if a message waits and the session has had no call.
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
	b.check(b.Renew(b.Context(), to, teams.Renewal{Instance: attachment.Instance})) // after a call
	b.same(claim(), 0)
	b.pass(5 * time.Second)
	b.same([]any{claim(), claim()}, []any{1, 0})
	b.pass(30 * time.Second)
	b.same(claim(), 1)
	woken := 0 // for the same message again, more and more seldom
	for range 24 * 60 {
		b.pass(time.Minute)
		woken += claim()
	}
	if woken < 5 || woken > 15 {
		b.Errorf("woken %d times within a day", woken)
	}
	b.write(from, to, "two")
	b.pass(30 * time.Second)
	b.same(claim(), 2)
	b.read(to)
	b.pass(30 * time.Second)
	b.same(claim(), 0)
	b.write(from, to, "three")
	b.pass(30 * time.Second)
	b.same(claim(), 1)
	b.pass(-time.Hour)
	b.write(from, to, "four")
	b.pass(30 * time.Second)
	b.same(claim(), 2) // the clock was set back
}

// When the clock is set back, older leases are no longer valid, and limits do not last longer.
func clockSetBack(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	b.write(from, to, "one")
	b.take(to)
	busy := b.person("w", "direct")
	for i := range 4 {
		_, err := b.Send(b.Context(), from, teams.Draft{To: busy.ID, Body: fmt.Sprint("text ", i)})
		b.same(err == nil, i < 3)
	}
	parent := b.person("w", "direct")
	b.child(parent, "direct")
	b.pass(-time.Hour)
	b.same(len(b.take(to).Messages), 1)
	b.same(b.session(to).State, teams.Gone)
	_, _, err := b.Create(b.Context(), parent, b.newChild("direct"), teams.DefaultLimits())
	b.check(err)
	_, err = b.Send(b.Context(), from, teams.Draft{To: busy.ID, Body: "text 4"})
	b.check(err)
}

// A sweep deletes everything that is over, and nothing else.
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
	if _, err := b.Session(b.Context(), child); !errors.Is(err, teams.ErrNoSession) {
		b.Errorf("the child was not deleted: %v", err)
	}
	b.pass(24 * time.Hour)
	b.check(b.Store.Sweep(b.Context(), time.Hour))
	b.same(b.session(parent).State, teams.Ended)
	b.claim(teams.Claim{Key: "key 1", Workspace: "w", Trust: "direct"})
	b.same(b.session(parent).State, teams.Working) // a person can resume an ended session
}
