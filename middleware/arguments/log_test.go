package arguments

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
)

// The first edit of each kind of a tool is logged at info, every further one at debug. The reason
// why the built-in rule does not fill an argument is also logged at debug.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	x := newToolTest(t, Default())
	x.conn.log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	for range 2 {
		x.shown(`{"properties":{"workspace":{"type":"string","description":"Path of the workspace"}},"required":["workspace"]}`)
		x.call(`{}`)
	}
	for range 2 {
		x.shown(`{"properties":{"workspace":{"type":"string","description":"The workspace's ID"}},"required":["workspace"]}`)
		x.call(`{}`)
		x.call(`{"workspace":"ws-1"}`) // no rule has another value for it
	}
	const want = `level=INFO msg="edited the schemas in tools/list" argument=workspace tools=1 shown=optional
level=INFO msg="filled workspace of t from CLAUDE_PROJECT_DIR"
level=DEBUG msg="edited the schemas in tools/list" argument=workspace tools=1 shown=optional
level=DEBUG msg="filled workspace of t from CLAUDE_PROJECT_DIR"
level=DEBUG msg="the built-in rule leaves an argument alone" tool=t argument=workspace why="it speaks of something other than the path of the workspace" words=id
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The memory for events is bounded.
func TestEventsAreBounded(t *testing.T) {
	var c Conn
	for i := range maxEvents + 10 {
		if got := c.first(event{kind: "filled", tool: strings.Repeat("x", i)}); got != (i < maxEvents) {
			t.Fatalf("event %d is the first of its kind: %v", i, got)
		}
	}
	// Long names with the same beginning are one event.
	var long Conn
	for i, want := range []bool{true, false} {
		if got := long.first(event{kind: "filled", tool: strings.Repeat("x", maxEventTool) + strconv.Itoa(i)}); got != want {
			t.Errorf("event %d of a tool with a long name is the first of its kind: %v", i, got)
		}
	}
	for e := range long.logged {
		if len(e.tool) > maxEventTool {
			t.Errorf("%d bytes of a name are kept", len(e.tool))
		}
	}
}
