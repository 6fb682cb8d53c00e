package access_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// TestScripts plays testdata/*.txt. A new script needs no Go code, unless it needs new rules.
func TestScripts(t *testing.T) {
	proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{
		"who":    who,
		"access": func(s *proxytest.Session, arg string) middleware.Layer { return layer(t, s, arg) },
	}}.Play(t, "testdata/*.txt")
}

// who returns a layer that sets the context as capture does: "who=USER@TENANT", followed by
// ":ROLE_OR_PERMISSION" any number of times, or "who=nobody". The suffix "+modern" sets the era,
// "+sandboxed" the trust, and "+lost" means that the identity could not be looked up.
func who(_ *proxytest.Session, arg string) middleware.Layer {
	name, flags, _ := strings.Cut(arg, "+")
	view := &sessionstate.Context{
		Session: sessionstate.Fact{Value: "s-" + name, Source: sessionstate.Operator},
		Trust:   sessionstate.Fact{Value: "direct", Source: sessionstate.Operator},
		Modern:  strings.Contains(flags, "modern"),
	}
	if strings.Contains(flags, "sandboxed") {
		view.Trust.Value = "sandboxed"
	}
	if strings.Contains(flags, "lost") {
		view.Unidentified = errors.New("the key file is gone")
	}
	if name != "nobody" {
		words := strings.Split(name, ":")
		user, tenant, _ := strings.Cut(words[0], "@")
		view.Principal = &sessionstate.Principal{User: user, Tenant: tenant}
		for _, w := range words[1:] {
			w = strings.ReplaceAll(w, ".", ":")
			view.Principal.Permissions = append(view.Principal.Permissions, w)
			view.Principal.Roles = append(view.Principal.Roles, w)
		}
	}
	return middleware.Layer{Name: "who", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			v := view
			if session := m.Meta().Get("session"); session.IsString() {
				v = view.With(func(c *sessionstate.Context) { c.Session.Value = session.Text() })
			}
			middleware.CallFrom(ctx).SetValue(sessionstate.ContextKey{}, v)
			return next(ctx, m)
		}
	}}
}

// layer returns the layer under test with the named options.
func layer(t *testing.T, s *proxytest.Session, name string) middleware.Layer {
	name, explain := strings.CutSuffix(name, "+explain")
	shared, err := access.Compile(namedOptions(t, name))
	testkit.Check(t, err)
	catalog := new(middleware.Catalog)
	a := shared.Connect(access.ConnOptions{Catalog: catalog})
	l := a.Layer()
	judge := l.Wrap
	l.Wrap = func(next middleware.Handler) middleware.Handler {
		inner := a.ListLayer().Wrap(judge(catalog.Layer().Wrap(next)))
		return func(ctx context.Context, m *wire.Message) error {
			tool := m.Name().Text()
			middleware.CallFrom(ctx).Listen(explain, func(_ *middleware.Call, n middleware.Note) { s.Note("%s", show(tool, n)) })
			return inner(ctx, m)
		}
	}
	return l
}

// show formats a note for scripts.
func show(tool string, n middleware.Note) string {
	words := []string{string(n.Act)}
	if tool != "" {
		words = append([]string{tool}, words...)
	}
	if len(n.Path) > 0 {
		words = append(words, strings.Join(n.Path, "."))
	}
	for _, raw := range [][]byte{n.Before, n.After} {
		if raw != nil {
			words = append(words, string(raw))
		}
	}
	text := strings.Join(words, " ") + ": "
	if n.Rule != "" {
		text += n.Rule + ": "
	}
	return text + n.Why
}

func when(t testing.TB, src string) *expression.Program {
	p, err := expression.Compile(src, expression.Bool)
	testkit.Check(t, err)
	return p
}

func namedOptions(t testing.TB, name string) access.Options {
	if o, ok := sharedOptions()[name]; ok {
		return o
	}
	return options(t)[name]
}

func options(t testing.TB) map[string]access.Options {
	records := []access.Rule{
		{Tools: []string{"get_*"}, Require: []string{"records:read"}},
		{Tools: []string{"write_*"}, Deny: true, When: when(t, `session.trust != "direct"`), Message: "Ask a person to write."},
		{Tools: []string{"write_*"}, Require: []string{"records:read", "records:write"}},
		{Tools: []string{"drop"}, Deny: true},
	}
	paths := []access.Rule{
		{Tools: []string{"read"}, Deny: true, When: when(t, `!arguments.path.startsWith("/work/")`)},
		{Tools: []string{"read", "ping"}},
	}
	destructive := []access.Rule{{Tools: []string{"*"}, Deny: true, When: when(t, `tool.annotations.destructiveHint && !("admin" in principal.roles)`)}}
	return map[string]access.Options{
		"records":   {Rules: records},
		"hidden":    {Rules: records, Hide: true},
		"allowlist": {Rules: paths, Default: access.Deny},
		"hidepaths": {Rules: paths, Default: access.Deny, Hide: true},
		"needspath": {Rules: []access.Rule{
			{Tools: []string{"write_*"}, Require: []string{"records:write"}, When: when(t, "has(arguments.path)")},
		}, Default: access.Deny, Hide: true},
		"destructive": {Rules: destructive, Hide: true},
		"idempotent": {
			Rules: []access.Rule{{Tools: []string{"set_*"}, Deny: true, When: when(t, `tool.annotations.idempotentHint || tool.annotations.title == "Set"`)}},
			Rates: []access.Rate{{Tools: []string{"*"}, Per: access.PerSession, Limit: 1, Window: time.Hour}},
		},
		"failing": {Rules: []access.Rule{
			{Tools: []string{"*"}, Deny: true, When: when(t, "tool.annotations.destructiveHint && arguments.size > 9")},
		}},
		"lookup": {Rules: records, Hide: true},
		"rates": {Rates: []access.Rate{
			{Tools: []string{"*"}, Per: access.PerSession, Limit: 60, Window: time.Minute, Burst: 2},
			{Tools: []string{"slow"}, Per: access.PerTool, Limit: 1, Window: time.Minute},
		}},
	}
}
