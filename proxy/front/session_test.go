package front

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A session that has ended has no running timer, which would keep its memory.
func TestEndedSessionHasNoTimer(t *testing.T) {
	f := New(Options{Open: func(Opening) (Relay, error) {
		return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
			return mempipe.NewServer(0), nil
		}}}, nil
	}})
	s, err := f.create("", Principal{}, "")
	check(t, err)
	s.end("the test ends it")
	f.relays.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer.Stop() {
		t.Error("the timer was still running")
	}
}

// A slowStore answers Take when the gate has an element.
type slowStore struct {
	*memoryStore
	gate chan struct{}
}

func (s slowStore) Take(ctx context.Context, k sessions.Key) (sessions.Session, error) {
	<-s.gate
	return s.memoryStore.Take(ctx, k)
}

// A session that its client ends while it is being continued here is over.
func TestDeleteWhileResuming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := sessions.NewID()
		store := slowStore{&memoryStore{own: map[sessions.Key]bool{}, saved: map[sessions.Key]sessions.Session{
			sessions.NewKey(id, ""): {Initialize: `{}`, Version: `"2025-06-18"`, Capabilities: `{}`},
		}}, make(chan struct{})}
		f := New(Options{Store: store, Open: func(Opening) (Relay, error) {
			return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
				return countingServer(new(atomic.Int32)), nil
			}}}, nil
		}})
		defer f.Drain(t.Context())
		go f.lookup(t.Context(), id, Principal{}, "")
		synctest.Wait()
		var known bool
		go func() { known, _ = f.forget(t.Context(), id, Principal{}) }()
		synctest.Wait()
		store.gate <- struct{}{} // for the request, which came first
		synctest.Wait()
		close(store.gate)
		synctest.Wait()
		if s := f.find(id, Principal{}); !known || s != nil {
			t.Errorf("the session was known: %v, and goes on: %v", known, s != nil)
		}
	})
}

// Clients choose progress tokens, which the relay forgets as soon as the server has the call.
func TestLongTokensAreNotKept(t *testing.T) {
	long := `"` + strings.Repeat("x", 1<<20) + `"`
	p, _, _ := parse([]byte(`{"jsonrpc":"2.0","id":`+long+`,"method":"tools/list","params":{"_meta":{"progressToken":`+long+`}}}`+"\n"), nil)
	c := p.calls(newStream(true))[0]
	if len(c.id) > 1000 || len(c.token) > 1000 {
		t.Errorf("the keys of a call have %d and %d bytes", len(c.id), len(c.token))
	}
	if callid.Lookup(map[string]*call{c.token: c}, []byte(long)) != c || callid.Lookup(map[string]*call{c.token: c}, []byte(`"x"`)) != nil {
		t.Error("the call is not found by its token, or by another one")
	}
	if f := New(Options{}); f.rename(c, p) || c.name != nil {
		t.Error("a renamed call keeps a long token")
	}
}

// Clients choose the ids of requests and the keys of conversations, and both are kept after the request.
func TestLongTextsAreNotKept(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	f := New(Options{Conversation: func(m *wire.Message) string { return m.Get("params", "_meta", "threadId").Text() }})
	key := func(conversation string) string {
		p := &message{}
		p.m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"threadId":"`+conversation+`"}}}`))
		return f.keys.Of("key a", &p.m, f.o.Conversation)
	}
	if k := key(long + "1"); len(k) > 1000 || k == key(long+"2") || key("1") == key("2") {
		t.Errorf("the key of a session has %d bytes, or is not of its conversation", len(k))
	}
	s := &session{f: f, log: f.log, key: key("1")}
	for _, id := range []string{`"` + long + `1"`, `7`} {
		s.abandonLocked(&call{id: callid.Text([]byte(id))})
	}
	for id, want := range map[string]bool{`"` + long + `1"`: true, `"` + long + `2"`: false, `7`: true, `8`: false} {
		if got := s.abandoned.Has(callid.Text([]byte(id)), ""); got != want {
			t.Errorf("%.20s…: abandoned is %v", id, got)
		}
	}
	o := output{s: s}
	for _, id := range []string{`"` + long + `1"`, `7`} {
		o.line([]byte(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}` + "\n"))
	}
	for _, id := range []string{`"` + long + `1"`, `7`} {
		if s.abandoned.Has(callid.Text([]byte(id)), "") {
			t.Errorf("%.20s… is kept after its reply", id)
		}
	}
}

// A client sends an error without an id, as for a message that it could not read, and disconnects while the error
// waits for the relay. Its session is then unused, and can end.
func TestReplyWithoutIDWaits(t *testing.T) {
	f := New(Options{Open: func(Opening) (Relay, error) {
		return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) { return mempipe.NewServer(0), nil }}}, nil
	}})
	s, err := f.create("", Principal{}, "")
	check(t, err)
	s.in.Hold()
	check(t, s.in.Put(t.Context(), wire.NewNotification(wire.Client, "notifications/x", []byte(`"`+strings.Repeat("x", 1<<20)+`"`))))
	left, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(left, http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","error":{"code":-32700,"message":"it is not JSON"}}`))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Session-Id": {s.id}}
	f.ServeHTTP(httptest.NewRecorder(), r)
	if !s.use() || s.users != 1 {
		t.Errorf("%d requests use the session besides this one", s.users-1)
	}
	s.in.Release()
	s.end("the test ends it")
	f.Drain(t.Context())
}
