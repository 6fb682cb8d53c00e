package wire

import (
	"strings"
	"testing"
)

func TestRefusalReply(t *testing.T) {
	for _, test := range []struct {
		params string
		modern bool
		want   string
	}{
		{`{"name":"x"}`, false, `"isError":true}`},
		{`{"name":"x","task":null}`, false, `"isError":true}`},
		{`{"name":"x","task":{"ttl":1}}`, false, `"error":{"code":-32602,"message":"no",`},
		{`{"name":"x","task":{}}`, true, `"resultType":"complete"}`},
	} {
		var m Message
		m.Reset(Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+test.params+"}\n"))
		(&Scanner{}).Look(&m)
		if got := string(RefusalReply(&m, "no", test.modern).Frame()); !strings.Contains(got, test.want) {
			t.Errorf("%s, modern %v: %s", test.params, test.modern, got)
		}
	}
}

func TestReplyText(t *testing.T) {
	for reply, want := range map[string]string{
		`{"error":{"code":1,"message":"no"}}`:                                     "no",
		`{"result":{"content":[{"type":"text","text":"a"},{"text":"b"}]}}`:        "a",
		`{"error":{"code":1,"message":""},"result":{"content":[{"text":"a"}]}}`:   "a",
		`{"error":{"code":1,"message":"no"},"result":{"content":[{"text":"a"}]}}`: "no",
		`{"result":{"content":[]}}`:                                               "", `{"result":{}}`: "", `{}`: "",
	} {
		if got := ReplyText(Value{Raw: []byte(reply)}); got != want {
			t.Errorf("%s: %q", reply, got)
		}
	}
}

// Members of a result are not those of params that have the same names.
func TestMembersOfAResult(t *testing.T) {
	var m Message
	m.Reset(Server, []byte(`{"jsonrpc":"2.0","id":1,"result":{"name":"a","arguments":{"b":1},"_meta":{}}}`+"\n"))
	(&Scanner{}).Look(&m)
	for name, want := range map[string]string{"name": `"a"`, "arguments": `{"b":1}`, "_meta": "{}"} {
		if got := m.Get("result", name).Raw; string(got) != want {
			t.Errorf("result.%s: %s", name, got)
		}
		if got := m.Get("params", name); got.Exists() {
			t.Errorf("params.%s: %s", name, got.Raw)
		}
	}
}

// The reason names the twin, if there is one.
func TestWhy(t *testing.T) {
	for frame, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"x","Method":"y"}`: TwinName.String() + ": method",
		`{"jsonrpc":"2.0","id":1,"method":"x","id":2}`:       EqualKeys.String(),
	} {
		var m Message
		m.Reset(Client, []byte(frame+"\n"))
		(&Scanner{}).Look(&m)
		if got := m.Why(); got != want {
			t.Errorf("%s: %s", frame, got)
		}
	}
}
