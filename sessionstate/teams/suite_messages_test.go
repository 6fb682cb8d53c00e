package teams_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/sessionstate/teams"
)

// whoMayWrite tests all combinations of trust and relation.
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

// pair makes two sessions with a relation. It returns false if the pair is impossible, because a
// child has at most its parent's trust.
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

// Each limit for a sender that writes too often has its own text.
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

// A message that is sent twice with the same key is in the mailbox once.
func sendKey(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	d := teams.Draft{To: to.ID, Body: "hello", SendKey: "k"}
	first, err := b.Send(b.Context(), from, d)
	b.check(err)
	d.Body = "hello again"
	again, err := b.Send(b.Context(), from, d)
	b.check(err)
	b.same([]any{again.ID, again.Length, b.session(to).Queued}, []any{first.ID, 5, 1})
	ids := []string{first.ID}
	for _, other := range []struct {
		from, to teams.Ref
		key      string
	}{{from, to, "another"}, {from, b.person("w", "direct"), "k"}, {b.person("w", "direct"), to, "k"}} {
		b.pass(time.Hour)
		sent, err := b.Send(b.Context(), other.from, teams.Draft{To: other.to.ID, Body: "hello", SendKey: other.key})
		b.check(err)
		if slices.Contains(ids, sent.ID) {
			b.Errorf("a message of another key, target or sender was returned: %+v", sent)
		}
		ids = append(ids, sent.ID)
	}
}

// The same calls at once, with a key, have one result.
func keysAtOnce(b *bench) {
	for range 5 {
		from, to, c := b.person("w", "direct"), b.person("w", "direct"), b.newChild("direct")
		c.SpawnKey = "k"
		var wait sync.WaitGroup
		for range 6 {
			wait.Go(func() {
				if _, err := b.Send(b.Context(), from, teams.Draft{To: to.ID, Body: "hello", SendKey: "k"}); err != nil {
					b.Error(err)
				}
				if _, _, err := b.Create(b.Context(), from, c, teams.DefaultLimits()); err != nil {
					b.Error(err)
				}
			})
		}
		wait.Wait()
		b.same([]any{b.session(to).Queued, b.session(from).Children}, []any{1, 1})
	}
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

// One taker at a time, in the order of sending.
func takeInOrder(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	mail := func() bool {
		newest, err := b.Mail(b.Context(), to)
		b.check(err)
		return newest > 0
	}
	before, err := b.Version(b.Context(), time.Hour)
	b.check(err)
	b.same(mail(), false)
	for _, body := range []string{"one", "two", "three"} {
		b.write(from, to, body)
	}
	after, err := b.Version(b.Context(), time.Hour)
	b.check(err)
	b.same([]any{mail(), before == after}, []any{true, false})

	first := b.take(to)
	b.same(len(first.Messages), 3)
	other := b.take(to) // while another taker holds the inbox
	b.same(len(other.Messages), 0)
	b.same(other.Remaining, 3)
	b.write(from, to, "four")
	b.settle(first, teams.Arrived)
	b.same(b.read(to), []string{"four"})
	b.same([]any{mail(), b.session(to).Queued}, []any{false, 0})

	b.write(from, to, "five")
	b.settle(b.take(to), teams.NotSent)
	second := b.take(to)
	b.same([]any{second.Messages[0].Body, second.Messages[0].Again, second.Messages[0].Relation}, []any{"five", false, teams.FromPeer})
}

// A tool result carries as many messages as fit, and cuts a message that is too long on its own.
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
	b.same(len(carry().Messages), 0) // a cut message is not carried again
	newest, err := b.Mail(b.Context(), to)
	b.check(err)
	b.same(newest, int64(0))

	peek, err := b.Take(b.Context(), to, teams.TakeOption{Limit: teams.ReadLimit, Peek: true})
	b.check(err)
	b.same([]any{len(peek.Messages), peek.Messages[0].Body == long, peek.Messages[0].Again}, []any{1, true, false})
	read := b.take(to)
	b.same([]any{len(read.Messages), read.Messages[0].Body == long, read.Messages[0].Again}, []any{1, true, false}) // a peek does not count
	b.settle(read, teams.Arrived)
	b.same(b.session(to).Queued, 0)
}

// No limit applies to results, so only the first of many are taken at once: their texts would not fit into memory,
// and reading them would take longer than a tool result waits.
func takeOfMany(b *bench) {
	parent := b.person("w", "direct")
	run := teams.RunRef{Ref: b.child(parent, "direct")}
	const many = 60
	for i := range many {
		run.Run++
		_, err := b.EndRun(b.Context(), run, teams.Ending{Report: fmt.Sprint(i)})
		b.check(err)
		b.write(parent, run.Ref, fmt.Sprint(i))
		_, err = b.BeginRun(b.Context(), run.Ref, teams.DefaultLimits(), "key", "token")
		b.check(err)
		b.settle(b.take(run.Ref), teams.Arrived)
		b.pass(time.Minute)
	}
	var got []string
	for _, want := range []int{50, many - 50} {
		taking := b.take(parent)
		b.same([]any{len(taking.Messages), taking.Remaining}, []any{want, many - len(got) - want})
		for _, m := range taking.Messages {
			got = append(got, m.Body)
		}
		b.settle(taking, teams.Arrived)
	}
	for i, body := range got {
		b.same(body, fmt.Sprint(i))
	}
}

// Messages that a dead taker has not settled are taken again and marked.
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

// A message that the client may not have shown is delivered three times.
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

// The sender gets one notice of a message that an agent did not read, also if that is recorded twice.
func unread(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	b.write(from, to, "one")
	taking := b.take(to)
	b.settle(taking, teams.Unread)
	b.settle(taking, teams.Unread)
	b.same([]any{len(b.take(to).Messages), b.session(to).Queued}, []any{0, 0})
	messages := b.take(from).Messages
	if len(messages) != 1 || messages[0].Kind != teams.Notice || !strings.Contains(messages[0].Body, "before it had read all") {
		b.Errorf("the sender got %+v", messages)
	}
	all, err := b.Store.Receipts(b.Context(), from)
	b.check(err)
	b.same([]any{len(all), all[0].State}, []any{1, "undeliverable"})
}

// The sender gets each change once.
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

	b.write(from, to, "two")
	b.pass(time.Minute)
	_, err := b.EndByOperator(b.Context(), to)
	b.check(err)
	ended := b.now()
	b.pass(time.Minute)
	all, err := b.Store.Receipts(b.Context(), from)
	b.check(err)
	b.same([]any{len(all), all[0].State, all[0].At}, []any{1, "undeliverable", ended})
}

// A sender that has not asked for long gets the newest receipts first, a bounded number at once.
func manyReceipts(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	const more = 5
	for i := range teams.MaxReceipts + more {
		b.pass(time.Minute)
		b.write(from, to, fmt.Sprint(i))
		b.settle(b.take(to), teams.Arrived)
	}
	var times [][]time.Time
	for range 3 {
		all, err := b.Store.Receipts(b.Context(), from)
		b.check(err)
		var at []time.Time
		for _, r := range all {
			at = append(at, r.At)
		}
		times = append(times, at)
	}
	b.same([]any{len(times[0]), len(times[1]), len(times[2])}, []any{teams.MaxReceipts, more, 0})
	if newest := times[0][0]; !times[1][more-1].Before(newest) {
		b.Errorf("the older receipts, until %v, came before those from %v", times[1][more-1], newest)
	}
}

// A sender gets a notice of a message that will not arrive.
func expiry(b *bench) {
	from, to := b.person("w", "direct"), b.person("w", "direct")
	b.write(from, to, "one")
	b.pass(teams.Expiry)
	b.claim(teams.Claim{Key: "key 1", Workspace: "w", Trust: "direct"})
	for range 2 {
		b.check(b.Store.Sweep(b.Context(), time.Hour))
	}
	messages := b.take(from).Messages
	if len(messages) != 1 || messages[0].Kind != teams.Notice || !strings.Contains(messages[0].Body, "did not arrive") {
		b.Errorf("the sender got %+v", messages)
	}
	all, err := b.Store.Receipts(b.Context(), from)
	b.check(err)
	b.same([]any{len(all), all[0].State, b.session(to).Queued}, []any{1, "expired", 0})
}
