package doctor

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy/child"
)

// budgetFlag is the flag of Claude Code that limits the cost of a run.
const budgetFlag = "--max-budget-usd"

// agents checks the templates of agents: whether their programs exist, and whether their cost is limited,
// which attache itself cannot do.
func (d *Doctor) agents() {
	d.check = "agents"
	switch {
	case len(d.Settings.Agents) == 0:
		return
	case !d.Settings.Teams.Enabled:
		d.note("set teams.enabled: true, or leave agents out", "there are agents, and teams are off")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(d.Settings.Agents)) {
		d.agent("agents."+name, d.Settings.Agents[name])
	}
}

func (d *Doctor) agent(key string, a config.Agent) {
	workspace, _ := assembly.BaseContext(d.Process, d.Settings).Lookup("session.workspace.path")
	if workspace.Empty() && inWorkspace(a.Command[0]) {
		d.note("give --workspace to check it, or write its full path", "%s: its program %s is relative to the session's workspace, which is not known yet", key, a.Command[0])
		return
	}
	// The agent starts in the workspace, not in doctor's working directory.
	path, err := child.Find(child.Options{Argv: a.Command, Env: d.Env, Dir: workspace.Value})
	if err != nil {
		d.warn("install it, or correct the command", "%s cannot be started: %v", key, err)
	}
	d.resume(key, a, workspace.Value)
	switch {
	case a.Result != "claude-json":
		d.note("bound it by the program's own settings if it has any, and keep time_limit short",
			"%s: as far as attache knows, only time_limit (%s) limits the cost of a run", key, a.TimeLimit)
	case !hasFlag(a.Command, budgetFlag), a.Resume != nil && !hasFlag(a.Resume, budgetFlag):
		d.warn("add "+budgetFlag+" and an amount to command and resume", "%s: only time_limit (%s) limits the cost of a run", key, a.TimeLimit)
	case err == nil:
		d.ok("%s is started as %s", key, path)
	}
}

// resume checks the command that resumes an agent. Codex prints the id of its session, so its command
// needs no {session}.
func (d *Doctor) resume(key string, a config.Agent, workspace string) {
	if a.Resume == nil {
		return
	}
	_, err := child.Find(child.Options{Argv: a.Resume, Env: d.Env, Dir: workspace})
	if err != nil && (workspace != "" || !inWorkspace(a.Resume[0])) {
		d.warn("install it, or correct the command", "%s cannot be resumed: %v", key, err)
	}
	named := func(command []string) bool { return slices.Contains(command, config.SessionPlaceholder) }
	if named(a.Resume) && !named(a.Command) && a.Result != "codex-jsonl" {
		d.warn("put {session} into command, too, or take it out of resume", "%s cannot be resumed: attache does not know the id of its session, because command has no {session}", key)
	}
}

// inWorkspace reports whether a program is looked for in the workspace.
func inWorkspace(program string) bool {
	return strings.ContainsAny(program, `/\`) && !filepath.IsAbs(program)
}

// hasFlag reports whether a command has a flag, with its value in the same word or in the next.
func hasFlag(command []string, flag string) bool {
	return slices.ContainsFunc(command, func(word string) bool { return word == flag || strings.HasPrefix(word, flag+"=") })
}
