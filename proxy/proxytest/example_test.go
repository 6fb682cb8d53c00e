package proxytest_test

import (
	"context"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Careful is the layer of some project. It refuses one tool.
var Careful = middleware.Layer{Name: "careful", Wrap: func(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.MethodIs("tools/call") && m.Name().Equals("format_disk") {
			return middleware.CallFrom(ctx).Answer(ctx, wire.ErrorReply(m.ID(), wire.CodeInvalidParams, "not for agents"))
		}
		return next(ctx, m)
	}
}}

// TestRecorded is the test of that project. It plays sessions that were recorded with
// `attache --record` through the layer, and fails if any byte differs from the recording.
// After an intended change of the layer, update the file with `attache replay --update` or
// with a new recording.
func TestRecorded(t *testing.T) {
	proxytest.Replay(t, "testdata/*.jsonl", Careful)
}

// TestScripted plays scripts that were written by hand.
func TestScripted(t *testing.T) {
	proxytest.Play(t, "testdata/*.txt", Careful)
}

// A test of your own layer needs one line: see TestRecorded and TestScripted.
func Example() {
	var t *testing.T // the parameter of your test

	proxytest.Replay(t, "testdata/*.jsonl", Careful) // recorded sessions
	proxytest.Play(t, "testdata/*.txt", Careful)     // scripts
}
