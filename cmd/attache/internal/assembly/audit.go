package assembly

import (
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/auditheads"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/filecheck"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/proxy/record"
)

// auditEnd is how long a process waits at its end for its last records.
const auditEnd = time.Second

// headsEnd is how long it then waits for a database that hangs. A working database has answered by
// then, and a client that ends its servers does not wait long.
const headsEnd = 300 * time.Millisecond

// compileAudit opens the audit with the first configuration, and sets the scrubbers of each
// configuration. The file stays the same until the process ends, because its records are a chain that one writer
// continues; the secrets may change with each configuration.
func (s *Shared) compileAudit() error {
	p := s.process
	if !p.Audit {
		return nil
	}
	if p.current == nil { // the first configuration; setCurrent comes after compile
		if err := p.openAudit(s.settings); err != nil {
			return err
		}
	}
	if p.audit == nil {
		return nil
	}
	known := config.Secrets(p.Process, s.settings, s.secrets)
	// Records keep the names of the home directory and the host, because readers need them and they are no
	// secrets.
	known.Home, known.Host = "", ""
	// scrubAudit is for arguments and URIs, scrubKnown for whole records: see audit.ConnOptions.
	s.scrubAudit, s.scrubKnown = record.NewScrubber(known), record.NewKnownScrubber(known)
	return nil
}

// openAudit opens the audit, if one is configured. With a database, the end of the chain is also stored in the
// database, because a server that can write to the file usually cannot change the database. Note gets each head,
// and a goroutine of heads stores the last one.
func (p *process) openAudit(s *config.Settings) error {
	if problems := filecheck.Audit(s); problems != nil {
		return problems
	}
	if s.Audit.File == "" {
		return nil
	}
	o := chain.Options{File: s.Audit.File, MaxSize: s.Audit.MaxSize, Log: p.Log}
	if p.Database != nil {
		p.heads = auditheads.NewWriter(auditheads.Options{
			Store: auditheads.Open(p.Database.Open(auditheads.Schema())), Place: auditheads.PlaceOf(s.Audit.File), Log: p.Log,
		})
		o.Head = p.heads.Note
	}
	p.audit = audit.Compile(audit.Options{
		Log:       chain.New(o),
		Server:    s.Server.Name,
		Arguments: audit.Arguments(s.Audit.Arguments),
		Required:  s.Audit.Required,
	})
	return nil
}
