package inflight

import (
	"context"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A relay is one in name only.
type relay struct{ relayed.Relay }

func newTable(limit, maxIDs int) *Table {
	return New(limit, maxIDs, func() *Call {
		c := &Call{}
		c.MW.Reset(relay{}, false)
		return c
	})
}

// send adds a call that has a hook, and marks it as sent.
func send(t *Table, id string) *Call {
	c := t.Add([]byte(id))
	c.MW.OnReply(func(context.Context, *wire.Message) error { return nil })
	c.Sent.Store(true)
	return c
}

// A reply answers the oldest call with its id that was sent and has no reply.
func TestReplyOrder(t *testing.T) {
	table := newTable(10, 1<<10)
	first, other, second := send(table, "1"), send(table, `"1"`), send(table, "1")
	unsent := table.Add([]byte("1"))
	for i, want := range []*Call{first, second, nil} {
		c, known, contested := table.Reply([]byte("1"))
		if c != want || known != (want != nil) || contested {
			t.Errorf("reply %d answers %p (known %v, contested %v), want %p", i, c, known, contested, want)
		}
	}
	if c, _, _ := table.Reply([]byte(`"\u0031"`)); c != other {
		t.Errorf("an id with escapes names %p, want %p", c, other)
	}
	if c := table.Cancel([]byte("1"), nil); c != unsent || !c.Cancelled() || table.Claim(c) {
		t.Errorf("cancelled %p, want %p, which nobody can claim", c, unsent)
	}
}

// What Cancel calls can note an id before a reply with that id looks for its call and does not find it.
func TestCancelKeepsRepliesOut(t *testing.T) {
	table := newTable(10, 1<<10)
	c, left := send(table, "1"), false
	table.Cancel([]byte("1"), func(leaving *Call) { left = leaving != c || table.mu.TryLock() })
	if left {
		t.Error("a reply could look for the call too early")
	}
	if _, known, _ := table.Reply([]byte("1")); known {
		t.Error("a cancelled call is in the table")
	}
}

// If two calls have the same id, nobody can tell which reply is whose. So both count as contested if one
// of the replies must be held.
func TestContested(t *testing.T) {
	for _, test := range []struct {
		id          string
		holds, sent bool
		want        bool
	}{
		{"0", true, true, true}, {"-0", true, true, true}, {`"0"`, true, true, false},
		{"0", false, true, false}, {"-0", false, true, false}, {"0", true, false, false}, {"-0", true, false, false},
		{"-01", true, true, false}, {"1234567890123456", true, true, false},
	} {
		table := newTable(10, 1<<10)
		send(table, "0")
		c := send(table, test.id)
		c.Sent.Store(test.sent)
		if test.holds {
			c.MW.MustHold()
		}
		if _, _, contested := table.Reply([]byte("0")); contested != test.want {
			t.Errorf("the reply to 0 with %+v in flight is contested: %v", test, contested)
		}
	}
}

// Calls and the bytes of long ids are limited, and a call that has ended makes room.
func TestLimits(t *testing.T) {
	long := `"an id that is too long to be kept in the key of a call"`
	escaped := strings.Replace(long, "a", `\u0061`, 1)
	for _, ids := range [][]string{{"1", "2", "3"}, {long}, {escaped}} {
		table := newTable(3, len(long))
		var last *Call
		for _, id := range ids {
			if table.Full() != nil {
				t.Fatalf("the table is full before %s", id)
			}
			last = send(table, id)
		}
		room := table.Full()
		if room == nil {
			t.Fatalf("the table has room after %q", ids)
		}
		table.End(last)
		<-room
		if again := table.Add([]byte("4")); again != last || again.Sent.Load() || again.MW.Hooked() {
			t.Errorf("the call of the last request is not used again, or not reset")
		}
	}
}

// A deferred call that was answered in another way is not answered again, whatever it stands for now.
func TestClaimDeferred(t *testing.T) {
	table := newTable(10, 1<<10)
	c := table.Add([]byte("1"))
	seq, ok := table.Defer(c, func() {})
	if !ok || !table.Claim(c) {
		t.Fatal("the call could not be deferred, or not claimed")
	}
	table.End(c)
	if table.Add([]byte("2")) != c || table.ClaimDeferred(c, seq) {
		t.Error("the work of an answered call claims the next request")
	}
}

// A call is deferred once, and not after it has an answer or was cancelled.
func TestDefer(t *testing.T) {
	for what, spoil := range map[string]func(*Table, *Call){
		"answered":  func(t *Table, c *Call) { t.Claim(c) },
		"cancelled": func(t *Table, c *Call) { t.Cancel([]byte("1"), nil) },
		"deferred":  func(t *Table, c *Call) { t.Defer(c, func() {}) },
	} {
		table := newTable(10, 1<<10)
		c := table.Add([]byte("1"))
		spoil(table, c)
		if _, ok := table.Defer(c, func() {}); ok {
			t.Errorf("a call that is %s was deferred", what)
		}
	}
}

// A call leaves the table alone, wherever it is among those with its id.
func TestEndOfAny(t *testing.T) {
	for gone := range 3 {
		table := newTable(3, 1<<10)
		calls := []*Call{send(table, "1"), send(table, "1"), send(table, "1")}
		if !table.Claim(calls[gone]) {
			t.Fatal("the call was not claimed")
		}
		table.End(calls[gone])
		if table.Full() != nil || table.Any(func(c *Call) bool { return c == calls[gone] }) {
			t.Errorf("call %d is still in the table", gone)
		}
		for i, want := range calls {
			if i == gone {
				continue
			}
			if c, _, _ := table.Reply([]byte("1")); c != want {
				t.Errorf("without call %d, a reply is not that of call %d", gone, i)
			}
		}
		if table.Awaits([]byte("1")) {
			t.Errorf("without call %d, a third one awaits a reply", gone)
		}
	}
}

// A reply under another spelling of an id goes to the oldest call that holds its reply.
func TestClaimSpelled(t *testing.T) {
	for _, test := range []struct {
		ids  string // in order of arrival; + marks calls that hold their reply
		raw  string
		want int // -1 for none
	}{
		{"1+ 2+", `"1"`, 0},
		{"2+ 1+", `"1"`, 1},
		{"1 1.0+ 1+", `"1"`, 1},
		{`"1"+ 1+ 1.0+ 10e-1+`, "1e0", 0},
		{`1 2+`, `"1"`, -1},
		{`1+`, `"x"`, -1},
	} {
		table := newTable(10, 1<<10)
		var calls []*Call
		for id := range strings.FieldsSeq(test.ids) {
			id, holds := strings.CutSuffix(id, "+")
			c := send(table, id)
			if holds {
				c.MW.MustHold()
			}
			calls = append(calls, c)
		}
		var want *Call
		if test.want >= 0 {
			want = calls[test.want]
		}
		if c := table.ClaimSpelled([]byte(test.raw)); c != want || c != nil && table.Claim(c) {
			t.Errorf("%s is taken for the reply to %v, want number %d of %s", test.raw, c, test.want, test.ids)
		}
	}
}

// The client's direction sets the array of a call that is not yet sent, while the server's direction looks for calls that
// came in arrays. The race detector fails this test if the latter reads the array of such a call.
func TestAwaitsBatchWhileAdded(t *testing.T) {
	table := newTable(10, 1<<10)
	c := table.Add([]byte("1"))
	looked := make(chan bool)
	go func() { looked <- table.AwaitsBatch() }()
	c.Batch = &Batch{}
	if <-looked {
		t.Error("a call that was not sent awaits a reply")
	}
	if table.SendInBatch(c); !table.AwaitsBatch() {
		t.Error("a call that was sent awaits no reply")
	}
}

// Answers that wait for the array of the server take room until they are written.
func TestWaitingAnswersAreLimited(t *testing.T) {
	table, b := newTable(10, 1<<10), &Batch{}
	answer := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":"`+strings.Repeat("i", 1<<10)+`","result":{}}`))
	table.AnswerLater(b, answer, nil)
	room := table.Full()
	if room == nil {
		t.Fatal("the table has room")
	}
	table.BatchWritten(b)
	if answers, _ := table.TakeAnswers(b, false); len(answers) != 1 {
		t.Fatalf("%d answers can be written", len(answers))
	}
	<-room
	if table.Full() != nil {
		t.Error("the table has no room after the answer was written")
	}
}

// The lines of calls that may be repeated are kept only up to a limit, and only while a call is in the table.
func TestKeptLinesAreLimited(t *testing.T) {
	table := newTable(10, 1<<10)
	first, second := send(table, "1"), send(table, "2")
	if !table.Reserve(first, 1<<10) || table.Reserve(second, 1) || table.Full() != nil {
		t.Error("want room only for the first line, for which no client waits")
	}
	table.Cancel([]byte("1"), nil)
	if table.Reserve(first, 1) { // a handler may still run
		t.Error("a call that was cancelled takes room")
	}
	if !table.Reserve(second, 1<<10) {
		t.Error("a call that was cancelled makes no room")
	}
}

// A call with a long id is not used again: until then its id would stay in memory.
func TestLongIDsAreNotRecycled(t *testing.T) {
	table := newTable(10, 1<<20)
	short, long, escaped := send(table, "1"), send(table, `"`+strings.Repeat("i", 1<<10)+`"`), send(table, `"`+strings.Repeat(`\n`, 1<<9)+`"`)
	for _, c := range []*Call{short, long, escaped} {
		table.End(c)
	}
	if next := table.Add([]byte("2")); next != short {
		t.Error("a call with a long id is used again")
	}
	if next := table.Add([]byte("3")); next == long || next == escaped {
		t.Error("a call with a long id is used again")
	}
}
