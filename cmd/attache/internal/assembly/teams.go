package assembly

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientprocess"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/teams"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// TeamsOptions are the options of the layer teams in a process with one client.
type TeamsOptions struct {
	// ToolCalls is set in the process that runs the server of the teams tools.
	ToolCalls *teams.ToolCalls
	// Waker returns the function that notifies an idle session of messages.
	Waker func(teams.Host) teams.Wake
	// Resume resumes agents that have waiting messages; nil for a process that starts none.
	Resume func(ctx context.Context, s *store.Store, me *store.Session, view *sessionstate.Context)
}

// compileTeams compiles the layer teams. It survives a configuration reload, because its sessions
// are registered once: p.teams stays, even while a configuration does not use it, and Close closes it. A dry run
// registers no session and carries no messages.
func (s *Shared) compileTeams() error {
	o := s.Options.Teams
	if o == nil || !s.settings.Teams.Enabled || s.settings.DryRun {
		return nil
	}
	p := s.process
	if p.teams == nil {
		host, _ := os.Hostname()
		p.teams = teams.Compile(teams.Options{
			Open:          func() (*store.Store, error) { return OpenTeams(p.Process, p.Database) },
			Shared:        p.Database != nil,
			Watches:       p.watches(host),
			Server:        s.settings.Server.Name,
			Host:          host,
			PID:           os.Getpid(),
			Token:         p.Process.Getenv(config.SessionTokenVariable),
			Workspace:     WorkspaceID,
			ClientProcess: clientprocess.Name,
			TTL:           s.settings.Session.TTL,
			Structured:    toolresult.Structured(s.settings.Briefing.Structured),
			Waker:         o.Waker,
			Resume:        o.Resume,
			Log:           s.log,

			LateCredentials: s.settings.Identity.MetaAPIKey || s.settings.Identity.MetaToken,
		})
	}
	s.teams = p.teams
	return nil
}

// watches returns the directory for [teams.Options.Watches], "" without a database. Its name depends
// on the host, because several machines or containers may share a state directory, and on the database, because a user
// may have sessions in several.
func (p *process) watches(host string) string {
	if p.Database == nil {
		return ""
	}
	registry := sha256.Sum256([]byte(p.Database.Address() + "\n" + host))
	return p.Process.StatePath("watches", hex.EncodeToString(registry[:8]))
}

// teams returns no layer unless the operator has enabled it.
func (b *builder) teams() middleware.Layer {
	if b.shared.teams == nil {
		return middleware.Layer{}
	}
	return b.shared.teams.Connect(teams.ConnOptions{
		Catalog:   &b.conn.catalog,
		Results:   &b.conn.results,
		ToolCalls: b.shared.Options.Teams.ToolCalls,
	}).Layer()
}

// WorkspaceID returns the id of a session's workspace in the registry: the operator's id, or a
// digest of the path; "" if the session has no workspace. The path is cleaned first, so that two
// spellings of it are one workspace.
func WorkspaceID(view *sessionstate.Context) string {
	switch {
	case view == nil:
		return ""
	case !view.WorkspaceID.Empty():
		return view.WorkspaceID.Value
	case view.Workspace.Empty():
		return ""
	}
	sum := sha256.Sum256([]byte(filepath.Clean(view.Workspace.Value)))
	return "path:" + hex.EncodeToString(sum[:])
}

// spawnedTrust returns the level of trust of the session. For an agent that another session started
// as sandboxed, flags cannot raise it. The supervisor that started the agent has set both variables.
func spawnedTrust(p cli.Process, trust sessionstate.Fact) sessionstate.Fact {
	const variable = setting.Prefix + "_TRUST_LEVEL"
	if p.Getenv(config.SessionTokenVariable) == "" || sessionstate.NormalizeTrust(p.Getenv(variable)) != sessionstate.Sandboxed {
		return trust
	}
	return sessionstate.Fact{Value: sessionstate.Sandboxed, Source: sessionstate.Operator, From: variable}
}
