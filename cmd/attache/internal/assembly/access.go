package assembly

import (
	"log/slog"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/access"
)

// newAccess returns what refuses calls, nil if nothing may be refused. With it the
// relay refuses what parsers read differently.
func (l *Layers) newAccess(s *config.Settings, log *slog.Logger) (*access.Conn, error) {
	if !s.Access.Enforces() {
		return nil, nil
	}
	shared, err := access.Compile(access.Options{
		Rules:    s.Access.Rules,
		Default:  access.Default(s.Access.Default),
		Hide:     s.Access.Hide,
		Rates:    s.Access.Rates,
		Server:   s.Server.Name,
		Limiters: &l.State.limiters,
	})
	if err != nil {
		return nil, err
	}
	return shared.Connect(access.ConnOptions{
		LookupFailed: l.Capture.LookupFailed,
		Catalog:      &l.State.catalog,
		Log:          log,
	}), nil
}
