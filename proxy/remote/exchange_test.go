package remote

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/mempipe"
)

// answers is a transport whose server answers with these bytes.
type answers string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return refuses{200, string(a)}.RoundTrip(r)
}

// refuses is a transport whose server answers with that status.
type refuses struct {
	status int
	answer string
}

func (a refuses) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(a.answer))}, nil
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

// A line that might have to wait is not taken from a caller that must not.
func TestTryWrite(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	full := func(s *Server) { s.ledger.sending = s.ledger.limit }
	for _, c := range []struct {
		name, lines string
		before      func(*Server)
		taken       bool
	}{
		{"a request", call, nil, true},
		{"two requests", call + call, nil, false},
		{"a part of one", call[:20], nil, false},
		{"initialize", strings.Replace(call, "ping", "initialize", 1), nil, false},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n", nil, false},
		{"a request that nobody can answer", strings.Replace(call, `"id":1`, `"id":1.5`, 1), nil, false},
		{"a request behind others", call, func(s *Server) { s.inside.Add(1) }, false},
		{"a request without room", call, full, false},
		{"a request over the limit", call, func(s *Server) { s.o.Hold = len(call) - 1 }, false},
	} {
		s, err := Start(Options{URL: "http://127.0.0.1/mcp", Transport: answers(`{"jsonrpc":"2.0","id":1,"result":{}}`)})
		if err != nil {
			t.Fatal(err)
		}
		if c.before != nil {
			c.before(s)
		}
		if taken, err := (stdin{s}).TryWrite([]byte(c.lines)); taken != c.taken || err != nil {
			t.Errorf("%s: %t, %v", c.name, taken, err)
		}
		s.cancel()
	}
}

// A slowReader is a relay that takes lines when it is told to.
type slowReader struct {
	pipeSink
	release chan struct{}
}

// Line implements wire.Sink.
func (s slowReader) Line(line []byte, more bool) error {
	<-s.release
	return s.pipeSink.Line(line, more)
}

// The relay may take the answer to initialize no sooner than it has sent the next message.
func TestAnswerIsHandedOverWhenNothingWaitsForIt(t *testing.T) {
	const request, answer = `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, status := range []int{200, 500} {
		s, err := Start(Options{URL: "http://127.0.0.1/mcp", Transport: refuses{status, answer}})
		if err != nil {
			t.Fatal(err)
		}
		to := slowReader{pipeSink{mempipe.New(0)}, make(chan struct{})}
		s.Push(to)
		io.WriteString(s.Stdin(), request+"\n")
		io.WriteString(s.Stdin(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
		close(to.release)
		if line, err := to.ReadLine(time.Minute); err != nil || !strings.HasPrefix(string(line), `{"jsonrpc":"2.0","id":1,`) {
			t.Errorf("%d: read %q, %v", status, line, err)
		}
		s.Stop()
	}
}
