package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/record"
)

// compare finds as few differences as possible, accepts lines of one window in any order, and returns the differences in
// the order of the recording.
func TestCompare(t *testing.T) {
	// Each stream has lines TEXT/WINDOW, and the events are counted from the first line of the server on.
	for _, test := range []struct{ name, wantServer, gotServer, wantClient, gotClient, differences string }{
		{"the same", "a/0 b/1", "a/0 b/1", "c/1", "c/1", ""},
		{"one more", "a/0 b/1 c/2", "a/0 x/1 b/1 c/2", "", "", "server-in -1  x"},
		{"one fewer", "a/0 b/1 c/1", "a/0 c/1", "", "", "server-in 1 b "},
		{"the end is missing", "a/0 b/1", "a/0", "", "", "server-in 1 b "},
		{"more at the end", "a/0", "a/0 b/1", "", "", "server-in -1  b"},
		{"another line", "a/0 b/1 c/1", "a/0 x/1 c/1", "", "", "server-in 1 b x"},
		{"the last first", "a/0 b/1 c/2 d/3", "d/0 a/1 b/2 c/3", "", "", "server-in 3 d , server-in -1  d"},
		{"the first last", "d/0 a/1 b/2 c/3", "a/0 b/1 c/2 d/3", "", "", "server-in 0 d , server-in -1  d"},
		{"the same in another window", "a/0 b/1 c/2", "x/0 b/2 y/2", "", "", "server-in 0 a x, server-in 2 c y"},
		{"missing in a window before", "a/0 b/1 c/3", "a/0 x/2 c/3", "", "", "server-in 1 b , server-in -1  x"},
		{"missing in a window after", "a/0 b/2 c/3", "a/0 x/1 c/3", "", "", "server-in 1 b , server-in -1  x"},
		{"swapped", "a/0 b/0 c/0 d/1", "c/0 b/0 a/0 d/1", "", "", ""},
		{"few differ", "a/0 b/1 c/2 d/3 e/4", "x/0 b/1 y/2 d/3 z/4", "", "", "server-in 0 a x, server-in 2 c y, server-in 4 e z"},
		{"most are moved", "x/0 a/1 b/2 c/3 y/4", "y/0 a/1 b/2 c/3 x/4", "", "", "server-in 0 x y, server-in 4 y x"},
		{"both streams", "a/0 b/3", "x/0 y/3", "c/1 d/2", "c/1", "server-in 0 a x, server-in 1 b y, client-out 3 d "},
		{"the client first", "a/3", "x/4", "c/1", "y/0", "server-in 0 a , client-out 1 c , server-in -1  x, client-out -1  y"},
	} {
		event := 0
		lines := func(text string) (all []line) {
			for _, l := range strings.Fields(text) {
				var window int
				raw, number, _ := strings.Cut(l, "/")
				_, _ = fmt.Sscan(number, &window)
				all = append(all, line{raw: []byte(raw), event: event, window: window})
				event++
			}
			return all
		}
		p := &play{}
		p.toServer = stream{at: record.ServerIn, want: lines(test.wantServer)}
		p.toClient = stream{at: record.ClientOut, want: lines(test.wantClient)}
		p.toServer.got, p.toClient.got = lines(test.gotServer), lines(test.gotClient)
		var got []string
		for _, d := range p.compare() {
			got = append(got, fmt.Sprintf("%s %d %s %s", d.At, d.Event, d.Want, d.Got))
		}
		if got := strings.Join(got, ", "); got != test.differences {
			t.Errorf("%s: %q, want %q", test.name, got, test.differences)
		}
	}
}
