package remote

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answers is a transport whose server answers with these bytes.
type answers string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// Nothing is kept of requests that are answered, whether they came alone or in an array.
func TestNothingIsKept(t *testing.T) {
	for request, answer := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                              `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"2","method":"ping"}]`: `[{"jsonrpc":"2.0","id":"2","result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1.5,"method":"ping"}]`: `[{"jsonrpc":"2.0","id":1.5,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]`,
	} {
		s, err := Start(Options{URL: "http://127.0.0.1/mcp", Transport: answers(answer)})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(s.Stdin(), request+"\n")
		if got, err := bufio.NewReader(s.Stdout()).ReadString('\n'); got != answer+"\n" {
			t.Errorf("got %q, %v", got, err)
		}
		s.Stop()
		for range s.open.All {
			t.Errorf("something is kept of %s", request)
		}
		if s.ledger.sending != 0 || s.ledger.kept != 0 {
			t.Errorf("%d and %d bytes are accounted for %s", s.ledger.sending, s.ledger.kept, request)
		}
	}
}
