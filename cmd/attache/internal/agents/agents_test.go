package agents

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// Only an agent whose run is over, whose template has a command to resume it, and whose parent is
// there or not needed can be resumed.
func TestCanResume(t *testing.T) {
	settings := config.DefaultSettings("")
	resume := []string{"agent", "--resume", "{session}"}
	settings.Agents = map[string]config.Agent{
		"resumes": {Resume: resume, OnParentEnd: "finish"},
		"keeps":   {Resume: resume, OnParentEnd: "keep"},
		"stops":   {Resume: resume, OnParentEnd: "stop"},
		"once":    {OnParentEnd: "keep"},
		"anew":    {Resume: []string{"again.sh", "{workspace}"}, OnParentEnd: "finish"},
	}
	l := &Launcher{Settings: func() *config.Settings { return settings }}
	for _, test := range []struct {
		name    string
		session teams.Session
		want    bool
		never   bool // NeverResumes
	}{
		{"finished", teams.Session{Agent: "resumes", State: teams.Finished, AgentSession: "id"}, true, false},
		{"failed", teams.Session{Agent: "resumes", State: teams.Failed, AgentSession: "id"}, true, false},
		{"its program told no id", teams.Session{Agent: "resumes", State: teams.Finished}, false, true},
		{"its program's id is an option", teams.Session{Agent: "resumes", State: teams.Finished, AgentSession: "--yolo"}, false, true},
		{"its program's id is no text", teams.Session{Agent: "resumes", State: teams.Finished, AgentSession: "a\nb"}, false, true},
		{"its program needs no id", teams.Session{Agent: "anew", State: teams.Finished}, true, false},
		{"starts", teams.Session{Agent: "resumes", State: teams.Starting, AgentSession: "id"}, false, false},
		{"works", teams.Session{Agent: "resumes", State: teams.Working, AgentSession: "id"}, false, false},
		{"idle: a person has it open", teams.Session{Agent: "resumes", State: teams.Idle, AgentSession: "id"}, false, false},
		{"was ended", teams.Session{Agent: "resumes", State: teams.Ended, AgentSession: "id"}, false, false},
		{"gone, of a person", teams.Session{State: teams.Gone}, false, false},
		{"its template cannot", teams.Session{Agent: "once", State: teams.Finished, AgentSession: "id"}, false, true},
		{"its template cannot, and it works", teams.Session{Agent: "once", State: teams.Working, AgentSession: "id"}, false, false},
		{"its template is gone", teams.Session{Agent: "other", State: teams.Finished, AgentSession: "id"}, false, false},
		{"its parent is over", teams.Session{Agent: "resumes", State: teams.Finished, AgentSession: "id", ParentOver: true}, false, true},
		{"its parent is over, stop", teams.Session{Agent: "stops", State: teams.Finished, AgentSession: "id", ParentOver: true}, false, true},
		{"its parent is over, keep", teams.Session{Agent: "keeps", State: teams.Finished, AgentSession: "id", ParentOver: true}, true, false},
	} {
		if got := l.CanResume(&test.session); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
		if got := l.NeverResumes(&test.session); got != test.never {
			t.Errorf("%s: never %v, want %v", test.name, got, test.never)
		}
	}
}

// Of the machines that share a registry, only the one on which an agent has run resumes it, with the
// template that it was started with, and in its workspace. An agent with an API key is resumed only by its own user.
func TestResumedWhereItHasRun(t *testing.T) {
	for key, ownerOnly := range map[string]bool{"inherit": true, "none": false} {
		dir := t.TempDir()
		db := openRegistry(t, dir, 0)
		_, child := createAgent(t, db, db)
		if _, err := db.EndRun(t.Context(), teams.RunRef{Ref: child.Ref, Run: 1}, teams.Ending{}); err != nil {
			t.Fatal(err)
		}
		settings := config.DefaultSettings("")
		settings.Agents = map[string]config.Agent{"a": {Resume: []string{"agent", "{session}"}, Key: key}}
		l := &Launcher{Settings: func() *config.Settings { return settings }, Process: cli.Process{StateDir: dir}}
		agentSession := "id"
		runs := func(p *sessionstate.Principal, workspace string) int {
			t.Helper()
			s, err := db.Session(t.Context(), child.Ref)
			check(t, err)
			s.AgentSession = agentSession
			l.ResumeOne(t.Context(), db, s, &sessionstate.Context{Principal: p, WorkspaceID: sessionstate.Fact{Value: workspace}})
			if s, err = db.Session(t.Context(), child.Ref); err != nil {
				t.Fatal(err)
			}
			return s.Run
		}
		if n := runs(nil, "w"); n != 1 {
			t.Errorf("another machine has begun run %d", n)
		}
		child.Agent = "b"
		check(t, l.recordStart(child))
		if n := runs(nil, "w"); n != 1 {
			t.Errorf("an agent of another template has begun run %d", n)
		}
		child.Agent, child.Workspace = "a", "other"
		check(t, l.recordStart(child))
		if n := runs(nil, "w"); n != 1 {
			t.Errorf("an agent of another workspace has begun run %d", n)
		}
		child.Workspace = "w"
		check(t, l.recordStart(child))
		if n := runs(nil, "other"); n != 1 {
			t.Errorf("a session that is in another workspace by now has begun run %d", n)
		}
		agentSession = ""
		if n := runs(nil, "w"); n != 1 {
			t.Errorf("an agent that cannot be resumed has begun run %d", n)
		}
		agentSession = "id"
		if n := runs(&sessionstate.Principal{User: "bob"}, "w"); n == 1 != ownerOnly {
			t.Errorf("key %s: another user has begun run %d", key, n)
		}
		if n := runs(nil, "w"); ownerOnly && n != 2 {
			t.Errorf("the machine of the agent has begun run %d", n)
		}
	}
}

// An agent whose file has no workspace, because an earlier version has started it, is resumed with its template.
func TestResumedFromEarlierVersion(t *testing.T) {
	l := &Launcher{Process: cli.Process{StateDir: t.TempDir()}}
	s := &teams.Session{Ref: teams.Ref{ID: "ses_a"}, Agent: "a", Workspace: "w"}
	check(t, l.recordStart(s))
	check(t, os.WriteFile(l.startFile(s), []byte("a"), 0o600))
	if !l.hasRun(s) {
		t.Error("the agent is not resumed")
	}
	if s.Agent = "b"; l.hasRun(s) {
		t.Error("an agent of another template is resumed")
	}
}

// An id from the registry becomes no option of a template's first command either, which a session that has never run
// would get.
func TestResumedWithItsOwnCommand(t *testing.T) {
	dir := t.TempDir()
	db := openRegistry(t, dir, 0)
	_, child := createAgent(t, db, db)
	_, err := db.EndRun(t.Context(), teams.RunRef{Ref: child.Ref, Run: 1}, teams.Ending{})
	check(t, err)
	file, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "teams.db"))
	check(t, err)
	defer file.Close()
	_, err = file.ExecContext(t.Context(), "UPDATE sessions SET run = 0, agent_session = '--yolo' WHERE id = ?1", child.ID)
	check(t, err)
	settings := config.DefaultSettings("")
	settings.Agents = map[string]config.Agent{"a": {Command: []string{"agent", "{session}"}, Resume: []string{"agent", "--latest"}}}
	l := &Launcher{Settings: func() *config.Settings { return settings }, Process: cli.Process{StateDir: dir}}
	check(t, l.recordStart(child))
	s, err := db.Session(t.Context(), child.Ref)
	check(t, err)
	l.ResumeOne(t.Context(), db, s, &sessionstate.Context{WorkspaceID: sessionstate.Fact{Value: "w"}})
	if s, err = db.Session(t.Context(), child.Ref); err != nil || s.Run != 0 {
		t.Errorf("it has begun run %d: %v", s.Run, err)
	}
}

// An agent runs in the workspace. If only the id of the workspace is known, it runs in attache's own directory, and
// not in that of its supervisor, which is the root.
func TestDirectory(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	for path, want := range map[string]string{"": here, "/src/shop": "/src/shop"} {
		view := &sessionstate.Context{Workspace: sessionstate.Fact{Value: path}, WorkspaceID: sessionstate.Fact{Value: "shop"}}
		if got := directory(view); got != want {
			t.Errorf("with the workspace %q the agent runs in %q, want %q", path, got, want)
		}
	}
}

// An agent gets no variable that describes the session of its parent, whatever prefixes are configured: with
// ATTACHE_SESSION it would be that session.
func TestNoVariablesOfTheParent(t *testing.T) {
	parent := []string{"ATTACHE_SESSION=parent", "ATTACHE_TRUST=direct", "ATTACHE_WORKSPACE=/parent", "OTHER_SESSION_PROOF=parent", "OTHER_INJECTED=parent",
		"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CODEX_SANDBOX=seatbelt", "GEMINI_CLI=1", "THREAD=1", "PROJECT=/p"}
	users := []string{"PATH=/bin", "PWD=/home", "ATTACHE_LOG_LEVEL=debug", "CLAUDE_CODE_USE_BEDROCK=1", "CODEX_HOME=/codex", "GEMINI_CLI_HOME=/gemini"}
	for _, prefixes := range [][]string{{"ATTACHE", "OTHER"}, {"OTHER"}} {
		settings := config.DefaultSettings("")
		settings.Session.EnvPrefixes = prefixes
		settings.Session.HostEnv.Session, settings.Session.HostEnv.Workspace = []string{"THREAD"}, []string{"PROJECT"}
		l := &Launcher{
			Settings: func() *config.Settings { return settings },
			Process:  cli.Process{Env: slices.Concat(users, parent)},
		}
		env := l.environment(config.Agent{}, &teams.Session{Trust: "sandboxed"}, Secrets{Key: "child"}, &sessionstate.Context{})
		for _, entry := range parent {
			if slices.Contains(env, entry) {
				t.Errorf("with the prefixes %v the agent gets %s", prefixes, entry)
			}
		}
		for _, entry := range append(users, "ATTACHE_SESSION_ID=child", "ATTACHE_TRUST_LEVEL=sandboxed") {
			if !slices.Contains(env, entry) {
				t.Errorf("with the prefixes %v the agent does not get %s", prefixes, entry)
			}
		}
	}
}

// An agent that inherits the API key gets no other secret of attache, whatever its variable is called.
func TestInheritedKey(t *testing.T) {
	settings := config.DefaultSettings("")
	settings.Policy.TokenEnv, settings.Store.URL.Env = "POLICY_API_KEY", "STORE_API_KEY"
	l := &Launcher{
		Settings: func() *config.Settings { return settings },
		Process:  cli.Process{Env: []string{"ATTACHE_API_KEY=key", "POLICY_API_KEY=token", "STORE_API_KEY=url"}},
	}
	for key, want := range map[string]bool{"inherit": true, "none": false} {
		env := strings.Join(l.environment(config.Agent{Key: key}, &teams.Session{}, Secrets{}, &sessionstate.Context{}), " ")
		if strings.Contains(env, "ATTACHE_API_KEY=key") != want || strings.Contains(env, "POLICY_") || strings.Contains(env, "STORE_") {
			t.Errorf("%s: the agent gets %s", key, env)
		}
	}
}

// openRegistry opens the registry in a directory. Its clock is behind by slow.
func openRegistry(t *testing.T, dir string, slow time.Duration) *teams.Store {
	t.Helper()
	db, err := teams.Open(t.Context(), teams.Options{Path: filepath.Join(dir, "teams.db"), Now: func() time.Time { return time.Now().Add(-slow) }})
	check(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// createAgent creates a session in parents and an agent of it in db.
func createAgent(t *testing.T, parents, db *teams.Store) (parent, agent *teams.Session) {
	t.Helper()
	parent, err := parents.Attach(t.Context(), teams.Claim{Key: "parent", Workspace: "w"}, teams.Attachment{Instance: "one"})
	check(t, err)
	agent, _, err = db.Create(t.Context(), parent.Ref, teams.Child{Title: "a", Agent: "a", Message: "m", Key: "child"}, teams.DefaultLimits())
	check(t, err)
	return parent, agent
}

// Control characters that another program has put into the registry are not written to a terminal.
func TestStopPrintsIDs(t *testing.T) {
	dir := t.TempDir()
	db := openRegistry(t, dir, 0)
	parent, child := createAgent(t, db, db)
	limits := teams.DefaultLimits()
	limits.SpawnEvery = 0
	other, _, err := db.Create(t.Context(), parent.Ref, teams.Child{Title: "b", Agent: "a", Message: "m", Key: "other"}, limits)
	check(t, err)
	file, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "teams.db"))
	check(t, err)
	defer file.Close()
	_, err = file.ExecContext(t.Context(), "UPDATE sessions SET id = ?1, parent = ?2 WHERE id = ?3", "\x1b[2J", child.ID, other.ID)
	check(t, err)
	var out strings.Builder
	check(t, Stop(t.Context(), cli.Process{Stdout: &out}, db, child.ID))
	if !strings.Contains(out.String(), "ended \ufffd[2J\n") {
		t.Errorf("got %q", out.String())
	}
}

// Control characters in the output of an agent are not written to a terminal.
func TestPrintOutput(t *testing.T) {
	const output = "one\ttwo\r\nover\r\x1b]52;c;cHduZWQ=\a\x1b[2J\u009bA\u202e\x1b[0mend\n"
	for terminal, want := range map[bool]string{
		false: output,
		true:  "one\ttwo\nover\ufffd\ufffd]52;c;cHduZWQ=\ufffd\ufffd[2J\ufffdA\ufffd\x1b[0mend\n",
	} {
		var b strings.Builder
		if err := printOutput(&b, strings.NewReader(output), terminal); err != nil || b.String() != want {
			t.Errorf("terminal=%t: got %q, %v", terminal, b.String(), err)
		}
	}
}

// The output of an agent that ran on another machine is not here, and was never here.
func TestLogsOfAnotherMachine(t *testing.T) {
	dir := t.TempDir()
	db := openRegistry(t, dir, 0)
	_, child := createAgent(t, db, db)
	err := PrintLogs(t.Context(), cli.Process{StateDir: dir}, db, child.ID)
	if err == nil || !strings.Contains(err.Error(), "was on another machine") {
		t.Errorf("got %v", err)
	}
	for _, id := range []string{"", "ses_000000000000"} {
		if s, err := find(t.Context(), db, id); err == nil {
			t.Errorf("%q finds %+v", id, s)
		}
	}
}

var check = testkit.Check
