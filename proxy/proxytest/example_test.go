package proxytest_test

import (
	"context"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Careful is a project's own layer: it refuses one tool.
var Careful = middleware.Layer{Name: "careful", Wrap: func(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.MethodIs("tools/call") && m.Name().Equals("format_disk") {
			return middleware.CallFrom(ctx).Answer(ctx, wire.ErrorReply(m.ID(), wire.CodeInvalidParams, "not for agents"))
		}
		return next(ctx, m)
	}
}}

// TestRecorded is a project's own test: it plays sessions that were recorded with
// `attache --record` through the layer, and fails for each byte that differs from
// what was recorded. When a change of the layer is meant, `attache replay
// --update` or a new recording brings the file up to date.
func TestRecorded(t *testing.T) {
	proxytest.Replay(t, "testdata/*.jsonl", Careful)
}

// TestScripted plays sessions that were written by hand.
func TestScripted(t *testing.T) {
	proxytest.Play(t, "testdata/*.txt", Careful)
}

// A test of a project's own is one line: see TestRecorded and TestScripted.
func Example() {
	var t *testing.T // of the test

	proxytest.Replay(t, "testdata/*.jsonl", Careful) // sessions that were recorded
	proxytest.Play(t, "testdata/*.txt", Careful)     // sessions that were written by hand
}
