package assembly

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/middleware"
)

// With rules that enforce something, the relay refuses frames whose set or filled arguments parsers
// read differently.
func TestRewriteEnforces(t *testing.T) {
	for _, test := range []struct {
		rule    string
		enforce bool
		names   []string
	}{
		{`{tools: [a], hide: true}`, true, []string{"path"}},
		{`{tools: [a], rename: b}`, true, []string{"path"}},
		{`{tools: [a], describe: b}`, false, []string{"path"}},
		{`{tools: [a], set: {labels: "1", path: "2", x.y: "3"}}`, true, []string{"labels", "path", "x"}},
	} {
		p := attachetest.WriteConfig(t, "arguments: [{tools: [a], argument: path, value: session.id}]\nrewrite: ["+test.rule+"]")
		s := attachetest.Load(t, p)
		conn, err := Single(Options{Process: p, Log: slog.New(slog.DiscardHandler)}, s, ConnOptions{})
		check(t, err)
		o := conn.Relay()
		needs := middleware.Needs(o.Layers...)
		slices.Sort(needs.ArgumentNames[0])
		if needs.Enforces != test.enforce || !slices.Equal(needs.ArgumentNames[0], test.names) {
			t.Errorf("%s: enforce %v, names %v", test.rule, needs.Enforces, needs.ArgumentNames)
		}
		var names []string
		for _, layer := range o.Layers {
			names = append(names, layer.Name)
		}
		if at := slices.Index(names, "rewrite"); at < 0 || at != slices.Index(names, "arguments")-1 {
			t.Errorf("%s: the layers are %v", test.rule, names)
		}
	}
}
