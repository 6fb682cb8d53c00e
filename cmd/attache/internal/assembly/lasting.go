package assembly

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// A State is what outlives a configuration that is read again: what is known of
// the sessions, and the files that were read well. The zero value is that of a
// first reading.
type State struct {
	// Announces says that the client may have to be told of changed lists.
	Announces bool
	// Shares says that the user's other attaches count: a briefing that one of them
	// gave in a session is given.
	Shares   bool
	Announce announce.Announce
	// Control is of the relay that tells the client; nil if none does.
	Control *proxy.Control
	hangs   atomic.Pointer[[]announce.List] // the lists that hang on the principal

	// Telemetry is where the layer trace records to, nil for nowhere.
	Telemetry *trace.Telemetry
	// IdPrefix begins the ids of attache's own requests where the session is recorded
	// or played; "" leaves it to the relay.
	IdPrefix string
	// replayed gives the spans of a session that is played again; see trace.Options.
	replayed func(id []byte) string

	Capture   *capture.Conn
	Nobody    bool                          // when capture was made there was nothing to identify anybody by
	caller    atomic.Pointer[Authenticator] // who says now whom the sessions act for
	briefings sessionstate.Turns
	opened    func() (sessionstate.Turns, error) // those of all the user's processes; see turns
	briefed   briefing.Memory
	briefing  atomic.Pointer[briefing.Conn] // in force; nil without one
	policies  *filesource.Source
	inForce   *config.Settings // what the above was made of; nil before the first reading

	limiters access.Limiters
	catalog  middleware.Catalog

	Auditing
}

// newCaller returns the caller for s, with the keys that are read already.
func (k *State) newCaller(p cli.Process, s *config.Settings, log *slog.Logger) (*Authenticator, error) {
	who, err := NewAuthenticator(p, s, KeyWarnings{
		keys: func(err error) {
			log.Warn("the key file was changed and is not valid; the keys read before hold for ten times identity.cache at most", "err", err)
		},
		tokens: func(err error) {
			log.Warn("the key set for tokens cannot be read again; the keys read before hold for an hour at most, withdrawn ones too", "err", err)
		},
	})
	before := k.caller.Load()
	if err != nil || before == nil {
		return who, err
	}
	if was := k.inForce.Identity; was.KeysFile == s.Identity.KeysFile && was.Cache == s.Identity.Cache {
		if keys, ok := before.keys.(*identity.Resolver); ok {
			who.keys = keys
		}
	}
	if before.tokens != nil && config.SameValues(k.inForce, s, "identity.jwt") {
		who.tokens = before.tokens
	}
	return who, nil
}

// captureFor returns the capture layer, made for who at the first reading.
func (k *State) captureFor(p cli.Process, s *config.Settings, who *Authenticator, log *slog.Logger) (*capture.Conn, error) {
	if k.Capture != nil {
		return k.Capture, nil
	}
	o := capture.Options{
		WorkspaceKeys:    paths(s.Session.Meta.Workspace),
		ConversationKeys: paths(s.Session.Meta.Conversation),
		Roots:            s.Session.Roots,
	}
	who.configure(&o, s, log)
	if k.Nobody = !who.Identifies(); !k.Nobody {
		o.Identify = func(ctx context.Context, came capture.Credential) (*sessionstate.Principal, error) {
			return k.caller.Load().Identify(ctx, came)
		}
	}
	shared, err := capture.Compile(o)
	if err != nil {
		return nil, err
	}
	conn := capture.ConnOptions{
		Base:     BaseContext(p, s),
		Sessions: sessionstate.NewSessions(sessionstate.SessionsOptions{TTL: s.Session.TTL}),
		Changed:  k.tellOfPrincipal,
		Log:      log,
	}
	if k.IdPrefix != "" { // a recording has it, so the key is the same when it is played
		conn.Name = "connection-" + strings.Trim(strings.TrimPrefix(k.IdPrefix, ownIDs), "-")
	}
	k.Adopt(who, s)
	k.Capture = shared.Connect(conn)
	return k.Capture, nil
}

// Adopt puts who in force, as s has it.
func (k *State) Adopt(who *Authenticator, s *config.Settings) {
	k.caller.Store(who)
	k.inForce = s
	lists := principalLists(s)
	k.hangs.Store(&lists)
}

// tellOfPrincipal tells the client of the lists that may be other ones because the
// principal is.
func (k *State) tellOfPrincipal() {
	if lists := k.hangs.Load(); k.Control != nil && lists != nil {
		for _, m := range k.Announce.Changed(*lists...) {
			k.Control.Notify(m)
		}
	}
}

// principalLists returns the lists that hang on who the session acts for.
func principalLists(s *config.Settings) (lists []announce.List) {
	if s.DryRun {
		return nil
	}
	uses := func(p *expression.Program) bool { return p != nil && p.UsesPrincipal() }
	for i := range s.Rewrite {
		if r := &s.Rewrite[i]; uses(r.When) && r.Hide {
			return []announce.List{announce.Tools, announce.Prompts, announce.Resources}
		}
	}
	if slices.ContainsFunc(s.Rewrite, func(r config.RewriteRule) bool { return uses(r.When) }) ||
		slices.ContainsFunc(s.Arguments, func(r config.ArgumentRule) bool { return uses(r.When) }) ||
		s.Access.Hide && slices.ContainsFunc(s.Access.Rules, func(r access.Rule) bool { return len(r.Require) > 0 || uses(r.When) }) {
		lists = append(lists, announce.Tools)
	}
	return lists
}

// policySource returns the source that answers for source: the one before, if it
// reads the same directory.
func (k *State) policySource(source policy.Source, s *config.Settings, log *slog.Logger) policy.Source {
	if s.Policy.Dir == "" {
		return source
	}
	if k.policies == nil || k.policies.Dir() != s.Policy.Dir {
		k.policies = filesource.Keeping(s.Policy.Dir, func(err error) {
			log.Warn("the policies were changed and are not valid; those read before hold", "err", err)
		})
	}
	return k.policies
}

// Refresh reads the files again that are read at times of their own.
func (k *State) Refresh() {
	if keys, ok := k.caller.Load().keys.(*identity.Resolver); ok {
		_ = keys.Refresh() // what is wrong is told when a key is looked up
	}
	if k.policies != nil {
		_ = k.policies.Refresh(context.Background()) // as above
	}
	k.Capture.Recheck()
}
