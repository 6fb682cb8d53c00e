package remote_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	level     = `{"jsonrpc":"2.0","id":"l","method":"logging/setLevel","params":{"level":"info"}}`
	subscribe = `{"jsonrpc":"2.0","id":"s","method":"resources/subscribe","params":{"uri":"file:///a"}}`
	changed   = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
)

// sessionNotFound has the answers of different servers to an unknown session.
var sessionNotFound = map[string]func(http.ResponseWriter){
	"404": func(w http.ResponseWriter) { http.Error(w, "session not found", 404) },
	"400 of server-everything": func(w http.ResponseWriter) {
		w.WriteHeader(400)
		io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
	},
	"400 not initialized": func(w http.ResponseWriter) {
		w.WriteHeader(400)
		io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`)
	},
}

// loseFirstSession makes the server lose its first session at the first tools/call.
func (l *legacy) loseFirstSession(gone func(http.ResponseWriter)) {
	var lost atomic.Bool
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method == "tools/call" {
			lost.Store(true)
		}
		if r.session() != "session-1" || !lost.Load() {
			return false
		}
		gone(w)
		return true
	}
}

// After the server lost the session, attache opens a new one, restores its state and sends the call
// again.
func TestU09SessionLost(t *testing.T) {
	for name, gone := range sessionNotFound {
		t.Run(name, func(t *testing.T) {
			l := &legacy{}
			l.loseFirstSession(gone)
			c := l.openRelayed(t)
			c.send(level)
			c.expect(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
			c.send(subscribe)
			c.expect(`{"jsonrpc":"2.0","id":"s","result":{"session":"session-1"}}`)
			c.send(call)
			c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-2"}}`)
			c.close()
			var replayed []string
			for _, r := range l.requests {
				if r.session() == "session-2" && r.verb == http.MethodPost {
					replayed = append(replayed, textID.ReplaceAllString(r.body, ""))
				}
			}
			slices.Sort(replayed[1:3]) // they are sent together
			if want := []string{initialized, textID.ReplaceAllString(level, ""), textID.ReplaceAllString(subscribe, ""), call}; !slices.Equal(replayed, want) {
				t.Errorf("the new session got %q, want %q", replayed, want)
			}
			if n := len(l.seen("initialize")); n != 2 {
				t.Errorf("initialized %d times", n)
			}
			if last := l.seen(http.MethodDelete); len(last) != 1 || last[0].session() != "session-2" {
				t.Errorf("ended: %v", last)
			}
		})
	}
}

// A call that the second session refuses, too, gets an error, and a third session is opened.
func TestU10SessionLostAgain(t *testing.T) {
	l := &legacy{}
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method == "tools/call" {
			w.WriteHeader(404)
			return true
		}
		return false
	}
	c := l.openRelayed(t)
	c.send(call)
	c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server has lost the session (HTTP 404 Not Found) and is not ready again; this call was not sent to it: try again later","data":{"source":"attache","reason":"session_lost",…`)
	c.send(level)
	c.expect(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-3"}}`)
	c.close()
	if calls, opened := len(l.seen("tools/call")), len(l.seen("initialize")); calls != 2 || opened != 3 {
		t.Errorf("%d calls, %d sessions", calls, opened)
	}
}

// A 400 that is not about the session does not count as a lost session.
func TestOther400(t *testing.T) {
	l := &legacy{}
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method == "tools/call" {
			http.Error(w, "bad arguments", 400)
			return true
		}
		return false
	}
	c := l.open(t)
	c.send(call)
	c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 400 Bad Request: bad arguments"…`)
	c.close()
	if n := len(l.seen("initialize")); n != 1 {
		t.Errorf("initialized %d times", n)
	}
}

// An error about the method or its params shows that the server knows the session, even with the status 404.
func TestOther404(t *testing.T) {
	for _, code := range []int{-32601, -32602} {
		failure := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"no"}}`, code)
		l := &legacy{}
		l.answer = func(w http.ResponseWriter, r request) bool {
			if r.method == "tools/call" {
				w.WriteHeader(404)
				io.WriteString(w, failure)
			}
			return r.method == "tools/call"
		}
		c := l.openRelayed(t)
		c.send(call)
		c.expect(failure)
		c.close()
		if calls, opened := len(l.seen("tools/call")), len(l.seen("initialize")); calls != 1 || opened != 1 {
			t.Errorf("%d: %d calls, %d sessions", code, calls, opened)
		}
	}
}

// A session is not restored on a server that answers initialize differently.
func TestSessionOfAnotherServer(t *testing.T) {
	l := &legacy{}
	l.loseFirstSession(sessionNotFound["404"])
	first := l.answer
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method == "initialize" && len(l.seen("initialize")) == 2 {
			w.Header().Set("Content-Type", asJSON)
			io.WriteString(w, anyID.ReplaceAllString(strings.Replace(agreed, "2025-11-25", "2025-06-18", 1), anyID.FindString(r.body)))
			return true
		}
		return first(w, r)
	}
	c := l.openRelayed(t)
	c.send(call)
	c.expect(`{"jsonrpc":"2.0","id":1,"error":…`)
	for line := range c.lines { // the session ends on its own
		t.Errorf("unexpected line: %s", line)
	}
	if log := c.log.String(); !strings.Contains(log, "another one than the client knows") {
		t.Errorf("logged:\n%s", log)
	}
}

// Concurrent requests that find the session lost reopen it once.
func TestF18OneInitializeForAll(t *testing.T) {
	l := &legacy{}
	l.loseFirstSession(sessionNotFound["404"])
	c := l.openRelayed(t)
	const n = 20
	for i := range n {
		c.send(strings.Replace(call, `"id":1`, fmt.Sprintf(`"id":%d`, i+1), 1))
	}
	var got, want []string
	for i := range n {
		got = append(got, c.receive())
		want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"session":"session-2"}}`, i+1))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	c.close()
	if opened := len(l.seen("initialize")); opened != 2 {
		t.Errorf("initialized %d times", opened)
	}
}

// The session keeps the id that it got first, also if that came after the answer to initialize.
func TestU17SessionID(t *testing.T) {
	for first, want := range map[string][]string{"session-1": {"session-1", "session-1", "session-1"}, "": {"", "another-1", "another-1"}} {
		l := &legacy{}
		calls := 0
		l.answer = func(w http.ResponseWriter, r request) bool {
			switch r.method {
			case "initialize":
				if first == "" {
					w.Header().Set("Content-Type", asJSON)
					io.WriteString(w, agreed)
				}
				return first == ""
			case "tools/call":
				calls++
				w.Header().Set("Mcp-Session-Id", fmt.Sprint("another-", calls))
			}
			return false
		}
		c := l.open(t)
		for _, id := range want {
			c.send(call)
			c.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"session":%q}}`, id))
		}
		c.close()
	}
}

// A session that is lost after the client has opened a new one is not restored.
func TestReplacedSessionIsLost(t *testing.T) {
	l := &legacy{}
	called, release := make(chan struct{}), make(chan struct{})
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method != "tools/call" || r.session() != "session-1" {
			return false
		}
		close(called)
		<-release
		w.WriteHeader(404)
		return true
	}
	c := l.openRelayed(t)
	c.send(call)
	<-called
	c.send(strings.Replace(initialize, `"id":0`, `"id":9`, 1))
	c.expect(strings.Replace(agreed, `"id":0`, `"id":9`, 1))
	c.send(initialized)
	close(release)
	c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-2"}}`)
	c.close()
	if n := len(l.seen("initialize")); n != 2 {
		t.Errorf("initialized %d times", n)
	}
}

// After initialize each request has the headers of the session, if the server gave values that a header can hold
// and the revision has the header.
func TestSessionHeaders(t *testing.T) {
	for _, row := range []struct{ id, version, wantID, wantVersion string }{
		{"!~", "2025-11-25", "!~", "2025-11-25"},
		{"id", "2025-06-18", "id", "2025-06-18"},
		{"id", "2025-03-26", "id", ""},
		{"", "2025-11-25", "", "2025-11-25"},
		{"an id", "2025-11-25", "", "2025-11-25"},
		{"\u00e9", "2025-11-25", "", "2025-11-25"},
		{"id", `2025-11-25\r\nX: y`, "id", ""},
		{"id", `2025-11-25\u00e9`, "id", ""},
		{strings.Repeat("x", 16<<10), "2025-11-25", strings.Repeat("x", 16<<10), "2025-11-25"},
		{strings.Repeat("x", 16<<10+1), "2025-11-25", "", "2025-11-25"},
	} {
		answer := strings.Replace(agreed, "2025-11-25", row.version, 1)
		l := &legacy{answer: func(w http.ResponseWriter, r request) bool {
			if r.method == "initialize" {
				w.Header()["Mcp-Session-Id"] = []string{row.id}
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, answer)
			}
			return r.method == "initialize"
		}}
		c := connect(t, l.ServeHTTP)
		c.send(initialize)
		c.expect(answer)
		c.send(call)
		c.receive()
		c.close()
		r := l.seen("tools/call")[0]
		if id, version := r.session(), r.Get("Mcp-Protocol-Version"); id != row.wantID || version != row.wantVersion {
			t.Errorf("id %.20q and version %q: a request has the headers %.20q and %q", row.id, row.version, id, version)
		}
	}
}
