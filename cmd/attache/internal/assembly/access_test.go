package assembly

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/middleware"
)

// A configuration that can refuse calls has the access layers in their order, and its relay refuses
// frames that parsers read differently. Other configurations have neither.
func TestAccessEnforces(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "trace capture arguments catalog",
		"access: {default: allow, hide: true}": "trace capture arguments catalog",
		"access: {rules: [], rates: []}":       "trace capture arguments catalog",
		"access: {default: deny}":              "trace capture access-list arguments access catalog",
		"access: {rules: [{tools: [x]}]}":      "trace capture arguments access catalog",
		"access: {rates: [{tools: [x], per: user, limit: 1/s}]}":                          "trace capture arguments access catalog",
		"audit: {file: /a, required: true}":                                               "trace audit capture arguments catalog", // as in a session
		"audit: {file: /a}":                                                               "trace capture arguments catalog",
		"access: {default: deny}\npolicy: {dir: /p}\nrewrite: [{tools: [x], hide: true}]": "trace capture rewrite access-list arguments access briefing catalog",
	} {
		s := attachetest.Load(t, attachetest.WriteConfig(t, text))
		log := slog.New(slog.DiscardHandler)
		conn, err := Single(Options{Log: log}, s, ConnOptions{})
		check(t, err)
		got := strings.Join(conn.Names(), " ")
		enforces := middleware.Needs(conn.Relay().Layers...).Enforces
		if got != want || enforces != (strings.Contains(want, "access") || strings.Contains(want, "audit")) {
			t.Errorf("%q: layers %s, enforce %v; want %s", text, got, enforces, want)
		}
	}
}
