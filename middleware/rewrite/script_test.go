package rewrite

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// TestScripts plays testdata/*.txt.
func TestScripts(t *testing.T) {
	proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{
		"who":     who,
		"notes":   notes,
		"rewrite": func(s *proxytest.Session, arg string) middleware.Layer { return layer(t, s, arg) },
	}}.Play(t, "testdata/*.txt")
}

// who attaches a fixed context, like capture: "who=TENANT" or "who=nobody", followed by "+modern"
// for the era, "+sandboxed" for the trust, and "+lost" for an identity that could not be looked
// up. A "trust" in the _meta of a client's frame sets its trust.
func who(_ *proxytest.Session, arg string) middleware.Layer {
	name, flags, _ := strings.Cut(arg, "+")
	view := &sessionstate.Context{
		Session: sessionstate.Fact{Value: "s", Source: sessionstate.Operator, From: "--session"},
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
		view.Principal = &sessionstate.Principal{User: "ada", Tenant: name, KeyID: "k1"}
	}
	return middleware.Layer{Name: "who", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			v := view
			if trust := m.Meta().Get("trust"); trust.IsString() {
				v = view.With(func(c *sessionstate.Context) { c.Trust.Value = trust.Text() })
			}
			middleware.CallFrom(ctx).SetValue(sessionstate.ContextKey{}, v)
			return next(ctx, m)
		}
	}}
}

// notes adds every note about a call to the script; "notes=all" includes those about rules that
// did not apply.
func notes(s *proxytest.Session, arg string) middleware.Layer {
	return middleware.Layer{Name: "notes", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			middleware.CallFrom(ctx).Listen(arg == "all", func(_ *middleware.Call, n middleware.Note) {
				text := n.Rule + " " + string(n.Act)
				if n.Why != "" {
					text += ": " + n.Why
				}
				if n.Path != nil {
					text += " " + strings.Join(n.Path, ".") + " " + string(n.Before) + " -> " + string(n.After) + " by " + n.Source
				}
				s.Note("%s", strings.TrimSpace(text))
			})
			return next(ctx, m)
		}
	}}
}

// layer makes the layer under test with the rules of that name.
func layer(t testing.TB, s *proxytest.Session, name string) middleware.Layer {
	rules, ok := ruleSets(t)[name]
	if !ok {
		t.Fatalf("there are no rules called %q", name)
	}
	shared, err := Compile(Options{Rules: rules, Server: "git"})
	check(t, err)
	catalog := new(middleware.Catalog)
	c := shared.Connect(ConnOptions{Catalog: catalog, Log: logNotes(s)})
	layer := c.Layer()
	layer.Wrap = func(next middleware.Handler) middleware.Handler {
		return middleware.Chain(next, c.Layer(), catalog.Layer())
	}
	return layer
}

// logNotes returns a logger that writes each warning and error as a note of the script, such as "warn: text".
func logNotes(s *proxytest.Session) *slog.Logger {
	return slog.New(testkit.LogHandler(func(_ context.Context, r slog.Record) {
		if r.Level >= slog.LevelWarn {
			s.Note("%s: %s", strings.ToLower(r.Level.String()), r.Message)
		}
	}))
}

func when(t testing.TB, src string) *expression.Program { return program(t, src, expression.Bool) }

// set returns settings in the order of their names.
func set(t testing.TB, values map[string]string) []Setting {
	var out []Setting
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, Setting{Path: strings.Split(name, "."), Value: program(t, values[name], expression.Any)})
	}
	return out
}

func ruleSets(t testing.TB) map[string][]Rule {
	one := func(names ...string) []string { return names }
	sandboxed := when(t, `session.trust == "sandboxed"`)
	return map[string][]Rule{
		"hide": {
			{Tools: one("delete_*", "file:///secret/*", "db://{table}"), Hide: true},
			{Tools: one("*_x"), Hide: true, When: sandboxed},
		},
		"rename": {
			{Tools: one("search"), Rename: "search_code", Describe: "Search the code."},
			{Tools: one("a"), Rename: "b"},
			{Tools: one("b"), Rename: "a"},
		},
		"mixed": {
			{Tools: one("get"), Rename: "fetch", Describe: "First.", When: sandboxed},
			{Tools: one("get"), Rename: "take"},
			{Tools: one("g*"), Describe: "Second."},
			{Tools: one("gone"), Hide: true},
			{Tools: one("old"), Rename: "gone"},
		},
		"hide-rename": {
			{Tools: one("first"), Hide: true},
			{Tools: one("first"), Rename: "shown"},
			{Tools: one("last"), Rename: "seen"},
			{Tools: one("last"), Hide: true},
			{Tools: one("kept"), Rename: "public"},
			{Tools: one("public"), Hide: true},
		},
		"twice": {
			{Tools: one("one"), Rename: "same", When: when(t, `tool.annotations.readOnlyHint`)},
			{Tools: one("two"), Rename: "same", When: when(t, `tool.annotations.title != ""`)},
			{Tools: one("other"), Rename: "taken"},
		},
		"fromannotations": {{Tools: one("look"), Set: set(t, map[string]string{"safe": "tool.annotations.readOnlyHint"})}},
		"conditional":     {{Tools: one("look"), When: when(t, `session.trust == "sandboxed"`), Set: set(t, map[string]string{"safe": "tool.annotations.readOnlyHint"})}},
		"idempotent": {
			{Tools: one("set_*"), Hide: true, When: when(t, `tool.annotations.idempotentHint`)},
			{Tools: one("a"), Rename: "b", When: when(t, `tool.annotations.title != ""`)},
			{Tools: one("*"), Hide: true, When: when(t, `tool.annotations.destructiveHint && session.trust == "sandboxed"`)},
		},
		"annotated": {
			{Tools: one("*"), Hide: true, When: when(t, `tool.annotations.destructiveHint`)},
			{Tools: one("look"), Set: set(t, map[string]string{"safe": "tool.annotations.readOnlyHint"})},
		},
		"failing": {
			{Tools: one("h*"), Hide: true, When: when(t, `int(session.conversation) > 1`)},
			{Tools: one("n"), Rename: "new", When: when(t, `int(session.conversation) > 1`)},
			{Tools: one("n"), Describe: "New.", When: when(t, `int(session.conversation) > 1`)},
			{Tools: one("s"), Set: set(t, map[string]string{"x": "1"}), When: when(t, `int(session.conversation) > 1`)},
			{Tools: one("v"), Set: set(t, map[string]string{"x": "arguments.y + 1"})},
		},
		"principal": {
			{Tools: one("p"), Hide: true, When: when(t, `principal.tenant == "evil"`)},
			{Tools: one("q"), Set: set(t, map[string]string{"tenant": "principal.tenant"})},
			{Tools: one("r"), Set: set(t, map[string]string{"tenant": `has(principal.tenant) ? principal.tenant : "public"`})},
		},
		"set": {
			{Tools: one("issue"), Set: set(t, map[string]string{"labels": `["agent", session.trust]`, "meta.by": `"attache"`})},
			{Tools: one("issue"), When: when(t, `has(arguments.urgent)`), Set: set(t, map[string]string{"labels": `["urgent"]`, "meta": `{"of": arguments.urgent}`, "id": "session.id"})},
		},
		"describe": {{Tools: one("d"), Describe: `A "d".`}},
		"both": {
			{Tools: one("search"), Rename: "search_code"},
			{Tools: one("search"), Set: set(t, map[string]string{"scope": `"code"`})},
		},
	}
}
