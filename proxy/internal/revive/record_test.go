package revive

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

// exchange records a message and, if reply is not "", the reply to it.
func exchange(r *Record, line, reply string) {
	take := r.Sent(wire.Parse(wire.Client, []byte(line+"\n")), true)
	if take != nil && reply != "" {
		take(wire.Parse(wire.Server, []byte(reply+"\n")))
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"n":1}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	call        = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}`
	list        = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	ping        = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	setLevel    = `{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"info"}}`
	welcome     = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}`
	success     = `{"jsonrpc":"2.0","id":2,"result":{}}`
	failure     = `{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"?"}}`
)

// The handshake is over with notifications/initialized and the result of initialize, or with the first
// result of another request.
func TestArmed(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []string // a message and the reply to it
		armed bool
	}{
		{"nothing", nil, false},
		{"initialize", []string{initialize, welcome}, false},
		{"the legacy handshake", []string{initialize, welcome, initialized, ""}, true},
		{"initialized without initialize", []string{initialized, ""}, false},
		{"initialized before the result", []string{initialize, "", initialized, ""}, false},
		{"a handshake that fails", []string{initialize, failure, initialized, ""}, false},
		{"a second handshake", []string{initialize, welcome, initialized, "", initialize, ""}, false},
		{"a call without initialized", []string{initialize, welcome, call, success}, true},
		{"a list without initialized", []string{initialize, welcome, list, success}, true},
		{"a call before the result of initialize", []string{initialize, "", call, success}, false},
		{"a modern call", []string{call, success}, true},
		{"notifications/initialized after a modern call", []string{call, success, initialized, ""}, true},
		{"a modern call that fails", []string{call, failure}, false},
		{"a modern list", []string{list, success}, true},
		{"a ping", []string{ping, success}, false},
		{"a notification", []string{`{"jsonrpc":"2.0","method":"x"}`, success}, false},
	} {
		var r Record
		for i := 0; i < len(test.steps); i += 2 {
			exchange(&r, test.steps[i], test.steps[i+1])
		}
		if r.Armed() != test.armed {
			t.Errorf("%s: armed: %v", test.name, r.Armed())
		}
	}
	var r Record
	exchange(&r, call, success)
	if r.Sent(wire.Parse(wire.Client, []byte(call+"\n")), true) != nil {
		t.Error("the reply to a call after the handshake is wanted")
	}
}

// A restored record equals the one whose state it got.
func TestState(t *testing.T) {
	subscribe := func(how, uri string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"resources/%s","params":{"uri":%q}}`, how, uri)
	}
	for _, test := range []struct {
		name     string
		steps    []string
		requests []string
	}{
		{"a handshake", nil, nil},
		{"a level", []string{setLevel}, []string{`logging/setLevel {"level":"info"}`}},
		{"subscriptions", []string{subscribe("subscribe", "a"), setLevel, subscribe("subscribe", "b"), subscribe("subscribe", "c"), subscribe("unsubscribe", "b"), subscribe("subscribe", "a")},
			[]string{`logging/setLevel {"level":"info"}`, `resources/subscribe {"uri":"c"}`, `resources/subscribe {"uri":"a"}`}},
	} {
		var r Record
		if _, ok := r.State(); ok {
			t.Error("an empty record has a state")
		}
		exchange(&r, initialize, welcome)
		exchange(&r, initialized, "")
		for _, line := range test.steps {
			exchange(&r, strings.ReplaceAll(line, "info", "debug"), failure)
			exchange(&r, line, success)
		}
		state, ok := r.State()
		var restored Record
		restored.Restore(State{Subscriptions: []string{`{"uri":"x"}`}, Level: "{}"})
		restored.Restore(state)
		again, okAgain := restored.State()
		if !ok || !okAgain || !reflect.DeepEqual(state, again) || !restored.Armed() {
			t.Errorf("%s: %+v became %+v, armed: %v", test.name, state, again, restored.Armed())
		}
		var got []string
		for _, q := range restored.Requests() {
			got = append(got, q.Method+" "+string(q.Params))
		}
		if !reflect.DeepEqual(got, test.requests) {
			t.Errorf("%s: a new server gets %q", test.name, got)
		}
		if params, legacy := restored.Initialize(); string(params) != `{"n":1}` || !legacy {
			t.Errorf("%s: initialize has %s", test.name, params)
		}
		if err := restored.Same(wire.Parse(wire.Server, []byte(welcome+"\n"))); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// A server is another one if it has lost a capability, or a part of one.
func TestSame(t *testing.T) {
	for _, test := range []struct{ before, after, lacks string }{
		{`{"tools":{}}`, `{"tools":{"listChanged":true},"logging":{}}`, ""},
		{`{"tools":{},"logging":{}}`, `{"tools":{}}`, "logging"},
		{`{"resources":{"subscribe":true}}`, `{"resources":{"subscribe":true}}`, ""},
		{`{"resources":{"subscribe":true}}`, `{"resources":{"subscribe":false}}`, "resources.subscribe"},
		{`{"resources":{"subscribe":false}}`, `{"resources":{"subscribe":true}}`, ""},
		{`{"experimental":{"a":{"version":1}}}`, `{"experimental":{"a":{"version":2}}}`, ""},
	} {
		reply := func(capabilities string) string { return strings.Replace(welcome, `{"tools":{}}`, capabilities, 1) }
		var r Record
		exchange(&r, initialize, reply(test.before))
		err := r.Same(wire.Parse(wire.Server, []byte(reply(test.after)+"\n")))
		if test.lacks == "" && err != nil || test.lacks != "" && (!errors.Is(err, errOther) || !strings.Contains(err.Error(), " "+test.lacks+" ")) {
			t.Errorf("%s, then %s: %v", test.before, test.after, err)
		}
	}
}

// The modern era demands _meta, so a request for a list has the client's _meta there. In the legacy era it has none.
func TestListParams(t *testing.T) {
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"k":1}}}`
	var modern, legacy Record
	exchange(&legacy, initialize, welcome)
	for r, want := range map[*Record]string{&modern: `{"_meta":{"k":1},"cursor":"c"}`, &legacy: `{"cursor":"c"}`} {
		m := wire.Parse(wire.Client, []byte(list+"\n"))
		new(wire.Scanner).Look(m)
		r.Sent(m, true)(wire.Parse(wire.Server, []byte(success+"\n")))
		if got := string(r.ListParams([]byte(`"c"`))); got != want {
			t.Errorf("the params are %s, want %s", got, want)
		}
	}
}

// A front has the handshakes of all its sessions in memory.
func TestLongHandshakes(t *testing.T) {
	long := strings.Repeat("x", maxHandshake)
	for _, test := range [][2]string{
		{strings.Replace(initialize, `"n":1`, `"n":"`+long+`"`, 1), welcome},
		{initialize, strings.Replace(welcome, "2025-06-18", long, 1)},
		{initialize, strings.Replace(welcome, "{}", `{"x":"`+long+`"}`, 1)},
	} {
		var r Record
		exchange(&r, test[0], test[1])
		exchange(&r, initialized, "")
		exchange(&r, call, success)
		s, ok := r.State()
		if ok || r.Armed() || len(s.Initialize)+len(s.Version)+len(s.Capabilities) > maxHandshake/2 {
			t.Errorf("%.60s… and %.60s…: %d, %d and %d bytes are kept (armed: %v)", test[0], test[1], len(s.Initialize), len(s.Version), len(s.Capabilities), r.Armed())
		}
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	var r Record
	for i := range maxSubscriptions + 1 {
		exchange(&r, fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"%d"}}`, i), success)
	}
	if n := len(r.Requests()); n != maxSubscriptions {
		t.Errorf("%d subscriptions are recorded", n)
	}
	// A subscription with long params is not recorded.
	r = Record{}
	subscribe := `{"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"%s"}}`
	for _, length := range []int{maxSubscription - len(`{"uri":""}`), maxSubscription} {
		exchange(&r, fmt.Sprintf(subscribe, strings.Repeat("u", length)), success)
	}
	if n := len(r.Requests()); n != 1 {
		t.Errorf("%d subscriptions are recorded, want the one with the shorter params", n)
	}
}

// While memory for calls in flight is used up, nothing of a request is kept until its reply. A list still ends the
// handshake.
func TestNothingIsKeptWithoutRoom(t *testing.T) {
	var r Record
	for _, line := range []string{setLevel, `{"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a"}}`} {
		if r.Sent(wire.Parse(wire.Client, []byte(line+"\n")), false) != nil {
			t.Errorf("%s: what it has is kept", line)
		}
	}
	const tools = `{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`
	r.Sent(wire.Parse(wire.Client, []byte(list+"\n")), false)(wire.Parse(wire.Server, []byte(tools+"\n")))
	if !r.Armed() || len(r.Requests())+len(r.Lists()) != 0 {
		t.Errorf("the handshake is over: %t; a new server gets %d requests, and requests for %q", r.Armed(), len(r.Requests()), r.Lists())
	}
}
