package config

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// SplitReloadable and Reloaded agree about which keys take effect in a running session.
func TestReloadedKeys(t *testing.T) {
	was, s := DefaultSettings("/was"), DefaultSettings("/is")
	was.origins, s.origins = map[string]setting.Origin{}, map[string]setting.Origin{}
	for _, o := range Options(s) {
		if v, ok := o.Value.(setting.Scalar); ok && o.Key != "" {
			for _, text := range []string{"true", "7", "7h", "7MiB", "sandboxed", "text-only", "forward", "error", "json", "full", "deny", "/seven", "https://seven.example"} {
				if v.Set(text, "") == nil {
					break
				}
			}
		}
	}
	now, later := SplitReloadable(ChangedKeys(was, s))
	out := was.Reloaded(s)
	if got := ChangedKeys(was, out); !slices.Equal(got, now) {
		t.Errorf("Reloaded changes %v, SplitReloadable returns %v", got, now)
	}
	if got := ChangedKeys(out, s); !slices.Equal(got, later) {
		t.Errorf("Reloaded does not change %v, SplitReloadable returns %v", got, later)
	}
	if len(now) < 10 || len(later) < 10 {
		t.Errorf("few keys were changed: %v and %v", now, later)
	}
}

// A change of a value that is not shown is a change, and so are the names of the servers that
// attache serves.
func TestChangedKeysNotShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	load := func(text string, read func(p cli.Process) (*Settings, error)) *Settings {
		t.Helper()
		check(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := read(cli.Process{Env: []string{"ATTACHE_CONFIG=" + path}})
		check(t, err)
		return s
	}
	served := func(p cli.Process) (*Settings, error) { return LoadServed(p, nil, "a") }
	wrapped := func(p cli.Process) (*Settings, error) { return Load(p, nil, []string{"a"}) }
	const before = `servers: {a: {server: {command: [a], env: {A: b}, headers: {X-A: b}}}}`
	for _, test := range []struct {
		before, after string // before is the constant if it is ""
		read          func(p cli.Process) (*Settings, error)
		want          string
	}{
		{"", before, served, ""},
		{"", `servers: {a: {server: {command: [a], env: {A: c}, headers: {X-A: b}}}}`, served, "server.env"},
		{"", `servers: {a: {server: {command: [a], env: {A: b}, headers: {X-A: c}}}}`, served, "server.headers"},
		{"", `servers: {b: {server: {command: [b]}}, a: {server: {command: [a], env: {A: b}, headers: {X-A: b}}}}`, served, "servers"},
		{"", `servers: {b: {server: {command: [b]}}, a: {server: {command: [a], env: {A: b}, headers: {X-A: b}}}}`, wrapped, ""},
		{"", `servers: {a: {server: {command: [a], env: {A: b}, headers: {X-A: b}}}, b: {access: {default: deny}}}`, served, ""},
		{`store: {url: "postgres://a:b@localhost/c"}`, `store: {url: "postgres://a:d@localhost/c"}`, wrapped, "store.url"},
		{`server: {oauth: {client_id: a, client_secret: b}}`, `server: {oauth: {client_id: a, client_secret: c}}`, wrapped, "server.oauth.client_secret"},
	} {
		before := cmp.Or(test.before, before)
		if got := strings.Join(ChangedKeys(load(before, test.read), load(test.after, test.read)), " "); got != test.want {
			t.Errorf("%s: changed %q, want %q", test.after, got, test.want)
		}
	}
}
