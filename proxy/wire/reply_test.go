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
