package session

import (
	"context"

	"github.com/attache-mcp/attache/cmd/attache/internal/agents"
	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/teamserver"
	"github.com/attache-mcp/attache/cmd/attache/internal/wake"
	"github.com/attache-mcp/attache/middleware/teams"
)

// RunTeams relays one session between the client on stdin and stdout and the server of the
// teams tools, which runs in this process behind the same layers as other servers. executable is
// the program that supervises agents.
func RunTeams(ctx context.Context, o Options, executable string) int {
	w := &relay{p: o.Process, s: o.Settings, command: []string{teamserver.Name}, log: o.Log}
	settings := func() *config.Settings { return w.conn.Settings() }
	launcher := &agents.Launcher{Process: w.p, Executable: executable, Settings: settings, Log: w.log}
	calls := new(teams.ToolCalls)
	server := &teamserver.Server{ToolCalls: calls, Launcher: launcher, Version: o.Version, Log: w.log}
	w.builtin = server.Start
	return w.begin(ctx, o, &assembly.TeamsOptions{ToolCalls: calls, Waker: wake.For(w.p, w.s), Resume: launcher.Resume})
}
