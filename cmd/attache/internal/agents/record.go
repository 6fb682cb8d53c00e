package agents

import (
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// auditEnd is how long a supervisor waits until its records are in the file.
const auditEnd = time.Second

// openAudit returns the audit that an order names, nil for none. It opens no file.
func openAudit(o Order) (*audit.Shared, error) {
	if o.Audit.File == "" {
		return nil, nil
	}
	return audit.Compile(audit.Options{
		Log:    chain.New(chain.Options{File: o.Audit.File, MaxSize: o.Audit.MaxSize}),
		Server: o.Server, Required: o.Audit.Required,
	})
}

// recordStart records that the agent is about to be started.
func (s *supervisor) recordStart() error {
	if s.audit == nil {
		return nil
	}
	return s.audit.AgentStarted(s.record())
}

// recordEnd records how the run ended, before the parent gets the result. No record follows.
func (s *supervisor) recordEnd(e store.Ending) {
	if s.audit == nil || s.me == nil {
		return
	}
	why, _, _ := strings.Cut(e.Report, ":\n") // without what the agent wrote
	s.audit.AgentEnded(s.record(), audit.AgentEnd{
		Failed: e.Failed, Why: why, ExitStatus: e.ExitStatus, CostUSD: e.CostUSD, Report: e.Report, Took: time.Since(s.began),
	})
	_ = s.audit.Close(auditEnd) // the parent gets the result all the same
}

// record returns what the records of the run have in common.
func (s *supervisor) record() audit.Agent {
	return audit.Agent{
		Name: s.me.Agent, Session: s.me.ID, Run: s.o.Run.Run, Parent: s.me.Parent, Trust: s.me.Trust, Program: s.o.Argv[0],
	}
}
