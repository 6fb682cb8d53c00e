package assembly

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/record"
)

// auditEnd is how long the end of a session waits for its last records.
const auditEnd = time.Second

// scrubbers take out of records what must not reach the disk.
type scrubbers struct {
	looks, known *record.Scrubber
}

// Auditing is the audit of a run, which outlives a configuration that is read
// again; the secrets it must not record may change with that.
type Auditing struct {
	Audits bool        // there is to be one, if the configuration has a file for it
	Audit  *audit.Conn // nil without one
	scrub  atomic.Pointer[scrubbers]
}

// addAudit puts the audit around the layers: outside all but trace and, where it
// is required, inside all but briefing as well, so that a refusal of its own does
// not carry one. A dry run refuses nothing. It is made with the first
// configuration.
func (l *Layers) addAudit(p cli.Process, s *config.Settings, log *slog.Logger) error {
	at := 1 + slices.IndexFunc(l.List, func(m middleware.Layer) bool { return m.Name == "trace" })
	if !l.Audits && l.Audit == nil {
		if s.Audit.Required && s.Audit.File != "" {
			// Explain and replay write no audit, but judge frames as if there were one.
			l.List = slices.Insert(l.List, at, middleware.Layer{Name: "audit", Enforces: true})
		}
		return nil
	}
	if err := l.makeAudit(s, log); err != nil || l.Audit == nil {
		return err
	}
	known := config.Secrets(p, s, l.Secrets)
	known.Home, known.Host = "", "" // records are to name places as they are
	l.scrub.Store(&scrubbers{record.NewScrubber(known), record.NewToldScrubber(known)})
	l.List = slices.Insert(l.List, at, l.Audit.Layer())
	if !l.Audit.Required() || s.DryRun {
		return nil
	}
	at = slices.IndexFunc(l.List, func(m middleware.Layer) bool { return m.Name == "briefing" })
	if at < 0 {
		at = len(l.List)
	}
	l.List = slices.Insert(l.List, at, l.Audit.Gate())
	return nil
}

// makeAudit makes the audit, unless that was settled before.
func (k *Auditing) makeAudit(s *config.Settings, log *slog.Logger) error {
	if k.Audit != nil {
		return nil
	}
	if problems := config.CheckAudit(s); problems != nil {
		return problems
	}
	k.Audits = false
	if s.Audit.File == "" {
		return nil
	}
	shared, err := audit.Compile(audit.Options{
		Log:       chain.New(chain.Options{File: s.Audit.File, MaxSize: s.Audit.MaxSize, Log: log}),
		Server:    s.Server.Name,
		Arguments: audit.Arguments(s.Audit.Arguments),
		Required:  s.Audit.Required,
	})
	if err != nil {
		return err
	}
	k.Audit = shared.Connect(audit.ConnOptions{
		Redact: func(raw []byte) []byte { return k.scrub.Load().looks.Line(raw) },
		Scrub:  func(record []byte) []byte { return k.scrub.Load().known.Line(record) },
	})
	return nil
}

// Aside tells the audit of frames that no layer sees.
func Aside(a *audit.Conn) func(proxy.Aside) {
	if a == nil {
		return nil
	}
	return func(f proxy.Aside) { a.Aside(f.Message, f.Why, f.Code) }
}

// EndAudit writes what is left to write.
func EndAudit(a *audit.Conn, log *slog.Logger) {
	if a == nil {
		return
	}
	a.Close()
	if err := a.Shared.Close(auditEnd); err != nil {
		log.Error(err.Error())
	}
}
