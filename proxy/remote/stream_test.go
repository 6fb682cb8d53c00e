package remote_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// events writes a part of a stream at once.
func events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", asEvents)
	io.WriteString(w, text)
	http.NewResponseController(w).Flush()
}

// A stream that breaks with an id is taken up again by GET, or the call fails.
func TestU05Resume(t *testing.T) {
	note := func(n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%d}}`, n)
	}
	ask := func(id string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"ping"}`, id) }
	failed := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the stream of the server's answer broke: `
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code) }
	}
	says := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { events(w, text) }
	}
	ends := says("id: 3\ndata:\n\n")
	for _, c := range []struct {
		name   string
		resume []func(http.ResponseWriter)
		want   []string
		asked  string // the ids that were asked for
	}{
		{"ok", []func(http.ResponseWriter){says("id: 3\ndata: " + note(2) + "\n\nid: 4\ndata: " + result + "\n\n")}, []string{note(1), note(2), result}, "2"},
		{"ok at the second attempt", []func(http.ResponseWriter){status(503), says("id: 4\ndata: " + result + "\n\n")}, []string{note(1), result}, "2 2"},
		{"the client polls", []func(http.ResponseWriter){ends, ends, ends, ends, ends, ends, ends, says("id: 4\ndata: " + result + "\n\n")}, []string{note(1), result}, "2 3 3 3 3 3 3 3"},
		{"404", []func(http.ResponseWriter){status(404)}, []string{note(1), failed + "it could not be taken up again: the server answered HTTP 404…"}, "2"},
		{"405", []func(http.ResponseWriter){status(405)}, []string{note(1), failed + "it could not be taken up again: the server answered HTTP 405…"}, "2"},
		{"503 for ever", []func(http.ResponseWriter){status(503)}, []string{note(1), failed + "the server answered HTTP 503…"}, "2 2 2 2 2"},
		{"others' answers are repeated", []func(http.ResponseWriter){
			says(`data: {"jsonrpc":"2.0","id":0,"result":{}}` + "\n\nid: 4\ndata: " + result + "\n\n"),
		}, []string{note(1), result}, "2"},
		{"questions are repeated", []func(http.ResponseWriter){
			says("id: 3\ndata: " + ask("a") + "\n\n"),
			says("id: 3\ndata: " + ask("a") + "\n\nid: 4\ndata: " + ask("b") + "\n\n"),
			says("id: 3\ndata: " + ask("a") + "\n\nid: 4\ndata: " + ask("b") + "\n\nid: 5\ndata: " + result + "\n\n"),
		}, []string{note(1), ask("a"), ask("b"), result}, "2 3 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &legacy{}
				var mu sync.Mutex
				var asked []string
				l.answer = func(w http.ResponseWriter, r request) bool {
					switch {
					case r.method == "tools/call":
						events(w, "id: 1\nretry: 1\ndata:\n\nid: 2\ndata: "+note(1)+"\n\n")
						return true
					case r.verb == http.MethodGet && r.Get("Last-Event-Id") != "":
						mu.Lock()
						defer mu.Unlock()
						asked = append(asked, r.Get("Last-Event-Id"))
						c.resume[min(len(asked), len(c.resume))-1](w)
						return true
					}
					return false
				}
				cl := l.openInMemory(t)
				cl.say(call)
				for _, want := range c.want {
					cl.wants(want)
				}
				cl.over()
				if got := strings.Join(asked, " "); got != c.asked {
					t.Errorf("asked for %v, want %v", got, c.asked)
				}
				if n := len(l.seen("tools/call")); n != 1 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
}

// The server says how long to wait before the stream is taken up again, and one that
// has said next to nothing is not asked without end.
func TestU06Retry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		var waited []time.Duration
		last := time.Now()
		l.answer = func(w http.ResponseWriter, r request) bool {
			switch {
			case r.method == "tools/call":
				events(w, "id: 1\nretry: 300\ndata:\n\n")
			case r.verb == http.MethodGet && r.Get("Last-Event-Id") != "":
				if waited = append(waited, time.Since(last)); len(waited) == 7 {
					events(w, "id: 4\ndata: "+result+"\n\n")
				} else {
					events(w, "")
				}
			default:
				return false
			}
			last = time.Now()
			return true
		}
		c := l.openInMemory(t)
		c.say(call)
		c.wants(result)
		c.over()
		if got, want := fmt.Sprint(waited), "[300ms 300ms 300ms 300ms 300ms 1s 1s]"; got != want {
			t.Errorf("waited %v, want %v", got, want)
		}
	})
}

// The stream of the server's own. What it says goes to the client, and the
// client's answer goes back.
func TestU16ServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ping = `{"jsonrpc":"2.0","id":"p","method":"ping"}`
		const pong = `{"jsonrpc":"2.0","id":"p","result":{}}`
		l := &legacy{}
		answered := make(chan struct{})
		l.answer = func(w http.ResponseWriter, r request) bool {
			switch {
			case r.verb == http.MethodGet && len(l.seen(http.MethodGet)) == 1:
				events(w, ": ok\n\nevent: message\ndata: "+ping+"\n\n")
				<-answered
				return true
			case strings.Contains(r.body, `"id":"p"`):
				close(answered)
			}
			return false
		}
		c := l.openInMemory(t)
		c.wants(ping)
		c.say(pong)
		c.say(call)
		c.wants(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
		<-answered
		c.over()
	})
}

// A server drops what it asks on a stream that is not there yet, so no call overtakes
// the request for the stream.
func TestU16StreamBeforeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		called := make(chan struct{})
		l.answer = func(w http.ResponseWriter, r request) bool {
			switch {
			case r.verb == http.MethodGet && len(l.seen(http.MethodGet)) == 1:
				time.Sleep(time.Second) // in which a call would have come
				if len(l.seen("tools/call")) > 0 {
					t.Error("the call came before the stream was opened")
				}
				events(w, ": ok\n\n")
				<-called
				return true
			case r.method == "tools/call":
				close(called)
			}
			return false
		}
		c := l.openInMemory(t)
		c.say(call)
		c.wants(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
		c.over()
	})
}

// A server that offers no stream of its own is asked once, one that fails ever more
// rarely.
func TestU15OwnStream(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		asked  int // in a minute
	}{
		{"405", 405, 1}, {"404", 404, 1}, {"400", 400, 1}, {"500", 500, 6}, {"it ends at once", 200, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &legacy{}
				l.answer = func(w http.ResponseWriter, r request) bool {
					if r.verb != http.MethodGet {
						return false
					}
					w.Header().Set("Content-Type", asEvents)
					w.WriteHeader(c.status)
					return true
				}
				cl := l.openInMemory(t)
				cl.say(call)
				cl.wants(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
				time.Sleep(time.Minute)
				cl.over()
				if n := len(l.seen(http.MethodGet)); n != c.asked {
					t.Errorf("%d requests, want %d", n, c.asked)
				}
				if n := len(l.seen("initialize")); n != 1 {
					t.Errorf("%d sessions", n)
				}
			})
		})
	}
}

// A GET stream that the server refuses with 401 is opened again, as the credential may have
// been renewed.
func TestOwnStreamAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		l.answer = func(w http.ResponseWriter, r request) bool {
			if r.verb != http.MethodGet {
				return false
			}
			switch len(l.seen(http.MethodGet)) {
			case 1:
				events(w, "")
			case 2, 3:
				w.WriteHeader(http.StatusUnauthorized)
			case 4:
				events(w, "data: "+changed+"\n\n")
			}
			return true
		}
		c := l.openInMemory(t)
		c.wants(changed)
		c.over()
	})
}

// A server that restarts shows in the stream of its own: the session begins again though
// the client says nothing.
func TestSessionLostOnOwnStream(t *testing.T) {
	t.Parallel()
	l := &legacy{}
	var restarted atomic.Bool
	again := make(chan struct{})
	l.answer = func(w http.ResponseWriter, r request) bool {
		switch {
		case r.verb == http.MethodGet && r.session() == "session-1" && !restarted.Swap(true):
			events(w, "retry: 1\ndata:\n\n")
			return true
		case r.session() == "session-1" && restarted.Load() && r.verb == http.MethodGet:
			w.WriteHeader(404)
			return true
		case r.session() == "session-2" && r.method == "notifications/initialized":
			close(again)
		}
		return false
	}
	c := l.openRelayed(t)
	<-again
	c.say(call)
	c.wants(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-2"}}`)
	c.over()
}

// What belongs to a call comes before its answer, and nothing is held back.
func TestNothingIsHeldBack(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
	heard := make(chan struct{})
	c := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		events(w, "data: "+note+"\n\n")
		<-heard
		events(w, "data: "+result+"\n\n")
	})
	c.say(call)
	c.wants(note)
	close(heard)
	c.wants(result)
	c.over()
}

// A cancellation reaches the server behind its request, and the answer may be
// missing.
func TestF27Cancelled(t *testing.T) {
	const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	l := &legacy{}
	called, end := make(chan struct{}), make(chan struct{})
	l.answer = func(w http.ResponseWriter, r request) bool {
		switch r.method {
		case "tools/call":
			events(w, ": ok\n\n")
			close(called)
			<-end
			return true
		case "notifications/cancelled":
			close(end)
		}
		return false
	}
	c := l.open(t)
	c.say(call)
	<-called
	c.say(cancelled)
	c.say(level)
	c.wants(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
	c.over()
	if got := l.seen("notifications/cancelled"); len(got) != 1 || got[0].body != cancelled {
		t.Errorf("cancelled: %v", got)
	}
}

// A request that is cancelled before it has left is not sent, nor is its cancellation, and
// nothing waits behind the two.
func TestCancelledBeforeItHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		c, a := openAway(t, l, 10*time.Second)
		c.begin()
		synctest.Wait()
		a.away.Store(true)
		c.say(call)
		synctest.Wait()
		began := time.Now()
		c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		c.say(level)
		synctest.Wait()
		a.away.Store(false)
		c.wants(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
		if took := time.Since(began); took > time.Second {
			t.Errorf("what follows took %v", took)
		}
		c.over()
		if calls, cancelled := len(l.seen("tools/call")), len(l.seen("notifications/cancelled")); calls+cancelled != 0 {
			t.Errorf("%d calls and %d cancellations reached the server", calls, cancelled)
		}
	})
}

// A cancellation waits for a request that is on its way to a server which does not read, and
// nothing waits behind the cancellation.
func TestCancelledOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		read := make(chan struct{})
		c := connectInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > 1000 {
				<-read
			}
			l.ServeHTTP(w, r)
		}).begin()
		synctest.Wait()
		c.say(strings.Replace(call, `"a"`, `"`+strings.Repeat("a", 1<<20)+`"`, 1))
		synctest.Wait()
		began := time.Now()
		c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		c.say(level)
		c.wants(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
		if took := time.Since(began); took > time.Second {
			t.Errorf("what follows took %v", took)
		}
		if n := len(l.seen("notifications/cancelled")); n != 0 {
			t.Error("the cancellation came before its request")
		}
		close(read)
		c.wants(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
		synctest.Wait()
		c.over()
		if n := len(l.seen("notifications/cancelled")); n != 1 {
			t.Errorf("%d cancellations", n)
		}
	})
}
