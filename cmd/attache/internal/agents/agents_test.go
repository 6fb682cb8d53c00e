package agents

import (
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
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
	}
	l := &Launcher{Settings: func() *config.Settings { return settings }}
	for _, test := range []struct {
		name    string
		session teams.Session
		want    bool
	}{
		{"finished", teams.Session{Agent: "resumes", State: teams.Finished, AgentSession: "id"}, true},
		{"failed", teams.Session{Agent: "resumes", State: teams.Failed, AgentSession: "id"}, true},
		{"its program told no id", teams.Session{Agent: "resumes", State: teams.Finished}, false},
		{"starts", teams.Session{Agent: "resumes", State: teams.Starting, AgentSession: "id"}, false},
		{"works", teams.Session{Agent: "resumes", State: teams.Working, AgentSession: "id"}, false},
		{"idle: a person has it open", teams.Session{Agent: "resumes", State: teams.Idle, AgentSession: "id"}, false},
		{"was ended", teams.Session{Agent: "resumes", State: teams.Ended, AgentSession: "id"}, false},
		{"gone, of a person", teams.Session{State: teams.Gone}, false},
		{"its template cannot", teams.Session{Agent: "once", State: teams.Finished, AgentSession: "id"}, false},
		{"its template is gone", teams.Session{Agent: "other", State: teams.Finished, AgentSession: "id"}, false},
		{"its parent is over", teams.Session{Agent: "resumes", State: teams.Finished, AgentSession: "id", ParentOver: true}, false},
		{"its parent is over, stop", teams.Session{Agent: "stops", State: teams.Finished, AgentSession: "id", ParentOver: true}, false},
		{"its parent is over, keep", teams.Session{Agent: "keeps", State: teams.Finished, AgentSession: "id", ParentOver: true}, true},
	} {
		if got := l.CanResume(&test.session); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
