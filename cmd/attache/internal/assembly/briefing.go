package assembly

import (
	"context"
	"slices"
	"time"

	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/sessionstate"
)

// compileBriefing compiles the briefing from the policy source and from trusted workspaces, if
// there are any. The option Before is the briefing in use, so that sessions that have had the briefing do not ask
// the source again.
func (s *Shared) compileBriefing() error {
	configured, token, err := policySource(s.Process, s.settings)
	if err != nil {
		return err
	}
	// The log hides the token before a source can log an error with it.
	if token != "" {
		s.secrets = append(s.secrets, token)
		s.redactLog()
	}
	source := s.reusePolicies(configured)
	trusted := trustedSource(s.Process, s.settings, source, s.Log)
	if source == nil && trusted == nil {
		return nil
	}
	b := &s.settings.Briefing
	o := briefing.Options{
		Source:     source,
		Scope:      s.settings.Policy.Scope,
		Anonymous:  token != "", // the token of policy.token_env answers for everybody
		Structured: toolresult.Structured(b.Structured),
		Wait:       b.Wait,
		MaxBytes:   b.MaxBytes,
		TTL:        s.settings.Session.TTL,
		Log:        s.log,

		Response:     slices.Contains(b.Channels, "response"),
		Instructions: slices.Contains(b.Channels, "instructions"),
	}
	s.setTurns(&o)
	if trusted != nil {
		o.Source, o.ByWorkspace = trusted, true
	}
	// The policies of trusted workspaces alone need no principal, because they are in the user's workspace,
	// and a workspace that is not trusted gets no briefing instead of an empty one.
	if source == nil {
		o.Anonymous, o.OmitEmpty = true, true
	}
	// A session that was briefed in a dry run only has not seen the briefing.
	if before := s.current; before != nil && (s.settings.DryRun || !before.settings.DryRun) {
		o.Before = before.briefing
	}
	s.briefing = briefing.Compile(o)
	return nil
}

// setTurns sets where the briefing records which sessions have had it. A dry run or a replay neither reads nor
// writes the records of real sessions.
func (s *Shared) setTurns(o *briefing.Options) {
	if s.settings.DryRun {
		return
	}
	o.Turns = s.turns
	switch {
	case !s.UserTurns:
	// Once for all servers of a session: the processes of the other servers take the same turn.
	case s.settings.Briefing.OncePer != "server":
		o.UserTurns = s.userTurns
	// Once for each server. The memory of a process is enough, unless the session moves to another one.
	case s.Continues:
		server := s.settings.Server.Name
		o.UserTurns = func(tenant string) (sessionstate.Turns, error) {
			turns, err := s.userTurns(tenant)
			return turnsOfServer{turns, server}, err
		}
	}
}

// turnsOfServer holds the turns that the sessions of one server have in all processes, and keeps them apart
// from the turns of other servers. The turns of the session s are under the key "s\nserver git". Sweep has no
// key, so turnsOfServer leaves it to the embedded Turns.
type turnsOfServer struct {
	sessionstate.Turns
	server string
}

func (t turnsOfServer) key(session string) string { return session + "\nserver " + t.server }

func (t turnsOfServer) Take(ctx context.Context, key string, idle time.Duration) (mine bool, unseen int, err error) {
	return t.Turns.Take(ctx, t.key(key), idle)
}

func (t turnsOfServer) Settle(ctx context.Context, key string, o sessionstate.Outcome) error {
	return t.Turns.Settle(ctx, t.key(key), o)
}

// reusePolicies returns source or, if it reads the same directory as before, the earlier source,
// which has the last valid policies. A new source would have no policies while a file is being written.
func (p *process) reusePolicies(source policy.Source) policy.Source {
	files, ok := source.(*filesource.Source)
	if !ok {
		p.policies = nil // or Refresh would report problems of files that are not used
		return source
	}
	if p.policies == nil || p.policies.Dir() != files.Dir() {
		p.policies = filesource.Keeping(files.Dir(), func(err error) {
			if err == nil {
				p.Log.Info("the policies are valid again, and in force")
				return
			}
			p.Log.Warn("the policies cannot be used; those read before stay in force", "err", err)
		})
	}
	return p.policies
}
