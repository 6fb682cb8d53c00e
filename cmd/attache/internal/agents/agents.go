// Package agents runs the agents that sessions create. Each agent has its own supervisor: an attache
// process that outlives the client, is the parent process of the agent, and reports how it ended.
//
// [Launcher] starts a supervisor and waits until it has started the agent or failed to. [Supervise]
// is the supervisor. Only the operator's configuration determines which command runs; the process
// that starts the supervisor sends the command through a pipe.
package agents

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// Command is the subcommand of attache that runs a supervisor.
const Command = "agent-run"

// startTime is how long [Launcher.Start] waits for a supervisor to start its agent.
const startTime = 2 * time.Second

// An order describes the run of an agent to its supervisor.
type order struct {
	Store       string // the registry's file
	StoreURL    string // the registry's database; "" for the file
	Outputs     string // the directory for the outputs of agents
	Run         teams.RunRef
	Server      string // the server's name in audit records
	Audit       config.AuditSettings
	Argv, Env   []string
	Dir         string
	Result      string
	TimeLimit   time.Duration
	OnParentEnd string
}

// outputDirectory returns the directory for the outputs of agents.
func outputDirectory(p cli.Process) string { return filepath.Join(p.StateDir, "attache", "agents") }

// A Launcher starts agents.
type Launcher struct {
	Process    cli.Process
	Executable string // the path of attache
	Settings   func() *config.Settings
	Log        *slog.Logger
}

// Agent returns the template with the given name, if sessions of the given trust may start it.
func (l *Launcher) Agent(name, trust string) (config.Agent, error) {
	agent, ok := l.Settings().Agents[name]
	if !ok || !slices.Contains(agent.AllowTrust, trust) {
		return config.Agent{}, teams.ErrAgent
	}
	return agent, nil
}

// CanResume reports whether a message restarts the agent of a session: its run is over, its template
// has a command to resume it, and its parent session is not over or does not matter.
func (l *Launcher) CanResume(s *teams.Session) bool {
	agent := l.Settings().Agents[s.Agent]
	return isOver(s) && hasResume(agent, s) && (!s.ParentOver || agent.OnParentEnd == "keep")
}

// NeverResumes reports whether no message restarts the agent of a session: its run is over, and its
// template cannot resume it, or does not without its parent. It returns false if the template is not
// known here, because its owner may resume it.
func (l *Launcher) NeverResumes(s *teams.Session) bool {
	_, known := l.Settings().Agents[s.Agent]
	return isOver(s) && known && !l.CanResume(s)
}

func isOver(s *teams.Session) bool { return s.State == teams.Finished || s.State == teams.Failed }

// hasResume reports whether a template has a command to resume a session, for which everything is known. The
// session's id comes from the registry, where the agent's own program or another process may have put it.
func hasResume(agent config.Agent, s *teams.Session) bool {
	return len(agent.Resume) > 0 && (setting.IsArgument(s.AgentSession) || !slices.Contains(agent.Resume, config.SessionPlaceholder))
}

// Secrets identify a run of a session: Key is its session key, and Token proves that the run owns it.
type Secrets struct{ Key, Token string }

// NewSecrets returns random secrets for a session of a tenant. The key is a UUID, because agents' programs
// accept only a UUID as the id of a session.
func NewSecrets(tenant string) Secrets {
	return Secrets{Key: uuid.NewString(), Token: teams.NewToken(tenant)}
}

// OwnSession returns the session id that attache passes to an agent's program, or "" if the program
// chooses its own.
func OwnSession(agent config.Agent, key string) string {
	if slices.Contains(agent.Command, config.SessionPlaceholder) {
		return key
	}
	return ""
}

// Start starts the supervisor of a run of a session, and returns when the agent has started. If that
// fails, it ends the run and reports the failure to the parent session before it returns the error.
func (l *Launcher) Start(ctx context.Context, db *teams.Store, s *teams.Session, run int, secrets Secrets, view *sessionstate.Context) error {
	settings := l.Settings()
	agent := settings.Agents[s.Agent]
	command := agent.Command
	if run > 1 {
		command = agent.Resume
	}
	o := order{
		Store: assembly.TeamsFile(l.Process), Outputs: outputDirectory(l.Process), Run: teams.RunRef{Ref: s.Ref, Run: run},
		Server: settings.Server.Name, Audit: settings.Audit,
		Argv: setting.Fill(command, map[string]string{config.SessionPlaceholder: s.AgentSession, config.WorkspacePlaceholder: view.Workspace.Value}), Env: l.environment(agent, s, secrets, view),
		Dir: directory(view), Result: agent.Result, TimeLimit: agent.TimeLimit, OnParentEnd: agent.OnParentEnd,
	}
	var err error
	if run == 1 {
		err = l.recordStart(s)
	}
	if err == nil {
		o.StoreURL, err = settings.Store.Address(l.Process)
	}
	if err == nil {
		err = l.launch(ctx, o, s.ID)
	}
	if err != nil {
		_, ended := db.EndRun(ctx, o.Run, notStarted(err))
		return errors.Join(err, ended)
	}
	return nil
}

// directory returns the directory in which an agent runs: the workspace. If only the id of the workspace is known, it
// is the directory of this process, because clients start attache in a directory of the user.
func directory(view *sessionstate.Context) string {
	if view.Workspace.Value != "" {
		return view.Workspace.Value
	}
	dir, _ := os.Getwd() // an error leaves the root, in which the supervisor runs
	return dir
}

// launch starts a supervisor and waits until it reports that the agent has started, or why not.
func (l *Launcher) launch(ctx context.Context, o order, handle string) error {
	input, err := json.Marshal(o)
	if err != nil {
		return err
	}
	out, err := child.StartDetached(child.Options{Argv: []string{l.Executable, Command, handle}, Env: l.Process.Env, Dir: "/"}, input)
	if err != nil {
		return err
	}
	report := make(chan string, 1)
	go func() {
		defer out.Close()
		line, _ := bufio.NewReader(out).ReadString('\n')
		report <- strings.TrimSpace(line)
	}()
	select {
	case line := <-report:
		if line != started {
			return errors.New(cmp.Or(line, "its supervisor ended"))
		}
	case <-time.After(startTime): // the supervisor continues, and will report the end of the run
	case <-ctx.Done():
	}
	return nil
}

// started is the line that a supervisor writes when it has started its agent.
const started = "started"

// notStarted returns the ending of a run whose agent could not be started. If only the registry was
// not available, the messages for the agent stay in its mailbox, and start it later.
func notStarted(err error) teams.Ending {
	return teams.Ending{Failed: true, NotStarted: !errors.Is(err, teams.ErrUnavailable), ExitStatus: -1, Report: "could not start: " + err.Error()}
}

// Resume restarts the agents of a workspace that are over and have messages waiting, if their
// templates allow it. Before that it reports the ends of runs that their supervisors could not
// report.
func (l *Launcher) Resume(ctx context.Context, db *teams.Store, me *teams.Session, view *sessionstate.Context) {
	sendSpooled(ctx, db, outputDirectory(l.Process), l.Log)
	waiting, err := db.Resumable(ctx, me.Tenant, me.Workspace)
	if err != nil {
		return
	}
	for _, s := range waiting {
		l.ResumeOne(ctx, db, s, view)
	}
}

// ResumeOne restarts the agent of a session if [Launcher.CanResume] allows it, the agent has run on this machine for
// this user, and this process's session, whose context is view, is in the agent's workspace. Other machines and users
// that share the registry do not have the files of the agent's program, and their environment differs. If the agent
// inherits an API key, only a session of the agent's owner restarts it.
func (l *Launcher) ResumeOne(ctx context.Context, db *teams.Store, s *teams.Session, view *sessionstate.Context) {
	user, _ := view.Lookup("principal.user")
	if !l.CanResume(s) || !l.hasRun(s) || assembly.WorkspaceID(view) != s.Workspace || l.Settings().Agents[s.Agent].Key == "inherit" && s.Owner != user.Value {
		return
	}
	secrets := NewSecrets(s.Tenant)
	run, err := db.BeginRun(ctx, s.Ref, l.Settings().Teams.Limits, secrets.Key, secrets.Token)
	if err == nil && run > 0 {
		_ = l.Start(ctx, db, s, run, secrets, view) // reports an error to the parent itself
	}
}

// hasRun reports whether the agent of a session was started on this machine by this user, with the template and in the
// workspace that the registry has. Other programs may write to the registry, and another template may have more rights.
func (l *Launcher) hasRun(s *teams.Session) bool {
	text, err := os.ReadFile(l.startFile(s))
	agent, workspace, known := strings.Cut(string(text), "\n")
	return err == nil && agent == s.Agent && (!known || workspace == s.Workspace) // earlier versions recorded no workspace
}

// startFile returns the path of the file with the template and the workspace of an agent.
func (l *Launcher) startFile(s *teams.Session) string {
	return filepath.Join(outputDirectory(l.Process), s.ID, "template")
}

// recordStart writes the file that hasRun reads.
func (l *Launcher) recordStart(s *teams.Session) error {
	file := l.startFile(s)
	return cmp.Or(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(s.Agent+"\n"+s.Workspace), 0o600))
}
