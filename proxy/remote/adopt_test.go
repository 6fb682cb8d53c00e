package remote_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/remote"
)

// leave opens a session and leaves it to another process, whose State it returns.
func (l *legacy) leave(t *testing.T) string {
	t.Helper()
	c := l.open(t)
	c.say(level)
	c.wants(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
	state := c.s.State()
	c.s.Keep()
	c.over()
	if state == "" || len(l.seen(http.MethodDelete)) > 0 {
		t.Fatalf("state %q, ended: %v", state, l.seen(http.MethodDelete))
	}
	return state
}

// A session goes on in another process: the server sees neither its end nor another beginning.
func TestAdopted(t *testing.T) {
	l := &legacy{}
	state := l.leave(t)
	c := connect(t, l.ServeHTTP, func(o *remote.Options) { o.Adopt = state }).begin()
	c.say(call)
	c.wants(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
	if again := c.s.State(); again != state {
		t.Errorf("its state is %s, and was %s", again, state)
	}
	c.over()
	if opened, told, ended := len(l.seen("initialize")), len(l.seen("notifications/initialized")), l.seen(http.MethodDelete); opened != 1 || told != 1 || len(ended) != 1 || ended[0].session() != "session-1" {
		t.Errorf("opened %d times, initialized %d times, ended: %v", opened, told, ended)
	}
	if calls := l.seen("tools/call"); calls[0].Get("Mcp-Protocol-Version") != "2025-11-25" {
		t.Errorf("headers: %v", calls[0].Header)
	}
}

// A server that does not know the session any more gets another one, and the call in that.
func TestAdoptedIsLost(t *testing.T) {
	for name, gone := range goneAs {
		t.Run(name, func(t *testing.T) {
			l := &legacy{}
			state := l.leave(t)
			l.loses(gone)
			c := newClient(t, httptest.NewServer(l), remote.NewTransport(remote.TransportOptions{}), func(o *remote.Options) { o.Adopt = state }).relayed(proxy.Restart{}).begin()
			c.say(call)
			c.wants(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-2"}}`)
			c.over()
			if opened := len(l.seen("initialize")); opened != 2 {
				t.Errorf("opened %d times", opened)
			}
		})
	}
}

// What is no state, or of a server without ids, begins anew.
func TestNotAdopted(t *testing.T) {
	for _, state := range []string{`{}`, `{"id":"a b","result":{}}`, `{"id":"a"}`, `x`} {
		l := &legacy{}
		c := connect(t, l.ServeHTTP, func(o *remote.Options) { o.Adopt = state }).begin()
		c.over()
		if opened := len(l.seen("initialize")); opened != 1 {
			t.Errorf("%s: opened %d times", state, opened)
		}
	}
}
