package revive

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A request may be sent to the next server if it changes nothing, or if the operator says so of its tool.
func TestRepeatable(t *testing.T) {
	request := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + "}}\n"
	}
	pad := func(n int) string {
		line := request("ping", `"x":""`)
		return request("ping", `"x":"`+strings.Repeat("x", n-len(line))+`"`)
	}
	for _, test := range []struct {
		line  string
		retry string // a tool; "" for no function
		want  bool
	}{
		{request("tools/list", ""), "", true},
		{request("subscriptions/listen", ""), "", true},
		{request("resources/read", `"uri":"a"`), "", true},
		{request("resources/read", `"uri":"a","requestState":"s"`), "", false},
		{request("prompts/get", `"name":"a","inputResponses":{}`), "", false},
		{request("initialize", ""), "a", false},
		{request("unknown", ""), "a", false},
		{request("tools/call", `"name":"a"`), "", false},
		{request("tools/call", `"name":"a"`), "a", true},
		{request("tools/call", `"name":"b"`), "a", false},
		{request("tools/call", `"name":"a","task":{}`), "a", false},
		{`{"jsonrpc":"2.0","method":"ping"}` + "\n", "", false},
		{`{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}` + "\n", "", false},
		{pad(maxRepeated), "", true},
		{pad(maxRepeated + 1), "", false},
	} {
		var retry func(string) bool
		if test.retry != "" {
			retry = func(tool string) bool { return tool == test.retry }
		}
		m := new(wire.Message)
		m.Reset(wire.Client, []byte(test.line))
		new(wire.Scanner).Look(m)
		if got := Repeatable(m, retry); got != test.want {
			t.Errorf("%.100s (%d bytes), and %q may be repeated: %v", test.line, len(test.line), test.retry, got)
		}
	}
}

// The progress of a call that is sent again is dropped while the call runs. Calls are equal if they differ in
// _meta only.
func TestRepeatedCalls(t *testing.T) {
	var r repeatedCalls
	call := func(id, name, token string) *wire.Message {
		return wire.Parse(wire.Client, []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"`+name+`","_meta":{"progressToken":`+token+"}}}\n"))
	}
	progress := func(token string) *wire.Message {
		return wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+token+"}}\n"))
	}
	runs := func(id []byte) bool { return string(id) == "1" }
	for end, want := range []bool{false, true, true} {
		r.begin()
		if r.isMuted(progress("7"), runs) {
			t.Errorf("end %d: progress is dropped before the call is sent again", end)
		}
		if r.add(call("1", "a", "7")) != want || r.add(call("2", "b", "8")) && end == 0 {
			t.Errorf("end %d: a call was in flight at the last end: %v", end, !want)
		}
		r.mute(call("1", "a", "7"))
		r.mute(call("2", "b", "8"))
		for token, muted := range map[string]bool{"7": true, "8": false, "9": false, `"7"`: false} {
			if r.isMuted(progress(token), runs) != muted {
				t.Errorf("end %d: progress of %s is dropped: %v", end, token, !muted)
			}
		}
		if r.isMuted(call("3", "c", "7"), runs) {
			t.Errorf("end %d: a message that is not progress is dropped", end)
		}
	}
	r.begin()
	if r.add(call("4", "c", "7")) {
		t.Error("another call was in flight")
	}
}

// Calls are equal if their methods and their params are.
func TestDigest(t *testing.T) {
	digest := func(method, params string) digest {
		return digestOf(wire.Parse(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+"}}\n")))
	}
	one := digest("prompts/get", `"name":"a","_meta":{"n":1}`)
	for _, test := range []struct {
		method, params string
		want           bool
	}{
		{"prompts/get", `"_meta":{"n":2},"name":"a"`, true},
		{"prompts/get", `"name":"b"`, false},
		{"prompts/get", `"uri":"a"`, false},
		{"tools/call", `"name":"a"`, false},
	} {
		if got := digest(test.method, test.params) == one; got != test.want {
			t.Errorf("%s %s: equal is %t", test.method, test.params, got)
		}
	}
}
