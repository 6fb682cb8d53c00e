package main

import (
	"log/slog"
	"slices"

	"github.com/attache-mcp/attache/middleware/rewrite"
)

// addRewrite adds the layer that rewrites what the client sees and calls, if
// there are rules for it.
func (l *layers) addRewrite(s *Settings, log *slog.Logger) error {
	if len(s.Rewrite) == 0 {
		return nil
	}
	r, err := rewrite.New(rewrite.Options{Rules: rewriteRules(s.Rewrite), Server: s.Server.Name, Log: log})
	if err != nil {
		return err
	}
	l.list = append(l.list, r.Layer())
	l.nameArguments(r.Names())
	l.enforce = l.enforce || r.Enforces()
	return nil
}

// nameArguments adds names of arguments, by depth, that a frame's scan must find
// unambiguous.
func (l *layers) nameArguments(names [][]string) {
	for depth, list := range names {
		if depth == len(l.argumentNames) {
			l.argumentNames = append(l.argumentNames, nil)
		}
		for _, name := range list {
			if !slices.Contains(l.argumentNames[depth], name) {
				l.argumentNames[depth] = append(l.argumentNames[depth], name)
			}
		}
	}
}
