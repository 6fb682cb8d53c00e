// Package assembly makes the layers for the settings.
//
// A [Shared] is compiled once from a configuration and serves any number of connections at once.
// A [Conn] holds the state of one client connection. A stdio run is one Shared with one Conn.
//
// State that must survive a configuration reload (keys and policies that were read,
// rate buckets, the turns of briefings, the audit) belongs to the process. Compile
// makes it, and [Shared.Reload] passes it to the next Shared.
//
// A Shared does not change, so the pump of a session reads it without a lock. A reload makes another one
// and gives it to each Conn, whose relay then gets new layers. The state of a Conn survives a reload: the
// client has already received parts of it, such as the names of tools and the briefing.
package assembly

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/cmd/attache/internal/auditheads"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/middleware/dryrun"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/middleware/teams"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/identity"
	"github.com/attache-mcp/attache/sessionstate/ratestore"
	"github.com/attache-mcp/attache/sessionstate/turnstore"
)

// Options are the options of the process, which are the same for every configuration.
type Options struct {
	// Process has the environment and the user's directories.
	Process cli.Process
	// Telemetry records spans and metrics; nil records nothing.
	Telemetry *trace.Telemetry
	// Audit enables the audit in the settings. Without it no records are written, but frames
	// are treated as if they were.
	Audit bool
	// Database has the state that several machines share; nil if the state is in files.
	Database *database.Server
	// UserTurns gives a briefing only once in all processes of the user, or of the database.
	UserTurns bool
	// Continues means that sessions continue in other processes, as those of attache serve do.
	Continues bool
	// Teams configures the layer teams; nil for a process that serves no client, or many.
	Teams *TeamsOptions
	Log   *slog.Logger
}

// A Shared is a compiled configuration. All connections use it. It is safe for concurrent use.
type Shared struct {
	*process
	settings      *config.Settings
	number        int // number of the configuration; newer configurations have larger numbers: see Conn.use
	authenticator *Authenticator
	lists         []announce.List         // the lists that depend on the principal
	secrets       []string                // must not reach a disk or a server
	withheld      []string                // variables that no server gets
	log           *slog.Logger            // the log for the layers that do not act in a dry run
	scrubAudit    *record.Scrubber        // removes known secrets and values that look like one; nil without an audit
	scrubKnown    *record.Scrubber        // removes known secrets; nil without an audit
	scrubber      func() *record.Scrubber // removes known secrets and values that look like one

	rewrite   *rewrite.Shared   // nil without rules
	access    *access.Shared    // nil if every call is allowed
	arguments *arguments.Shared // nil for an empty list of rules
	briefing  *briefing.Shared  // nil without a policy source
	teams     *teams.Shared     // nil if it is off
}

// A process holds the state that survives a configuration reload. compile and Refresh set and read the fields
// without a lock. They run first in the goroutine of Compile, and after that only in the goroutine of the
// reloader. Connections run at the same time. They use only the fields that do not change after the first
// settings, the fields of their Shared, who, the limiters, and the fields below mu.
type process struct {
	Options
	capture        *capture.Shared                                 // compiled from the first settings only: see compileCapture
	identifies     bool                                            // capture looks up the principal of a session
	who            atomic.Pointer[Authenticator]                   // the Authenticator of current, for callers that must not wait for mu
	audit          *audit.Shared                                   // nil if there is no audit
	heads          *auditheads.Writer                              // records where the audit file ends; nil without a database
	policies       *filesource.Source                              // the source of the current settings; nil if the policies are not in a directory
	turns          sessionstate.Turns                              // the sessions of this process that have had the briefing
	userTurns      func(tenant string) (sessionstate.Turns, error) // the sessions of all processes; opened at the first use
	limiters       access.Limiters                                 // how often tools were called
	dryRunLimiters access.Limiters                                 // how often tools would have been called
	keys           *keyDatabase                                    // nil if the keys are in a file
	teams          *teams.Shared                                   // nil if teams was never on

	// mu guards the fields below. A Conn.mu may be locked while it is held, not the other way round.
	// Only Reload changes current, in one goroutine at a time, so compile reads it without mu.
	mu      sync.Mutex
	current *Shared // for new connections; nil while the first settings are compiled
	conns   map[*Conn]struct{}
}

// Compile compiles settings, for [Shared.Connect]. An error is a mistake in the settings. Compile does not ask the
// database, so servers start even if the database does not answer.
func Compile(o Options, settings *config.Settings) (*Shared, error) {
	p := newProcess(o)
	if o.Database != nil {
		p.keys = openKeys(o.Database)
		p.limiters.Lender = &rateDatabase{Store: ratestore.New(o.Database.Open(ratestore.Schema())), log: p.Log}
	}
	return p.begin(settings)
}

// Single compiles settings for a process with one connection that makes no calls, such as attache explain. It
// reads API keys from the shared database, but counts no calls there: a question of a person must not use up
// the rates of sessions. Single opens the database itself, so Close closes it.
func Single(o Options, settings *config.Settings, conn ConnOptions) (*Conn, error) {
	db, err := OpenDatabase(o.Process, settings, 1, o.Log)
	if err != nil {
		return nil, err
	}
	p := newProcess(o)
	if db != nil {
		p.keys = openKeys(db)
		notices := p.keys.close
		p.keys.close = func() {
			notices()
			_ = db.Close()
		}
	}
	s, err := p.begin(settings)
	if err != nil {
		return nil, err
	}
	return s.Connect(conn), nil
}

// newProcess returns the state of a process before its first settings. The file or database with the turns is opened
// when a session first asks for a turn, because most sessions get no briefing and must not wait for it.
func newProcess(o Options) *process {
	p := &process{Options: o, turns: sessionstate.NewMemoryTurns(nil), conns: map[*Conn]struct{}{}}
	open := sync.OnceValues(func() (*turnstore.DB, error) { return openTurns(o.Process, o.Database) })
	p.userTurns = func(tenant string) (sessionstate.Turns, error) {
		turns, err := open()
		if err != nil {
			return nil, err
		}
		return turns.Of(tenant), nil
	}
	return p
}

// begin compiles the first settings of a process. After an error the process ends, so begin closes nothing that
// compile has opened.
func (p *process) begin(settings *config.Settings) (*Shared, error) {
	s, err := p.compile(settings, nil)
	if err != nil {
		return nil, err
	}
	p.setCurrent(s)
	return s, nil
}

// compile compiles settings. before is the Shared in use, nil at first.
func (p *process) compile(settings *config.Settings, before *Shared) (*Shared, error) {
	who, err := p.newAuthenticator(settings, before)
	if err != nil {
		return nil, err
	}
	s := &Shared{
		process:       p,
		settings:      settings,
		authenticator: who,
		lists:         principalLists(settings),
		withheld:      OwnVariables(settings),
		log:           p.Log,
	}
	// redactLog hides the operator's credential before the code below can log it.
	if who.Own.secret != "" {
		s.secrets = append(s.secrets, who.Own.secret)
	}
	// It is made when it is first used. By then compileBriefing has added its secret.
	s.scrubber = sync.OnceValue(func() *record.Scrubber {
		return record.NewScrubber(record.Secrets{Values: s.secrets, Later: p.Process.Tokens.All})
	})
	s.redactLog()
	if settings.DryRun {
		s.log = dryrun.Mark(p.Log)
	}
	// compileBriefing adds a secret, and compileAudit makes scrubbers for all secrets. At a reload,
	// policySource in compileBriefing is the last call that can fail. compile changes the process only after that call,
	// because Reload promises that an error changes nothing.
	for _, step := range []func(*Shared) error{
		(*Shared).compileCapture, (*Shared).compileRules, (*Shared).compileBriefing, (*Shared).compileTeams, (*Shared).compileAudit,
	} {
		if err := step(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newAuthenticator returns the Authenticator for settings. It reuses the keys of before, the Shared
// in use, if their settings are the same. A new Resolver would read the file again and, if that is
// invalid at the moment, refuse the keys that are still valid. New tokens would fetch the key set again.
func (p *process) newAuthenticator(settings *config.Settings, before *Shared) (*Authenticator, error) {
	who, err := newAuthenticator(p.Process, settings, p.keys, func(err error) {
		p.Log.Warn("the key file was changed and is not valid; the keys that were read before stay valid for ten times identity.cache at most", "err", err)
	}, func(err error) {
		p.Log.Warn("the key set for tokens cannot be read again; the keys that were read before stay valid for an hour at most, even if the issuer has withdrawn them", "err", err)
	})
	if err != nil || before == nil {
		return who, err
	}
	was := before.authenticator
	keys, wasFile := was.keys.(*identity.Resolver)
	_, isFile := who.keys.(*identity.Resolver) // with a policy endpoint it may be endpointKeys now
	if o, n := before.settings.Identity, settings.Identity; wasFile && isFile && o.KeysFile == n.KeysFile && o.Cache == n.Cache {
		who.keys = keys
	}
	if was.tokens != nil && config.SameValues(before.settings, settings, "identity.jwt") {
		who.tokens = was.tokens
	}
	return who, nil
}

// redactLog makes the log hide the secrets known so far. All configurations share one log, so the log hides the secrets
// of the configuration that was compiled last.
func (s *Shared) redactLog() { logging.Redact(s.Log, s.settings, s.secrets) }

// compileCapture compiles the capture layer, whose settings do not change until the process ends: a session keeps the
// key and the facts that the layer has learnt with these settings. Only the Authenticator changes, so Identify asks
// for the current Authenticator each time.
func (s *Shared) compileCapture() (err error) {
	p := s.process
	if p.capture != nil {
		return nil
	}
	o := capture.Options{
		WorkspaceKeys:    s.settings.Session.Meta.Workspace,
		ConversationKeys: s.settings.Session.Meta.Conversation,
		Roots:            s.settings.Session.Roots,
		GitRoot:          s.settings.Session.GitRoot,
		Patience:         s.settings.Identity.Patience,
	}
	s.authenticator.configure(&o, s.settings, p.Log)
	if p.identifies = s.authenticator.identifies(); p.identifies {
		o.Identify = func(ctx context.Context, inMeta capture.Credential) (*sessionstate.Principal, error) {
			return p.who.Load().Identify(ctx, inMeta)
		}
	}
	p.capture, err = capture.Compile(o)
	return err
}

// ArgumentRules returns the configured rules, or the built-in one. An empty list in the configuration turns the
// built-in rule off.
func ArgumentRules(s *config.Settings) []arguments.Rule {
	if s.Arguments == nil {
		return []arguments.Rule{arguments.Default()}
	}
	return s.Arguments
}

// compileRules compiles the rules about calls. A layer without rules is left out, so that messages do not pay for it. A
// dry run also compiles the rules; chain then keeps the layers from acting.
func (s *Shared) compileRules() (err error) {
	if len(s.settings.Rewrite) > 0 {
		s.rewrite, err = rewrite.Compile(rewrite.Options{
			Rules:  s.settings.Rewrite,
			Server: s.settings.Server.Name,
		})
		if err != nil {
			return err
		}
	}
	if rules := ArgumentRules(s.settings); len(rules) > 0 {
		s.arguments, err = arguments.Compile(arguments.Options{Rules: rules, Server: s.settings.Server.Name, Scrub: s.scrubMember})
		if err != nil {
			return err
		}
	}
	if a := s.settings.Access; a.Enforces() {
		s.access, err = access.Compile(access.Options{
			Rules:    a.Rules,
			Default:  access.Default(a.Default),
			Hide:     a.Hide,
			Rates:    a.Rates,
			Server:   s.settings.Server.Name,
			Down:     a.RatesDown,
			Limiters: s.rateLimiters(),
		})
	}
	return err
}

// IgnoresIdentity reports whether the settings can identify principals, but the process does not
// look them up, because it was started with settings that could not.
func (s *Shared) IgnoresIdentity() bool {
	return !s.process.identifies && s.authenticator.identifies()
}

// Current returns the Shared that new connections get: that of the last [Shared.Reload].
func (p *process) Current() *Shared {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// Settings returns the settings that s was compiled from.
func (s *Shared) Settings() *config.Settings { return s.settings }

// Secrets returns the values that must not reach a disk or a server.
func (s *Shared) Secrets() []string { return slices.Clone(s.secrets) }

// Close writes the remaining records and closes the state of the process. Close all connections first: they
// write records. Each wait is bounded, because the client that ends attache waits for it.
func (p *process) Close() {
	if p.teams != nil {
		p.teams.Close()
	}
	if p.keys != nil {
		p.keys.close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), ratesEnd)
	defer cancel()
	p.limiters.Close(ctx)
	if p.audit == nil {
		return
	}
	if err := p.audit.Close(auditEnd); err != nil {
		p.Log.Error(err.Error())
	}
	// After the audit, because its last records move the head.
	if p.heads != nil {
		p.heads.Close(headsEnd)
	}
}
