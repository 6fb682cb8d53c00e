package agents

import (
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// auditEnd is how long a supervisor waits for its records to be written.
const auditEnd = time.Second

// openAudit returns the audit of an order, or nil if it has none. It does not open the file.
func openAudit(o order) *audit.Shared {
	if o.Audit.File == "" {
		return nil
	}
	return audit.Compile(audit.Options{
		Log:    chain.New(chain.Options{File: o.Audit.File, MaxSize: o.Audit.MaxSize}),
		Server: o.Server, Required: o.Audit.Required,
	})
}

// recordStart records that the agent is about to start.
func (s *supervisor) recordStart() error {
	if s.audit == nil {
		return nil
	}
	return s.audit.AgentStarted(s.record())
}

// recordEnd records how the run ended, and closes the audit. It is called before the parent gets the
// result.
func (s *supervisor) recordEnd(e store.Ending) {
	if s.audit == nil || s.me == nil {
		return
	}
	why, _, _ := strings.Cut(e.Report, ":\n") // without the agent's own text
	s.audit.AgentEnded(s.record(), audit.AgentEnd{
		Failed: e.Failed, Why: why, ExitStatus: e.ExitStatus, CostUSD: e.CostUSD, Report: e.Report, Took: time.Since(s.began),
	})
	_ = s.audit.Close(auditEnd) // the parent gets the result even if this fails
}

// record returns the fields that the records of the run have in common.
func (s *supervisor) record() audit.Agent {
	return audit.Agent{
		Name: s.me.Agent, Session: s.me.ID, Run: s.o.Run.Run, Parent: s.me.Parent, Trust: s.me.Trust, Program: s.o.Argv[0],
	}
}
