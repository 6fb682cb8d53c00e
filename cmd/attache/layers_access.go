package main

import (
	"log/slog"

	"github.com/attache-mcp/attache/middleware/access"
)

// addAccess adds the layer that refuses calls, if anything may be refused. From
// then on the relay refuses what parsers read differently.
func (l *layers) addAccess(s *Settings, log *slog.Logger) error {
	if !s.Access.enforces() {
		return nil
	}
	a, err := access.New(access.Options{
		Rules:        s.Access.Rules,
		Default:      access.Default(s.Access.Default),
		Hide:         s.Access.Hide,
		Rates:        s.Access.Rates,
		Server:       s.Server.Name,
		LookupFailed: l.capture.LookupFailed,
		Memory:       &l.lasting.access,
		Log:          log,
	})
	if err != nil {
		return err
	}
	l.list = append(l.list, a.Layer())
	l.enforce = true
	return nil
}
