package assembly

import (
	"log/slog"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/rewrite"
)

// addRewrite adds the layer that rewrites what the client sees and calls, if
// there are rules for it.
func (l *Layers) addRewrite(s *config.Settings, log *slog.Logger) error {
	if len(s.Rewrite) == 0 {
		return nil
	}
	shared, err := rewrite.Compile(rewrite.Options{Rules: config.RewriteRules(s.Rewrite), Server: s.Server.Name})
	if err != nil {
		return err
	}
	l.List = append(l.List, shared.Connect(rewrite.ConnOptions{Catalog: &l.State.catalog, Log: log}).Layer())
	return nil
}
