package callid

import (
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

func TestHasOneID(t *testing.T) {
	for request, want := range map[string]bool{
		`{"id":1}`: true, `{"id":0}`: true, `{"id":9}`: true, `{"id":-1}`: true, `{"id":"a"}`: true, `{"method":"x","id":1}`: true,
		`{}`: false, `{"ID":1}`: false, `{"id":null}`: false, `{"id":[1]}`: false, `{"id":true}`: false,
		`{"id":1,"id":2}`: false, `{"id":{},"id":2}`: false,
	} {
		if got := HasOneID(wire.Value{Raw: []byte(request)}); got != want {
			t.Errorf("%s: %v", request, got)
		}
	}
}

// The id of a reply that is a fraction is that of the request with the same integer.
func TestOfReply(t *testing.T) {
	for _, test := range []struct{ id, awaited, want string }{
		{"1", "", "1"},
		{`"a"`, "", `"a"`},
		{"1.0", "1", "1"},
		{"1e2", "100", "100"},
		{"-2.0", "-2", "-2"},
		{"1.0", "2", ""},
		{"1.5", "1", ""},
		{"9007199254740991.0", "9007199254740991", "9007199254740991"},
		{"-9007199254740991.0", "-9007199254740991", "-9007199254740991"},
		{"9007199254740992.0", "9007199254740992", ""},
		{"1e400", "1", ""},
		{"null", "0", ""},
	} {
		m := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":`+test.id+`,"result":{}}`+"\n"))
		got := OfReply(m, func(id []byte) bool { return string(id) == test.awaited })
		if string(got) != test.want || test.want != "" && string(m.Get("id").Raw) != test.want {
			t.Errorf("%s: %q in %s, want %q", test.id, got, m.Line(), test.want)
		}
	}
	request := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":1.0,"method":"ping"}`+"\n"))
	if got := OfReply(request, func([]byte) bool { return true }); got != nil {
		t.Errorf("a request has the id %s", got)
	}
}

func TestIsFraction(t *testing.T) {
	for id, want := range map[string]bool{"": false, "1": false, `"1.0"`: false, "1.0": true, "1e0": true, "1E0": true} {
		if got := IsFraction([]byte(id)); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
}
