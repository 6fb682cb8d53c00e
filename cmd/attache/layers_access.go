package main

import (
	"log/slog"

	"github.com/attache-mcp/attache/middleware/access"
)

// newAccess returns what refuses calls, nil if nothing may be refused. With it the
// relay refuses what parsers read differently.
func (l *layers) newAccess(s *Settings, log *slog.Logger) (*access.Access, error) {
	if !s.Access.enforces() {
		return nil, nil
	}
	return access.New(access.Options{
		Rules:        s.Access.Rules,
		Default:      access.Default(s.Access.Default),
		Hide:         s.Access.Hide,
		Rates:        s.Access.Rates,
		Server:       s.Server.Name,
		LookupFailed: l.capture.LookupFailed,
		Memory:       &l.lasting.access,
		Log:          log,
	})
}
