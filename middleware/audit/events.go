package audit

import (
	"errors"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// An Agent is one run of an agent that a session started.
type Agent struct {
	Name    string // the name of its template in the configuration
	Session string // the handle of its session
	Run     int    // counted from 1
	Parent  string // the handle of the session that created it
	Trust   string
	Program string // the first word of its command
}

// An AgentEnd describes how a run of an agent ended.
type AgentEnd struct {
	Failed     bool
	Why        string // attache's description: "killed after 30m0s, after 30m0.1s (signal SIGTERM)"
	ExitStatus int
	CostUSD    string // as printed by the agent's program
	Report     string // the report to the session that created the agent; its digest is recorded
	Took       time.Duration
}

// AgentStarted records that an agent is about to be started. If Options.Required is set and
// the record cannot be written, it returns an error, and the agent must not be started.
func (s *Shared) AgentStarted(a Agent) error {
	r := append(s.agent("agent_started", a).text("trust", a.Trust).text("program", clip(a.Program)), '}')
	if !s.o.Required {
		s.o.Log.Append(r)
	} else if !isWritten(s.o.Log.Commit(r), time.Now().Add(commitWait)) {
		return errors.New("its start could not be recorded, and audit.required is set: see the audit file")
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

func (s *Shared) agent(kind string, a Agent) record {
	return s.head(nil, kind, time.Now()).text("server", s.o.Server).text("agent", a.Name).
		text("agent_session", a.Session).number("agent_run", a.Run).text("parent", a.Parent)
}

// ServerRestarted records that the server ended and was started again: how it ended, the
// number of calls that were answered with an error, and how long it was down.
func (c *Conn) ServerRestarted(exit string, lost int, down time.Duration) {
	r := c.head(nil, "server_restarted", time.Now()).text("server", c.o.Server).text("exit", clip(exit)).number("calls_lost", lost)
	c.append(r.number("down_ms", int(down.Milliseconds())))
}

// ListChanged records that a list of a restarted server differs from the one before, with the
// digests of the two.
func (c *Conn) ListChanged(method, before, after string) {
	c.append(c.head(nil, "list_changed", time.Now()).text("server", c.o.Server).text("method", method).text("before", before).text("after", after))
}

// Aside records a frame from the client that no layer saw. It was refused with a code, or
// passed without any rule if code is 0. Another parser may read the frame differently from
// the record. from identifies the client; it is nil if only the frame could do so.
//
// No layer sees such a frame, so a program calls Aside from proxy.Options:
//
//	Aside: func(a proxy.Aside) { conn.Aside(a.Message, a.Why, a.Code, nil) },
func (c *Conn) Aside(m *wire.Message, why string, code int, from *sessionstate.Context) {
	decision := "refused"
	if code == 0 {
		decision = "unjudged"
	}
	r := c.head(nil, "aside", time.Now())
	if from != nil {
		r = append(r, c.identityOf(from)...)
	}
	r = r.text("server", c.o.Server).text("frame", m.Kind().String())
	if m.Kind() == wire.Request || m.Kind() == wire.Notification {
		r = r.text("method", clip(m.Method())).text("tool", clip(m.Name().Text()))
	}
	r = r.text("decision", decision).text("why", why).number("code", code)
	r = c.digests.append(r, "frame_digest", m.Frame())
	c.append(r.number("request_bytes", len(m.Line())))
}
