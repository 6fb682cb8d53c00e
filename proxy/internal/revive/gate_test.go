package revive

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// The lines that wait for a server which ends while they are written wait for the next one,
// except those that the server may have read.
func TestOpenOfServerThatEnds(t *testing.T) {
	const first, second = `{"id":1}` + "\n", `{"id":2}` + "\n"
	for _, test := range []struct {
		ended bool // before the gate was opened
		takes int
		want  string
	}{
		{false, 0, first + second},
		{false, len(first) - 2, first + second},
		{false, len(first), second},
		{false, len(first + second), ""},
		{true, len(first + second), first + second},
	} {
		l := NewLink(LinkOptions{Limit: 1 << 20, Hold: time.Hour, Expired: func(*Link) {}}, Ending{})
		for _, line := range []string{first, second} {
			l.In.Queue([]byte(line), nil)
			_ = l.In.Flush()
		}
		if test.ended {
			l.Gate.Close()
		}
		l.Gate.Open(&brokenServer{takes: test.takes}, func(lines []byte) []byte { return lines })
		if l.Gate.IsOpen() == test.ended {
			t.Errorf("%+v: the gate is open: %t", test, l.Gate.IsOpen())
		}
		if lines, _ := l.Leftover(time.Hour); string(lines) != test.want {
			t.Errorf("%+v: %q are left", test, lines)
		}
	}
}

// A gate holds lines until the first of them has waited for its time.
func TestDeadlineIsThatOfTheFirstLine(t *testing.T) {
	l := NewLink(LinkOptions{Limit: 1, Hold: time.Hour, Expired: func(*Link) {}}, Ending{})
	first := time.Now().Add(time.Hour)
	l.Gate.Keep([]byte("{}\n"), first)
	l.Gate.Keep([]byte("{}\n"), first.Add(time.Hour))
	if lines, deadline := l.Gate.TakeKept(); string(lines) != "{}\n{}\n" || !deadline.Equal(first) {
		t.Errorf("%q may wait until %v, want %v", lines, deadline, first)
	}
}

// A long line, which waits outside of the gate, needs the server too.
func TestAwaitWantsTheServer(t *testing.T) {
	l := NewLink(LinkOptions{}, Ending{})
	over := make(chan struct{})
	close(over)
	if l.Gate.Await(nil, over) {
		t.Error("the gate was opened or replaced")
	}
	select {
	case <-l.Gate.wanted:
	default:
		t.Error("the server is not wanted")
	}
}

// A line that waits for room follows the lines before it when the gate is opened. A message of attache's own does
// not wait for room.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLink(LinkOptions{Limit: 1, Hold: time.Hour, Expired: func(*Link) {}, Watch: func([]byte) {}}, Ending{})
		l.Queue(wire.Parse(wire.Client, []byte("1\n")), nil)
		go l.Gate.Write([]byte("3\n"))
		synctest.Wait()
		l.Queue(wire.Parse(wire.Client, []byte("2\n")), nil)
		var got bytes.Buffer
		l.Gate.Open(&got, func(lines []byte) []byte { return lines })
		synctest.Wait()
		if got.String() != "1\n2\n3\n" {
			t.Errorf("the server gets %q", got.String())
		}
	})
}

// The end of a session frees a writer that waits for a server which never was ready. A gate that is not
// full makes no writer wait.
func TestEndClosesTheGate(t *testing.T) {
	const line = "{}\n"
	for _, lines := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLink(LinkOptions{Limit: lines * len(line), Hold: time.Hour, Expired: func(*Link) {}}, NewEnding(nil))
			written := make(chan error, lines+1)
			go func() {
				for range lines + 1 { // one more than there is room for
					_, err := l.Gate.Write([]byte(line))
					written <- err
				}
			}()
			synctest.Wait()
			if _, err := l.End(0); err != nil {
				t.Error(err)
			}
			for i := range lines {
				if err := <-written; err != nil {
					t.Errorf("line %d of %d: %v", i, lines, err)
				}
			}
			if err := <-written; !errors.Is(err, errEnded) {
				t.Errorf("the writer after %d lines got %v", lines, err)
			}
		})
	}
}

// A server that has closed its input gets no more time to end if more lines wait than the limit allows.
func TestMayEndIsBounded(t *testing.T) {
	l := NewLink(LinkOptions{Limit: 10}, Ending{})
	if l.Unsent.Add([]byte("{}       \n")); !l.MayEnd(func() {}) {
		t.Error("a line of the size of the limit does not wait")
	}
	if l.Unsent.Add([]byte("\n")); l.MayEnd(func() {}) {
		t.Error("more lines wait than the limit allows")
	}
	synctest.Test(t, func(t *testing.T) {
		l, late := NewLink(LinkOptions{}, Ending{}), false
		l.Connect(&brokenServer{})
		if !l.MayEnd(func() { late = true }) {
			t.Error("it gets no time to end")
		}
		time.Sleep(2 * endTime)
		if synctest.Wait(); !late || l.MayEnd(func() {}) {
			t.Error("it gets more time to end")
		}
		if l.stop(); !l.MayEnd(func() {}) {
			t.Error("it does not end, though it is stopped")
		}
	})
}

// A server that loses sessions is not in a crash loop, unless it was never ready for one. Nor is a server that is
// restarted by hand, or whose recording is played.
func TestLostSessionsAreNoCrashLoop(t *testing.T) {
	for _, test := range []struct{ lost, ready, ordered, unpaced, down bool }{
		{lost: true, ready: true}, {lost: true, down: true}, {ready: true, down: true}, {ready: true, ordered: true}, {ready: true, unpaced: true},
	} {
		v := New(nil, Policy{Unpaced: test.unpaced}, Options{})
		now := time.Now()
		for range manyDeaths {
			last := NewLink(LinkOptions{}, Ending{})
			if test.ready {
				last.ready = now
			}
			if test.ordered {
				v.byHand <- struct{}{}
			}
			v.nextLink(last, Ending{lost: test.lost}, now)
		}
		if v.pace.Down() != test.down || test.ordered && v.pace.tries > 0 {
			t.Errorf("%+v: %v", test, v.pace.Down())
		}
	}
}

// A request of a server whose id belongs to one that the client has not answered gets another id,
// and its own when the client answers or the server cancels it.
func TestIDsOfServersThatHaveEnded(t *testing.T) {
	var r serverRequests
	parse := func(from wire.Peer, line string) *wire.Message { return wire.Parse(from, []byte(line+"\n")) }
	newID := func() string { return `"new"` }
	step := func(what string, m *wire.Message, want string, err error) {
		t.Helper()
		if got := strings.TrimSpace(string(m.Line())); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", what, got, err, want)
		}
	}
	const ping, answer = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`
	m := parse(wire.Server, ping)
	step("the first server", m, ping, r.Asked(m, newID))
	const nothing = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`
	m = parse(wire.Server, nothing)
	step("a cancellation of nothing", m, nothing, r.Cancelled(m))
	if ids := r.Orphan(); len(ids) != 1 || string(ids[0]) != "1" {
		t.Errorf("%q have no answer", ids)
	}
	m = parse(wire.Server, ping)
	step("the second server", m, strings.Replace(ping, "1,", `"new",`, 1), r.Asked(m, newID))
	m = parse(wire.Server, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	step("a cancellation", m, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"new"}}`, r.Cancelled(m))
	if m = parse(wire.Client, answer); !r.Answered(m) {
		t.Error("an answer for the first server was not dropped")
	}
	if m = parse(wire.Client, strings.Replace(answer, "1,", `"new",`, 1)); r.Answered(m) {
		t.Error("an answer for the second server was dropped")
	}
	step("an answer", m, answer, nil)
	m = parse(wire.Server, ping)
	step("the id is free again", m, ping, r.Asked(m, newID))
	r.Orphan()
	m = parse(wire.Server, ping)
	step("the third server", m, strings.Replace(ping, "1,", `"new",`, 1), r.Asked(m, newID))
	r.Orphan()
	m = parse(wire.Server, ping)
	newest := func() string { return `"newest"` }
	step("the fourth server", m, strings.Replace(ping, "1,", `"newest",`, 1), r.Asked(m, newest))
	for range 20 { // the order of a map varies
		m = parse(wire.Server, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		step("a cancellation of the fourth server", m, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"newest"}}`, r.Cancelled(m))
	}
	if m = parse(wire.Client, strings.Replace(answer, "1,", `"new",`, 1)); !r.Answered(m) {
		t.Error("an answer for the third server was not dropped")
	}
}

// So many requests of a server are tracked, and no more, so that memory stays bounded.
func TestServerRequestsAreBounded(t *testing.T) {
	var r serverRequests
	ask := func(id int) {
		m := wire.Parse(wire.Server, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", id))
		if err := r.Asked(m, func() string { return `"new"` }); err != nil {
			t.Error(err)
		}
	}
	for i := range maxRequests / 2 {
		ask(i)
	}
	orphans := len(r.Orphan())
	for i := range maxRequests/2 + 1 {
		ask(maxRequests + i)
	}
	if open := len(r.Orphan()); orphans != maxRequests/2 || open != maxRequests/2 {
		t.Errorf("%d requests of the first server and %d of the second are tracked", orphans, open)
	}
}

// A request with a long id is not tracked, so that memory stays bounded.
func TestLongIDsAreNotTracked(t *testing.T) {
	var r serverRequests
	for _, length := range []int{maxID - 2, maxID - 1} { // without the quotes
		m := wire.Parse(wire.Server, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%s","method":"ping"}`+"\n", strings.Repeat("i", length)))
		if err := r.Asked(m, nil); err != nil {
			t.Error(err)
		}
	}
	if n := len(r.Orphan()); n != 1 {
		t.Errorf("%d requests are tracked, want the one with the shorter id", n)
	}
}
