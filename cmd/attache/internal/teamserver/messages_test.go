package teamserver

import (
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/agents"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// A message wakes a session that makes no calls, if attache can wake it. A session that works gets the message
// with its next call.
func TestReach(t *testing.T) {
	c := call{Server: &Server{Launcher: &agents.Launcher{Settings: func() *config.Settings { return new(config.Settings) }}}}
	for _, test := range []struct {
		session store.Session
		want    string
	}{
		{store.Session{State: store.Idle, Wakes: true}, "wake"},
		{store.Session{State: store.Idle}, "next_tool_call"},
		{store.Session{State: store.Working, Wakes: true}, "next_tool_call"},
	} {
		if got := c.reach(&test.session); got != test.want {
			t.Errorf("%s, wakes: %t: reach is %q, want %q", test.session.State, test.session.Wakes, got, test.want)
		}
	}
}
