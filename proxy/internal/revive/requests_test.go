package revive

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A subscription that was cancelled or answered is forgotten, so that the limit counts the open ones only.
func TestEndedSubscriptionsAreForgotten(t *testing.T) {
	v := New(nil, Policy{}, Options{})
	send := func(line string) *relayed.Call {
		c := new(relayed.Call)
		c.Reset(nil, true)
		v.Sent(c, wire.Parse(wire.Client, []byte(line+"\n")), true)
		return c
	}
	for i := range maxSubscriptions {
		c := send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"listen:%d","method":"subscriptions/listen","params":{}}`, i))
		if i%2 == 0 {
			for _, hook := range c.Hooks() {
				_ = hook(t.Context(), wire.Parse(wire.Server, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"listen:%d","result":{}}`+"\n", i)))
			}
			continue
		}
		send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"listen:%d"}}`, i))
	}
	send(`{"jsonrpc":"2.0","id":"last","method":"subscriptions/listen","params":{}}`)
	if v.listens.Again([]byte(`"listen:0"`)) || v.listens.Again([]byte(`"listen:1"`)) {
		t.Error("a subscription that was answered or cancelled is still known")
	}
	if !v.listens.Again([]byte(`"last"`)) {
		t.Error("a subscription is not known after as many as are kept were cancelled or answered")
	}
	for i := range maxSubscriptions {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{}}`, i))
	}
	if len(v.listens.byID) != maxSubscriptions {
		t.Errorf("%d subscriptions are kept", len(v.listens.byID))
	}
}

// The client gets the acknowledgment of its own request, and not that of the request to the next server, unless that
// grants less: then the subscription ends.
func TestSubscriptionsContinue(t *testing.T) {
	var l listens
	id := []byte(`"a"`)
	granted := func(notifications string, wantDrop bool, wantLess string) {
		t.Helper()
		m := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"`+subscriptionKey+`":"a"},"notifications":`+notifications+"}}\n"))
		if drop, less := l.Granted(m); drop != wantDrop || string(less) != wantLess {
			t.Errorf("%s: dropped %t, less %q", notifications, drop, less)
		}
	}
	again := func(want bool) {
		t.Helper()
		if l.Again(id) != want {
			t.Errorf("it is known: %t", !want)
		}
	}
	const both, one = `{"toolsListChanged":true,"promptsListChanged":true}`, `{"toolsListChanged":true}`
	l.Begin(id)
	again(true) // before the first acknowledgment
	granted(both, false, "")
	again(true)
	granted(both, true, "")
	granted(both, false, "") // a second one of this server
	again(true)
	granted(one, true, `"a"`)
	again(false)
	l.Begin(id)
	l.Ended(wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","method":"notifications/other","params":{"requestId":"a"}}`+"\n")))
	again(true)
	l.Ended(wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`+"\n")))
	again(false)
}

// A subscription to which the server grants very much does not continue, so that memory stays bounded.
func TestLongGrantsAreNotKept(t *testing.T) {
	var l listens
	id := []byte(`"a"`)
	for _, test := range []struct {
		length int
		kept   bool
	}{{maxGranted, true}, {maxGranted + 1, false}} {
		l.Begin(id)
		notifications := `"` + strings.Repeat("n", test.length-2) + `"`
		m := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"`+subscriptionKey+`":"a"},"notifications":`+notifications+"}}\n"))
		if drop, _ := l.Granted(m); drop {
			t.Errorf("%d bytes: the client does not get the acknowledgment", test.length)
		}
		if l.Again(id) != test.kept {
			t.Errorf("%d bytes: the subscription continues: %t", test.length, !test.kept)
		}
		l.End(id)
	}
}

// A cancellation that writes the id in another way does not end a subscription here, so long ids would stay.
func TestLongSubscriptionIDs(t *testing.T) {
	var l listens
	l.Begin(bytes.Repeat([]byte("1"), maxID+1))
	if l.Begin([]byte("1")); len(l.byID) != 1 {
		t.Errorf("%d subscriptions are kept, want the one with the short id", len(l.byID))
	}
}
