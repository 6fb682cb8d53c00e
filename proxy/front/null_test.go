package front

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/front/internal/answer"
	"github.com/attache-mcp/attache/proxy/wire"
)

// sessionWithCalls returns a session with one call for each id, each on its own stream.
func sessionWithCalls(ids ...string) *session {
	s := &session{log: slog.New(slog.DiscardHandler), calls: map[string]*call{}, tokens: map[string]*call{}}
	for i, id := range ids {
		t := newStream(true)
		t.calls = 1
		s.calls[id] = &call{Request: answer.Request{Raw: []byte(id)}, id: id, stream: t, number: uint64(i + 1)}
	}
	return s
}

// The relay refuses calls whose id is not an integer with a null id, oldest call first.
func TestNullAnswersTheOldestCall(t *testing.T) {
	ids := []string{"9.5", "7", "1.5", "3e1", "2.5"}
	for range 20 { // a map has no order
		if c := sessionWithCalls(ids...).callLocked([]byte("null")); c.id != "9.5" {
			t.Fatalf("null answers %s", c.id)
		}
	}
}

// An array is sent on one stream, and its replies answer no call of another stream.
func TestNullsInAnArray(t *testing.T) {
	s := sessionWithCalls("1.5", "2.5")
	m := wire.Parse(wire.Server, []byte(strings.Replace(`[ERROR,ERROR]`, "ERROR", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`, 2)+"\n"))
	(&output{s: s}).batch(m)
	if s.calls["1.5"] != nil || s.calls["2.5"] == nil {
		t.Errorf("the calls that wait are %v", s.calls)
	}
}

// Each kind of refused request has a limit of its own for the log.
func TestRefusalsByKind(t *testing.T) {
	var log bytes.Buffer
	f := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	x := &exchange{f: f, r: httptest.NewRequest("POST", "/mcp", nil)}
	for range 100 {
		x.logRefusal(&f.refused.limit, slog.LevelWarn, errors.New("limit"))
		x.logRefusal(&f.refused.unchecked, slog.LevelWarn, errors.New("unchecked"))
		x.logRefusal(&f.refused.credential, slog.LevelInfo, errors.New("credential"))
	}
	for want, times := range map[string]int{"WARN limit": 1, "INFO limit": 18, "WARN unchecked": 1, "INFO unchecked": 18, "INFO credential": 19} {
		level, kind, _ := strings.Cut(want, " ")
		if n := strings.Count(log.String(), "level="+level+" msg=\"a request was refused\" err="+kind); n != times {
			t.Errorf("%s %d times, want %d:\n%s", want, n, times, &log)
		}
		if n := strings.Count(log.String(), kind+" (more within a minute are logged at debug level)"); n != 1 {
			t.Errorf("the limit for %s is logged %d times", kind, n)
		}
	}
}
