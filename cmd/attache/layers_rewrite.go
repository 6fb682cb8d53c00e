package main

import (
	"log/slog"

	"github.com/attache-mcp/attache/middleware/rewrite"
)

// addRewrite adds the layer that rewrites what the client sees and calls, if
// there are rules for it.
func (l *layers) addRewrite(s *Settings, log *slog.Logger) error {
	if len(s.Rewrite) == 0 {
		return nil
	}
	shared, err := rewrite.Compile(rewrite.Options{Rules: rewriteRules(s.Rewrite), Server: s.Server.Name})
	if err != nil {
		return err
	}
	l.list = append(l.list, shared.Connect(rewrite.ConnOptions{Catalog: &l.lasting.catalog, Log: log}).Layer())
	return nil
}
