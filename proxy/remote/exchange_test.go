package remote

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A fixedTransport answers each request with a status and a JSON body.
type fixedTransport struct {
	status int
	answer string
}

func (a fixedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(a.answer))}, nil
}

// The memory of answered requests is released, whether they were sent alone or in an array.
func TestAnsweredRequestsAreReleased(t *testing.T) {
	for request, answer := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                              `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"2","method":"ping"}]`: `[{"jsonrpc":"2.0","id":"2","result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1.5,"method":"ping"}]`: `[{"jsonrpc":"2.0","id":1.5,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]`,
	} {
		s, err := Start(Options{URL: "http://127.0.0.1/mcp", Transport: fixedTransport{200, answer}})
		testkit.Check(t, err)
		io.WriteString(s.Stdin(), request+"\n")
		if got, err := bufio.NewReader(s.Stdout()).ReadString('\n'); got != answer+"\n" {
			t.Errorf("got %q, %v", got, err)
		}
		s.Stop()
		for range s.open.All {
			t.Errorf("%s is still open", request)
		}
		if s.ledger.sending != 0 || s.ledger.kept != 0 {
			t.Errorf("%d bytes are being sent and %d are kept for %s", s.ledger.sending, s.ledger.kept, request)
		}
	}
}

// Take accepts only a request that is unambiguous and need not wait. The caller may then reuse its
// bytes, and the server gets them unchanged.
func TestTake(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	full := func(s *Server) { s.ledger.sending = s.ledger.limit }
	for _, c := range []struct {
		name, line string
		before     func(*Server)
		taken      bool
	}{
		{"a request", call, nil, true},
		{"a request with a carriage return", call[:len(call)-1] + "\r\n", nil, true},
		{"a request without a newline", call[:len(call)-1], nil, false},
		{"a part of a request", call[:20] + "\n", nil, false},
		{"an empty line", "\n", nil, false},
		{"initialize", strings.Replace(call, "ping", "initialize", 1), nil, false},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n", nil, false},
		{"a reply", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", nil, false},
		{"an array", "[" + call[:len(call)-1] + "]\n", nil, false},
		{"a request with a fractional id", strings.Replace(call, `"id":1`, `"id":1.5`, 1), nil, false},
		{"a request with two ids", strings.Replace(call, `"id":1`, `"id":1,"id":1`, 1), nil, false},
		{"a request that parsers read differently", strings.Replace(call, `"id":1`, `"id":1,"Method":"pong"`, 1), nil, false},
		{"a request behind queued ones", call, func(s *Server) { s.queued.Add(1) }, false},
		{"a request without room in the ledger", call, full, false},
		{"a request over the limit", call, func(s *Server) { s.o.Hold = len(call) - 1 }, false},
	} {
		got := make(bodies, 1)
		s, err := Start(Options{URL: "http://127.0.0.1/mcp", Transport: got})
		testkit.Check(t, err)
		if c.before != nil {
			c.before(s)
		}
		line := []byte(c.line)
		var m wire.Message
		m.Reset(wire.Client, line)
		new(wire.Scanner).Look(&m)
		if taken := (stdin{s}).Take(&m); taken != c.taken {
			t.Errorf("%s: Take returned %t", c.name, taken)
		}
		clear(line)
		if c.taken {
			if body := <-got; body != call[:len(call)-1] {
				t.Errorf("%s: the server got %q", c.name, body)
			}
		}
		s.cancel()
	}
}

// Messages that Take refuses are written, and later messages that it accepts do not overtake them.
func TestTakenInOrder(t *testing.T) {
	synctest.Test(t, testTakenInOrder)
}

func testTakenInOrder(t *testing.T) {
	got := make(bodies, 4)
	s, err := Start(Options{URL: "http://127.0.0.1/mcp", Transport: got})
	testkit.Check(t, err)
	defer s.cancel()
	w := wire.NewWriter(s.Stdin())
	frames := []string{
		`{"jsonrpc":"2.0","method":"notifications/a"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/b"}`, `{"jsonrpc":"2.0","id":2,"method":"ping"}`,
	}
	for _, frame := range frames {
		var m wire.Message
		m.Reset(wire.Client, []byte(frame+"\n"))
		new(wire.Scanner).Look(&m)
		testkit.Check(t, w.Write(&m))
	}
	testkit.Check(t, w.Flush())
	received := []string{<-got, <-got, <-got, <-got}
	at := func(i int) int { return slices.Index(received, frames[i]) }
	// A notification blocks the messages behind it; a request does not.
	if at(0) != 0 || at(1) < 0 || at(2) < 0 || at(3) < at(2) {
		t.Errorf("the server got %q", received)
	}
}

// bodies is a transport that accepts every request and sends the bodies of POSTs on the channel.
type bodies chan string

func (b bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		got, _ := io.ReadAll(r.Body)
		body = string(got)
	}
	if r.Method == http.MethodPost {
		b <- body
	}
	return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody}, nil
}

// A slowSink is a relay that accepts no line until release is closed.
type slowSink struct {
	pipeSink
	release chan struct{}
}

// Line implements wire.Sink.
func (s slowSink) Line(m *wire.Message, more bool) error {
	<-s.release
	return s.pipeSink.Line(m, more)
}

// A message after initialize can be sent before the relay accepts the answer to initialize.
func TestAnswerDoesNotBlockSend(t *testing.T) {
	const request, answer = `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, status := range []int{200, 500} {
		s, err := Start(Options{URL: "http://127.0.0.1/mcp", Transport: fixedTransport{status, answer}})
		testkit.Check(t, err)
		sink := slowSink{pipeSink{mempipe.New(0)}, make(chan struct{})}
		s.Push(sink)
		io.WriteString(s.Stdin(), request+"\n")
		io.WriteString(s.Stdin(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
		close(sink.release)
		if line, err := sink.ReadLine(time.Minute); err != nil || !strings.HasPrefix(string(line), `{"jsonrpc":"2.0","id":1,`) {
			t.Errorf("%d: read %q, %v", status, line, err)
		}
		s.Stop()
	}
}
