package session

import (
	"context"
	"log/slog"

	"github.com/attache-mcp/attache/cmd/attache/internal/agents"
	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/teamserver"
	"github.com/attache-mcp/attache/cmd/attache/internal/wake"
	"github.com/attache-mcp/attache/middleware/teams"
)

// RunTeams relays one session between the client on stdin and stdout and the server of the
// teams tools, which runs in this process behind the same layers as other servers. executable is
// the program that supervises agents.
func RunTeams(ctx context.Context, p cli.Process, s *config.Settings, load func() (*config.Settings, error), version, executable string, log *slog.Logger) int {
	w := &relay{p: p, s: s, command: []string{teamserver.Name}, log: log, cancel: func() {}}
	settings := func() *config.Settings { return w.conn.Settings() }
	launcher := &agents.Launcher{Process: p, Executable: executable, Settings: settings, Log: log}
	calls := new(teams.ToolCalls)
	server := &teamserver.Server{ToolCalls: calls, Launcher: launcher, Settings: settings, Version: version, Log: log}
	w.builtin = server.Start
	return w.begin(ctx, load, version, &assembly.TeamsOptions{ToolCalls: calls, Waker: wake.For(p, s), Resume: launcher.Resume})
}
