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

// writeEvents writes and flushes a part of an event stream.
func writeEvents(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", asEvents)
	io.WriteString(w, text)
	http.NewResponseController(w).Flush()
}

// A broken stream that has an event id is resumed by GET, or the call fails.
func TestU05Resume(t *testing.T) {
	note := func(n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%d}}`, n)
	}
	ask := func(id string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"ping"}`, id) }
	failed := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the stream of the server's answer broke: `
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code) }
	}
	stream := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { writeEvents(w, text) }
	}
	end := stream("id: 3\ndata:\n\n")
	for _, c := range []struct {
		name   string
		resume []func(http.ResponseWriter)
		want   []string
		asked  string // the values of Last-Event-Id
	}{
		{"resumed", []func(http.ResponseWriter){stream("id: 3\ndata: " + note(2) + "\n\nid: 4\ndata: " + result + "\n\n")}, []string{note(1), note(2), result}, "2"},
		{"resumed at the second attempt", []func(http.ResponseWriter){status(503), stream("id: 4\ndata: " + result + "\n\n")}, []string{note(1), result}, "2 2"},
		{"the server has not noticed the break yet", []func(http.ResponseWriter){status(409), stream("id: 4\ndata: " + result + "\n\n")}, []string{note(1), result}, "2 2"},
		{"the client polls", []func(http.ResponseWriter){end, end, end, end, end, end, end, stream("id: 4\ndata: " + result + "\n\n")}, []string{note(1), result}, "2 3 3 3 3 3 3 3"},
		{"404", []func(http.ResponseWriter){status(404)}, []string{note(1), failed + "it could not be taken up again: the server answered HTTP 404…"}, "2"},
		{"405", []func(http.ResponseWriter){status(405)}, []string{note(1), failed + "it could not be taken up again: the server answered HTTP 405…"}, "2"},
		{"503 forever", []func(http.ResponseWriter){status(503)}, []string{note(1), failed + "the server answered HTTP 503…"}, "2 2 2 2 2"},
		{"answers to other requests are repeated", []func(http.ResponseWriter){
			stream(`data: {"jsonrpc":"2.0","id":0,"result":{}}` + "\n\nid: 4\ndata: " + result + "\n\n"),
		}, []string{note(1), result}, "2"},
		{"server requests are repeated", []func(http.ResponseWriter){
			stream("id: 3\ndata: " + ask("a") + "\n\n"),
			stream("id: 3\ndata: " + ask("a") + "\n\nid: 4\ndata: " + ask("b") + "\n\n"),
			stream("id: 3\ndata: " + ask("a") + "\n\nid: 4\ndata: " + ask("b") + "\n\nid: 5\ndata: " + result + "\n\n"),
		}, []string{note(1), ask("a"), ask("b"), result}, "2 3 4"},
		{"the stream ends before the end of an event", []func(http.ResponseWriter){
			stream("id: 3\ndata: " + note(2) + "\n"), stream("id: 4\ndata: " + result),
		}, []string{note(1), note(2), result}, "2 3"},
		{"the stream ends in the middle of an event", []func(http.ResponseWriter){
			stream("id: 3\ndata: " + note(2)[:20]), stream("id: 3\ndata: " + note(2) + "\n\nid: 4\ndata: " + result + "\n\n"),
		}, []string{note(1), note(2), result}, "2 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &legacy{}
				var mu sync.Mutex
				var asked []string
				l.answer = func(w http.ResponseWriter, r request) bool {
					switch {
					case r.method == "tools/call":
						writeEvents(w, "id: 1\nretry: 1\ndata:\n\nid: 2\ndata: "+note(1)+"\n\n")
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
				cl.send(call)
				for _, want := range c.want {
					cl.expect(want)
				}
				cl.close()
				if got := strings.Join(asked, " "); got != c.asked {
					t.Errorf("resumed from %v, want %v", got, c.asked)
				}
				if n := len(l.seen("tools/call")); n != 1 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
}

// A server may end the stream of initialize before the answer, too. The session id came with the head.
func TestResumeInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		l.answer = func(w http.ResponseWriter, r request) bool {
			switch {
			case r.method == "initialize":
				w.Header().Set("Mcp-Session-Id", "s")
				writeEvents(w, "id: 1\nretry: 1\ndata:\n\n")
			case r.verb == http.MethodGet && r.session() != "s":
				w.WriteHeader(400)
			case r.verb == http.MethodGet && r.Get("Last-Event-Id") == "1":
				writeEvents(w, "id: 2\ndata: "+agreed+"\n\n")
			default:
				return false
			}
			return true
		}
		l.openInMemory(t).close()
	})
}

// The server sets the delay before a stream is resumed. If resumed streams bring no messages, the
// delay grows.
func TestU06Retry(t *testing.T) {
	for _, text := range []string{"", "data: " + result[:20]} {
		synctest.Test(t, func(t *testing.T) {
			l := &legacy{}
			var waited []time.Duration
			last := time.Now()
			l.answer = func(w http.ResponseWriter, r request) bool {
				switch {
				case r.method == "tools/call":
					writeEvents(w, "id: 1\nretry: 300\ndata:\n\n")
				case r.verb == http.MethodGet && r.Get("Last-Event-Id") != "":
					if waited = append(waited, time.Since(last)); len(waited) == 7 {
						writeEvents(w, "id: 4\ndata: "+result+"\n\n")
					} else {
						writeEvents(w, text)
					}
				default:
					return false
				}
				last = time.Now()
				return true
			}
			c := l.openInMemory(t)
			c.send(call)
			c.expect(result)
			c.close()
			if got, want := fmt.Sprint(waited), "[300ms 300ms 300ms 300ms 300ms 1s 1s]"; got != want {
				t.Errorf("%q: waited %v, want %v", text, got, want)
			}
		})
	}
}

// Requests on the server's own GET stream reach the client, and the client's answer reaches the
// server.
func TestU16ServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ping = `{"jsonrpc":"2.0","id":"p","method":"ping"}`
		const pong = `{"jsonrpc":"2.0","id":"p","result":{}}`
		l := &legacy{}
		answered := make(chan struct{})
		l.answer = func(w http.ResponseWriter, r request) bool {
			switch {
			case r.verb == http.MethodGet && len(l.seen(http.MethodGet)) == 1:
				writeEvents(w, ": ok\n\nevent: message\ndata: "+ping+"\n\n")
				<-answered
				return true
			case strings.Contains(r.body, `"id":"p"`):
				close(answered)
			}
			return false
		}
		c := l.openInMemory(t)
		c.expect(ping)
		c.send(pong)
		c.send(call)
		c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
		<-answered
		c.close()
	})
}

// attache serve keeps no events of a GET stream, so a request with the id of an earlier one is another one: the server
// behind it may be another process, as after a restart of the front.
func TestServerAsksBehindFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		l := &legacy{}
		l.answer = func(w http.ResponseWriter, r request) bool {
			n := len(l.seen(http.MethodGet))
			if r.verb != http.MethodGet || n > 2 {
				return false
			}
			writeEvents(w, fmt.Sprintf("event: prime\nid: get.%d\ndata: \n\nevent: message\ndata: %s\n\n", n, ping))
			return true
		}
		c := l.openInMemory(t)
		c.expect(ping)
		c.expect(ping)
		c.close()
	})
}

// A server drops its requests while no GET stream is open, so no call is sent before the GET.
func TestU16StreamBeforeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		called := make(chan struct{})
		l.answer = func(w http.ResponseWriter, r request) bool {
			switch {
			case r.verb == http.MethodGet && len(l.seen(http.MethodGet)) == 1:
				time.Sleep(time.Second) // a call could be sent now
				if len(l.seen("tools/call")) > 0 {
					t.Error("the call was sent before the stream was opened")
				}
				writeEvents(w, ": ok\n\n")
				<-called
				return true
			case r.method == "tools/call":
				close(called)
			}
			return false
		}
		c := l.openInMemory(t)
		c.send(call)
		c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
		c.close()
	})
}

// A GET stream that the server does not offer is requested once; one that fails is requested with
// growing delays of up to 30 s.
func TestU15OwnStream(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		asked  int // in 130 s: without the limit, the last requests would come after 63 and 127 s
	}{
		{"405", 405, 1}, {"404", 404, 1}, {"400", 400, 1}, {"500", 500, 9}, {"empty stream", 200, 9},
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
				cl.send(call)
				cl.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
				time.Sleep(130 * time.Second)
				cl.close()
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
// been renewed. So is one that it refuses with 409, as the server may still write to the old stream.
func TestOwnStreamAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		l.answer = func(w http.ResponseWriter, r request) bool {
			if r.verb != http.MethodGet {
				return false
			}
			switch len(l.seen(http.MethodGet)) {
			case 1:
				writeEvents(w, "")
			case 2:
				w.WriteHeader(http.StatusUnauthorized)
			case 3:
				w.WriteHeader(http.StatusConflict)
			case 4:
				writeEvents(w, "data: "+changed+"\n\n")
			}
			return true
		}
		c := l.openInMemory(t)
		c.expect(changed)
		c.close()
	})
}

// A GET stream that ends because the server restarted reopens the session, even if the client sends
// nothing.
func TestSessionLostOnOwnStream(t *testing.T) {
	t.Parallel()
	l := &legacy{}
	var restarted atomic.Bool
	again := make(chan struct{})
	l.answer = func(w http.ResponseWriter, r request) bool {
		switch {
		case r.verb == http.MethodGet && r.session() == "session-1" && !restarted.Swap(true):
			writeEvents(w, "retry: 1\ndata:\n\n")
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
	c.send(call)
	c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-2"}}`)
	c.close()
}

// Messages on the stream of a call are delivered immediately, before its answer.
func TestMessagesBeforeAnswer(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
	received := make(chan struct{})
	c := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		writeEvents(w, "data: "+note+"\n\n")
		<-received
		writeEvents(w, "data: "+result+"\n\n")
	})
	c.send(call)
	c.expect(note)
	close(received)
	c.expect(result)
	c.close()
}

// A cancellation is sent after its request, and the request need not be answered.
func TestF27Cancelled(t *testing.T) {
	const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	l := &legacy{}
	called, end := make(chan struct{}), make(chan struct{})
	l.answer = func(w http.ResponseWriter, r request) bool {
		switch r.method {
		case "tools/call":
			writeEvents(w, ": ok\n\n")
			close(called)
			<-end
			return true
		case "notifications/cancelled":
			close(end)
		}
		return false
	}
	c := l.open(t)
	c.send(call)
	<-called
	c.send(cancelled)
	c.send(level)
	c.expect(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
	c.close()
	if got := l.seen("notifications/cancelled"); len(got) != 1 || got[0].body != cancelled {
		t.Errorf("cancelled: %v", got)
	}
}

// A server need not answer a cancelled request. Its stream is not read for ever.
func TestF27CancelledStreamIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called, ended atomic.Bool
		l := &legacy{answer: func(w http.ResponseWriter, r request) bool {
			if r.method == "tools/call" {
				writeEvents(w, ": ok\n\n")
			}
			return r.method == "tools/call"
		}}
		c := connectInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			l.ServeHTTP(w, r)
			if len(l.seen("tools/call")) > 0 && called.CompareAndSwap(false, true) {
				<-r.Context().Done()
				ended.Store(true)
			}
		}).initialize()
		c.send(call)
		synctest.Wait()
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if ended.Load() {
			t.Error("the stream was closed within 29 s")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !ended.Load() {
			t.Error("the stream is open after 31 s")
		}
		c.close()
	})
}

// A request that is cancelled before it is sent is dropped with its cancellation, and neither
// blocks later messages.
func TestCancelledBeforeSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		c, network := openFlaky(t, l, 10*time.Second)
		c.initialize()
		synctest.Wait()
		network.down.Store(true)
		c.send(call)
		synctest.Wait()
		began := time.Now()
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		c.send(level)
		synctest.Wait()
		network.down.Store(false)
		c.expect(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
		if took := time.Since(began); took > time.Second {
			t.Errorf("the next message took %v", took)
		}
		c.close()
		if calls, cancelled := len(l.seen("tools/call")), len(l.seen("notifications/cancelled")); calls+cancelled != 0 {
			t.Errorf("%d calls and %d cancellations reached the server", calls, cancelled)
		}
	})
}

// A cancellation waits while its request is being written to a server that does not read. It does
// not block later messages.
func TestCancelledDuringSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		read := make(chan struct{})
		c := connectInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > 1000 {
				<-read
			}
			l.ServeHTTP(w, r)
		}).initialize()
		synctest.Wait()
		c.send(strings.Replace(call, `"a"`, `"`+strings.Repeat("a", 1<<20)+`"`, 1))
		synctest.Wait()
		began := time.Now()
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		c.send(level)
		c.expect(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
		if took := time.Since(began); took > time.Second {
			t.Errorf("the next message took %v", took)
		}
		if n := len(l.seen("notifications/cancelled")); n != 0 {
			t.Error("the cancellation was sent before its request")
		}
		close(read)
		c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
		synctest.Wait()
		c.close()
		if n := len(l.seen("notifications/cancelled")); n != 1 {
			t.Errorf("%d cancellations", n)
		}
	})
}
