package config

import (
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// RestartSettings configure what happens when the server ends during a session.
type RestartSettings struct {
	On     string // "crash" or "never"
	Hold   time.Duration
	Hang   time.Duration // 0 for never
	Retry  []string      // globs of tool names
	Notice bool
}

func restartOptions(s *Settings) []setting.Option {
	r := &s.Server.Restart
	return []setting.Option{
		{Key: "server.restart.on", Help: "crash: a server that ends after the handshake is started again, and the session continues; never: attache ends with it", Value: setting.Choice(&r.On, "crash", "never")},
		{Key: "server.restart.hold", Help: "how long calls wait for a server that is started again", Value: setting.Duration(&r.Hold, time.Millisecond)},
		{Key: "server.restart.hang", Help: "how long a server may be silent while calls are running before it is ended and started again; empty: no limit", Value: setting.OptionalDuration(&r.Hang, time.Second)},
		{Key: "server.restart.retry", Help: "tools (patterns) whose calls are sent again, though they may have run when the server ended", Value: setting.Words{To: &r.Retry}},
		{Key: "server.restart.notice", Help: "tell the model before the next result of a tool that the server has lost its memory", Value: setting.Bool(&r.Notice)},
	}
}
