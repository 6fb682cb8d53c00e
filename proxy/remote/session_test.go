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

// goneAs are the ways in which servers say that they do not know a session.
var goneAs = map[string]func(http.ResponseWriter){
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

// loses makes the server lose its first session at the first tools/call.
func (l *legacy) loses(gone func(http.ResponseWriter)) {
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

func TestU09SessionLost(t *testing.T) {
	for name, gone := range goneAs {
		t.Run(name, func(t *testing.T) {
			l := &legacy{}
			l.loses(gone)
			c := l.open(t)
			c.say(level)
			c.wants(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
			c.say(subscribe)
			c.wants(`{"jsonrpc":"2.0","id":"s","result":{"session":"session-1"}}`)
			c.say(call)
			got := []string{c.hear(), c.hear()}
			slices.Sort(got)
			if want := []string{`{"jsonrpc":"2.0","id":1,"result":{"session":"session-2"}}`, changed}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			c.over()
			var replayed []string
			for _, r := range l.requests {
				if r.session() == "session-2" && r.verb == http.MethodPost {
					replayed = append(replayed, r.body)
				}
			}
			if want := []string{initialized, level, subscribe, call}; !slices.Equal(replayed, want) {
				t.Errorf("the new session got %q, want %q", replayed, want)
			}
			if n := len(l.seen("initialize")); n != 2 {
				t.Errorf("%d times initialized", n)
			}
			if last := l.seen(http.MethodDelete); len(last) != 1 || last[0].session() != "session-2" {
				t.Errorf("ended: %v", last)
			}
		})
	}
}

func TestU10SessionLostAgain(t *testing.T) {
	l := &legacy{}
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method == "tools/call" {
			w.WriteHeader(404)
			return true
		}
		return false
	}
	c := l.open(t)
	c.say(call)
	got := []string{c.hear(), c.hear()}
	slices.Sort(got)
	if !strings.HasPrefix(got[0], `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 404 Not Found`) || got[1] != changed {
		t.Errorf("got %q", got)
	}
	c.over()
	if calls, opened := len(l.seen("tools/call")), len(l.seen("initialize")); calls != 2 || opened != 2 {
		t.Errorf("%d calls, %d sessions", calls, opened)
	}
}

// A 400 that is not about the session stays what it is.
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
	c.say(call)
	c.wants(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 400 Bad Request: bad arguments"…`)
	c.over()
	if n := len(l.seen("initialize")); n != 1 {
		t.Errorf("%d times initialized", n)
	}
}

// The session that begins again must be the one that the client knows.
func TestSessionOfAnotherServer(t *testing.T) {
	l := &legacy{}
	l.loses(goneAs["404"])
	first := l.answer
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method == "initialize" && len(l.seen("initialize")) == 2 {
			w.Header().Set("Content-Type", asJSON)
			io.WriteString(w, strings.Replace(agreed, "2025-11-25", "2025-06-18", 1))
			return true
		}
		return first(w, r)
	}
	c := l.open(t)
	c.say(call)
	if err := c.s.Wait(); err == nil || !strings.Contains(err.Error(), "start the client's session again") {
		t.Errorf("ended with %v", err)
	}
	c.over()
}

// F18: requests that find the session lost begin it again together.
func TestF18OneInitializeForAll(t *testing.T) {
	l := &legacy{}
	l.loses(goneAs["404"])
	c := l.open(t)
	const n = 20
	for i := range n {
		c.say(strings.Replace(call, `"id":1`, fmt.Sprintf(`"id":%d`, i+1), 1))
	}
	var got, want []string
	for i := range n + 1 {
		got = append(got, c.hear())
		want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"session":"session-2"}}`, i+1))
	}
	want[n] = changed
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	c.over()
	if opened := len(l.seen("initialize")); opened != 2 {
		t.Errorf("%d times initialized", opened)
	}
}

// U17: the id that the session has got first is its id.
func TestU17SessionID(t *testing.T) {
	l := &legacy{}
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method != "initialize" {
			w.Header().Set("Mcp-Session-Id", "another")
		}
		return false
	}
	c := l.open(t)
	for range 2 {
		c.say(call)
		c.wants(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
	}
	c.over()
}

// A client that initialises anew while the session it had begins again has the new session,
// and the other one is ended.
func TestInitializeOvertakesRenewal(t *testing.T) {
	l := &legacy{}
	l.loses(goneAs["404"])
	lost := l.answer
	renewing, anew := make(chan struct{}), make(chan struct{})
	l.answer = func(w http.ResponseWriter, r request) bool {
		switch n := len(l.seen("initialize")); {
		case r.method == "initialize" && n == 2:
			close(renewing)
			<-anew
		case r.method == "resources/list":
			return false
		}
		return lost(w, r)
	}
	c := l.open(t)
	c.say(call)
	<-renewing
	c.say(initialize)
	c.wants(agreed)
	close(anew)
	c.wants(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server has lost the session, and it could not be begun again: the client has begun another session"…`)
	c.say(initialized)
	c.say(`{"jsonrpc":"2.0","id":3,"method":"resources/list"}`)
	c.wants(`{"jsonrpc":"2.0","id":3,"result":{"session":"session-2"}}`)
	c.over()
	var ended []string
	for _, r := range l.seen(http.MethodDelete) {
		ended = append(ended, r.session())
	}
	slices.Sort(ended)
	if want := []string{"session-1", "session-2", "session-3"}; !slices.Equal(ended, want) {
		t.Errorf("ended: %v, want %v", ended, want)
	}
}
