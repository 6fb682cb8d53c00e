package assembly

import (
	"log/slog"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/policy"
)

// TrustStore returns the store of the workspaces that the user trusts with policies of their
// own. Without a state directory it keeps nothing.
func TrustStore(p cli.Process) trust.Store {
	return trust.Store{Dir: p.StatePath("trusted")}
}

// trustedSource returns next with the policies of the workspaces that the user
// trusts, nil if there is none. It costs one look at a directory that is mostly not
// there.
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

// useTrusted has a briefing come from t, if it is not nil. Where nothing else is
// configured, nobody need be identified to read what is in his own workspace, and a
// workspace that is not trusted has no briefing rather than an empty one.
func useTrusted(o *briefing.Options, t *trust.Source) {
	if t == nil {
		return
	}
	o.Source, o.ByWorkspace = t, true
	if t.Next == nil {
		o.Anonymous, o.OmitEmpty = true, true
	}
}
