package revive

import (
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A server may have read a line of which only the line end was not written, but no line after it.
func TestUnsent(t *testing.T) {
	for _, test := range []struct {
		text    string
		written int
		want    string
	}{
		{"{}\n[]\n", 0, "{}\n[]\n"},
		{"{}\n[]\n", 1, "{}\n[]\n"},
		{"{}\n[]\n", 2, "[]\n"},
		{"{}\n[]\n", 3, "[]\n"},
		{"{}\n[]\n", 5, ""},
		{"{}\n[]\n", 6, ""},
		{"{} \r\n[]\n", 2, "[]\n"},
		{"{}", 1, "{}"},
		{"{}", 2, ""},
		{" \n{}\n", 0, " \n{}\n"},
		{" \n{}\n", 1, "{}\n"},
	} {
		if got := unsent([]byte(test.text), test.written); string(got) != test.want {
			t.Errorf("%d bytes of %q were written: %q is unsent, want %q", test.written, test.text, got, test.want)
		}
	}
}

// A line that a server may have read is not among the sure ones, and is forgotten with the others.
func TestSure(t *testing.T) {
	var l Lines
	l.AddRest([]byte("{}\n[]\n"), 2)
	if got := l.Bytes(); got != 6 || !l.Any() {
		t.Errorf("%d bytes, any: %v", got, l.Any())
	}
	if got := l.Sure(); string(got) != "[]\n" || l.Any() || l.Bytes() != 0 {
		t.Errorf("%q is sure, and %d bytes are left", got, l.Bytes())
	}
	if got := l.Sure(); len(got) > 0 {
		t.Errorf("%q is left", got)
	}
	l.AddRest([]byte("{}\n[]\n"), 2)
	l.Take()
	if l.Add([]byte("[1]\n")); string(l.Sure()) != "[1]\n" {
		t.Error("a line after those that were taken is not sure")
	}
	if l.Add(nil); l.Any() {
		t.Error("there is a line without bytes")
	}
}

// A reply and a message whose id is not known are no requests.
func TestRequests(t *testing.T) {
	const (
		request = `{"jsonrpc":"2.0","id":%,"method":"x"}`
		reply   = `{"jsonrpc":"2.0","id":1,"result":{}}`
		twoIDs  = `{"jsonrpc":"2.0","id":1,"method":"x","id":2}`
		note    = `{"jsonrpc":"2.0","method":"x"}`
	)
	numbered := func(id string) string { return strings.Replace(request, "%", id, 1) }
	for line, want := range map[string][]string{
		numbered("1"): {"1"}, reply: nil, twoIDs: nil, note: nil,
		"[" + numbered("1") + "," + reply + "," + note + "," + numbered("2") + "]": {"1", "2"},
	} {
		var got []string
		for m := range Requests(wire.Parse(wire.Client, []byte(line+"\n"))) {
			got = append(got, string(m.ID()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the requests are %q, want %q", line, got, want)
		}
	}
}

// The next server gets no replies, and only requests that have no answer.
func TestResend(t *testing.T) {
	const (
		one   = `{"jsonrpc":"2.0","id":1,"method":"x"}`
		two   = `{"jsonrpc":"2.0","id":2,"method":"x"}`
		reply = `{"jsonrpc":"2.0","id":1,"result":{}}`
		note  = `{"jsonrpc":"2.0","method":"x"}`
	)
	awaits := func(id []byte) bool { return string(id) == "1" }
	for line, want := range map[string]bool{
		one: true, two: false, reply: false, note: true,
		"[" + one + "," + two + "]": true, "[" + two + "," + one + "]": true, "[" + two + "]": false,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`: false,
	} {
		if got := len(Resend([]byte(line+"\n"), awaits)) > 0; got != want {
			t.Errorf("%s: sent again: %t", line, got)
		}
	}
}
