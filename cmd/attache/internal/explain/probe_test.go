package explain

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/record"
)

// Calls are in the order in which the client sent them, including one that waited, two equal ones, and
// those of an array.
func TestInOrder(t *testing.T) {
	s := &record.Session{Events: []record.Event{
		{At: record.ClientIn, Line: []byte("{1}\n")},
		{At: record.ServerIn, Line: []byte("{3}\n")},
		{At: record.ClientIn, Line: []byte("{2}\r\n")},
		{At: record.ClientIn, Line: []byte("[{4},{5}]\n")},
		{At: record.ClientIn, Line: []byte("{2}\n")},
		{At: record.ClientIn, Line: []byte("{3}\n")},
	}}
	var seen []*trail
	for _, frame := range []string{"{3}", "{2}", "{1}", "{5}", "{4}", "{2}", "{6}"} {
		seen = append(seen, &trail{frames: [][]byte{[]byte(frame)}})
	}
	inOrder(seen, s)
	var got []string
	for _, x := range seen {
		got = append(got, string(x.frames[0]))
	}
	if text := strings.Join(got, ""); text != "{1}{2}{4}{5}{2}{3}{6}" {
		t.Errorf("got %s", text)
	}
}
