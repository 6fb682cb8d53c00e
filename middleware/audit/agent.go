package audit

import (
	"errors"
	"time"
)

// An Agent is one run of an agent that a session started.
type Agent struct {
	Name    string // of its template in the configuration
	Session string // the handle of its session
	Run     int    // counted from 1
	Parent  string // the handle of the session that created it
	Trust   string
	Program string // the first word of its command
}

// An AgentEnd says how a run of an agent ended.
type AgentEnd struct {
	Failed     bool
	Why        string // attache's own words: "killed after 30m0s, after 30m0.1s (signal SIGTERM)"
	ExitStatus int
	CostUSD    string // as the agent's program said it
	Report     string // what the session that created it is told, of which the digest is recorded
	Took       time.Duration
}

// errUnrecorded is the error of an agent whose start has to be recorded and is not.
var errUnrecorded = errors.New("its start could not be recorded, which audit.required wants: see the audit file")

// AgentStarted records that an agent is about to be started. If records are required, and
// this one is not in the file, it returns an error: the agent must not be started.
func (s *Shared) AgentStarted(a Agent) error {
	r := append(s.agent("agent_started", a).text("trust", a.Trust).text("program", clip(a.Program)), '}')
	if !s.o.Required {
		s.o.Log.Append(r)
	} else if !isWritten(s.o.Log.Commit(r), time.Now().Add(s.o.Wait)) {
		return errUnrecorded
	}
	return nil
}

// AgentEnded records how an agent ended, or that it could not be started.
func (s *Shared) AgentEnded(a Agent, e AgentEnd) {
	result := "finished"
	if e.Failed {
		result = "failed"
	}
	r := s.agent("agent_ended", a).text("result", result).text("why", clip(e.Why)).
		number("exit_status", e.ExitStatus).text("cost_usd", clip(e.CostUSD))
	r = s.digests.append(r, "report_digest", []byte(e.Report))
	s.o.Log.Append(append(r.milliseconds(e.Took), '}'))
}

// agent begins a record of an agent.
func (s *Shared) agent(kind string, a Agent) record {
	return s.head(nil, kind, time.Now()).text("server", s.o.Server).text("agent", a.Name).
		text("agent_session", a.Session).number("agent_run", a.Run).text("parent", a.Parent)
}
