package assembly

import (
	"log/slog"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/policy"
)

// TrustStore returns the store of the workspaces whose policies the user trusts. Without a state
// directory it is empty.
func TrustStore(p cli.Process) trust.Store {
	return trust.Store{Dir: p.StatePath("trusted")}
}

// trustedSource returns next with the policies of the workspaces that the user trusts, nil if there
// are none. It only reads a directory, which usually does not exist.
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

// useTrusted makes t the source of the briefing, unless it is nil. If no other source is configured,
// the briefing needs no principal, because the policies are in the user's workspace, and a workspace
// that is not trusted gets no briefing instead of an empty one.
func useTrusted(o *briefing.Options, t *trust.Source) {
	if t == nil {
		return
	}
	o.Source, o.ByWorkspace = t, true
	if t.Next == nil {
		o.Anonymous, o.OmitEmpty = true, true
	}
}
