package remote

import (
	"bufio"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy/remote/internal/eventstream"
)

// Messages in events are complete however the stream is cut, and even if the reader reuses its
// buffer.
func TestEventsInPieces(t *testing.T) {
	s, err := Start(Options{URL: "http://127.0.0.1/mcp", Transport: bodies(nil)})
	testkit.Check(t, err)
	defer s.cancel()
	out := bufio.NewReader(s.Stdout())
	for _, end := range []string{"\n", "\r\n", "\r"} {
		stream := []byte(strings.ReplaceAll(`data: {"jsonrpc":"2.0","method":"a"}||data: {"jsonrpc":"2.0",|data: "method":"b"}||`, "|", end))
		const want = `{"jsonrpc":"2.0","method":"a"}` + "\n" + `{"jsonrpc":"2.0", "method":"b"}` + "\n"
		for n := 1; n <= len(stream); n++ {
			reader := &eventReader{x: &exchange{s: s}}
			reader.f.Out = s.out
			parser := eventstream.New(reader)
			buf := make([]byte, n)
			for part := range slices.Chunk(stream, n) {
				parser.Feed(buf[:copy(buf, part)])
				clear(buf)
			}
			s.out.Write([]byte("end\n"), nil)
			s.out.Flush()
			got := ""
			for line := ""; line != "end\n"; {
				got += line
				if line, err = out.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			if got != want {
				t.Fatalf("lines end with %q, pieces of %d: got %q", end, n, got)
			}
		}
	}
}
