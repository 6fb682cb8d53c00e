package assembly

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/filecheck"
	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/policy/httpsource"
)

// ConfiguredSource returns the configured source, or an error if there is none. Commands about policies use it, so it
// first checks that the variable of policy.token_env is set, and reports a missing variable as a problem of the
// settings.
func ConfiguredSource(p cli.Process, s *config.Settings) (policy.Source, error) {
	if err := filecheck.PolicyToken(p, s); err != nil {
		return nil, err
	}
	source, _, err := policySource(p, s)
	if err == nil && source == nil {
		err = cli.Usagef("no policies are configured: give a directory or an address with --policy, or policy.dir or policy.url in the configuration")
	}
	return source, err
}

// SessionSource returns the source for a session: the configured source with the policies of
// trusted workspaces, or the trusted workspaces alone. It is for commands that show the policies of a session. It has
// no earlier source whose policies stay valid: see process.reusePolicies.
func SessionSource(p cli.Process, s *config.Settings, log *slog.Logger) (policy.Source, error) {
	var next policy.Source
	own := s.Policy.Dir == "" && s.Policy.URL == "" && TrustStore(p).Any()
	if !own {
		var err error
		if next, err = ConfiguredSource(p, s); err != nil {
			return nil, err
		}
	}
	if t := trustedSource(p, s, next, log); t != nil {
		return t, nil
	}
	return next, nil
}

// PolicyQuery returns the query of a session with the operator's credential, workspace and scope. An error names the
// place where the credential was set, because the person who reads it may have set it long ago.
func PolicyQuery(ctx context.Context, p cli.Process, s *config.Settings) (policy.Query, error) {
	base := BaseContext(p, s)
	q := policy.Query{Scope: s.Policy.Scope, Workspace: s.Session.WorkspaceID, WorkspacePath: base.Workspace.Value}
	who, err := NewAuthenticator(p, s)
	if err != nil {
		return q, err
	}
	if who.Own.Text != nil {
		own, _ := who.Own.Text() // Identify returns the error too
		q.Credential = policy.Credential(keyOrNone(own))
	}
	principal, err := who.Identify(ctx, capture.Credential{})
	switch {
	case err == nil && principal != nil:
		q.Scope = cmp.Or(principal.Scope, q.Scope)
	// The endpoint verifies the key, and attache need not know it. For a key that attache does not know, the scope is
	// that of the settings.
	case err == nil, s.Policy.URL != "":
	case who.Own.Text == nil:
		return q, cli.Usagef("%v", err)
	default:
		return q, cli.Usagef("%s: %v", who.Own.From, err)
	}
	return q, nil
}

// policySource returns the source of policies in the settings, or nil if there is none, and the token of
// policy.token_env, which all sessions use. It does not ask the source yet. A missing token is an error, because
// the endpoint would get the keys of the sessions in its place.
func policySource(p cli.Process, s *config.Settings) (from policy.Source, token string, err error) {
	switch {
	case s.Policy.Dir != "":
		return filesource.New(s.Policy.Dir), "", nil
	case s.Policy.URL == "":
		return nil, "", nil
	}
	if s.Policy.TokenEnv != "" {
		if token = p.Getenv(s.Policy.TokenEnv); token == "" {
			return nil, "", fmt.Errorf("policy.token_env names %s, which is not set: set it, or leave the key out to send the session's API key", s.Policy.TokenEnv)
		}
	}
	h, err := httpsource.New(httpsource.Options{URL: s.Policy.URL, Timeout: s.Policy.Timeout, Token: policy.Credential(token)})
	if err != nil {
		return nil, "", err
	}
	return h, token, nil
}

// PolicyCounts returns the numbers of policies and objectives as text.
func PolicyCounts(e policy.Effective) string {
	policies := strconv.Itoa(len(e.Policies)) + " policies"
	if len(e.Policies) == 1 {
		policies = "1 policy"
	}
	return policies + " and " + cli.Plural(len(e.Objectives), "objective")
}

// TrustStore returns the store of the workspaces whose policies the user trusts. Without a state
// directory it is empty.
func TrustStore(p cli.Process) trust.Store {
	return trust.Store{Dir: p.StatePath("trusted")}
}

// trustedSource returns next with the policies of the workspaces that the user trusts, nil if there
// are none. It only reads a directory, which usually does not exist: every start of attache pays for it. The
// files of the workspaces are read when a session asks for its policies.
func trustedSource(p cli.Process, s *config.Settings, next policy.Source, log *slog.Logger) *trust.Source {
	store := TrustStore(p)
	if !store.Any() {
		return nil
	}
	return &trust.Source{
		Next:     next,
		Store:    store,
		MaxBytes: s.Briefing.MaxBytes,
		Warn:     func(text, path string) { log.Warn(text, "workspace", path) },
	}
}
