package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware"
)

// A configuration that can refuse has the layer, in its place, and a relay that
// refuses what parsers read differently; any other has neither.
func TestAccessEnforces(t *testing.T) {

	for text, want := range map[string]string{
		"":                                     "trace capture arguments",
		"access: {default: allow, hide: true}": "trace capture arguments",
		"access: {rules: [], rates: []}":       "trace capture arguments",
		"access: {default: deny}":              "trace capture access-list arguments access",
		"access: {rules: [{tools: [x]}]}":      "trace capture arguments access",
		"access: {rates: [{tools: [x], per: user, limit: 1/s}]}":                          "trace capture arguments access",
		"access: {default: deny}\npolicy: {dir: /p}\nrewrite: [{tools: [x], hide: true}]": "trace capture rewrite access-list arguments access briefing",
	} {
		s, problems := read(text)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		log := slog.New(slog.DiscardHandler)
		l, err := buildLayers(process{}, s, log)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, layer := range l.list {
			names = append(names, layer.Name)
		}
		got := strings.Join(names, " ")
		enforces := middleware.Needs(l.relay(s, log).Layers...).Enforces
		if got != want || enforces != strings.Contains(want, "access") {
			t.Errorf("%q: layers %s, enforce %v; want %s", text, got, enforces, want)
		}
	}
}

// A configuration that is read again gives nobody a fresh bucket.
func TestReloadKeepsRates(t *testing.T) {
	const rates = "access:\n  rates: [{tools: ['*'], per: session, limit: 1/hour}]\n"
	r := newReloading(t, rates)
	r.begin()
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)
	r.change("config.yaml", rates+"  rules: [{tools: [other], deny: true}]\n", `keys=access.rules`)
	r.Client.Expect(toolsChanged)
	r.Client.Send(callDrop)
	r.Client.Expect(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Rate limit reached: try again in 3600 seconds"}],"isError":true}}`)
}
