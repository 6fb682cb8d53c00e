package sessionstate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/sessionstate"
)

// full returns a context with all facts.
func full() *sessionstate.Context {
	fact := func(value string, source sessionstate.Source) sessionstate.Fact {
		return sessionstate.Fact{Value: value, Source: source, From: "test"}
	}
	return &sessionstate.Context{
		Session:      fact("s1", sessionstate.HostEnvironment),
		Conversation: fact("c1", sessionstate.RequestMeta),
		Workspace:    fact("/work/a", sessionstate.RequestMeta),
		WorkspaceID:  fact("w1", sessionstate.Operator),
		Trust:        fact("direct", sessionstate.Operator),
		Principal: &sessionstate.Principal{
			KeyID: "k1", User: "ada", Tenant: "acme", Email: "ada@acme.example", Plan: "free", Scope: "acme/platform",
			Trust: "sandboxed",
		},
	}
}

func TestLookup(t *testing.T) {
	want := map[string]string{
		"session.id":             "s1 (host environment: test)",
		"session.conversation":   "c1 (request _meta: test)",
		"session.workspace.path": "/work/a (request _meta: test)",
		"session.workspace.id":   "w1 (operator: test)",
		"session.trust":          "direct (operator: test)",
		"principal.user":         "ada (credential: k1)",
		"principal.tenant":       "acme (credential: k1)",
		"principal.email":        "ada@acme.example (credential: k1)",
		"principal.plan":         "free (credential: k1)",
		"principal.scope":        "acme/platform (credential: k1)",
	}
	got := make(map[string]string)
	for _, path := range sessionstate.KnownPaths() {
		fact, ok := full().Lookup(path)
		if !ok || !sessionstate.KnownPath(path) {
			t.Errorf("%s is one of KnownPaths, but unknown", path)
		}
		got[path] = fmt.Sprintf("%s (%s: %s)", fact.Value, fact.Source, fact.From)

		if fact, ok := (*sessionstate.Context)(nil).Lookup(path); !ok || fact != (sessionstate.Fact{}) {
			t.Errorf("nil.Lookup(%s) = %v, %v; want an empty fact of a known path", path, fact, ok)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, path := range []string{"", "session", "session.workspace", "Session.id", "principal.roles", "principal.trust", "tool.name"} {
		if fact, ok := full().Lookup(path); ok || !fact.Empty() || sessionstate.KnownPath(path) {
			t.Errorf("Lookup(%q) = %v, %v; want an unknown path", path, fact, ok)
		}
	}
}

// Rules join paths to that of the workspace, which shells complete with a slash. Sessions on the same Windows
// drive have the same letter.
func TestWorkspacePath(t *testing.T) {
	for path, want := range map[string]string{
		"/src/shop/":    "/src/shop",
		"/src/shop//":   "/src/shop",
		"/src/shop":     "/src/shop",
		"/":             "/",
		"//":            "//",
		`C:\src\shop\`:  `C:\src\shop`,
		"C:/src/":       "C:/src",
		`C:\`:           `C:\`,
		`c:\src\shop`:   `C:\src\shop`,
		"c:/src/":       "C:/src",
		`c:\`:           `C:\`,
		"c:src":         "c:src",
		`/src/shop\`:    `/src/shop\`, // a name on Linux
		"ssh://host/":   "ssh://host/",
		"ssh://host/x/": "ssh://host/x/",
		"":              "",
	} {
		c := (&sessionstate.Context{}).WithWorkspace(sessionstate.Fact{Value: path, Source: sessionstate.Operator})
		if c.Workspace.Value != want {
			t.Errorf("%q: got %q, want %q", path, c.Workspace.Value, want)
		}
	}
}

// Access depends on the trust level, so an unknown word must not raise it.
func TestTrust(t *testing.T) {
	from := func(source sessionstate.Source, value string) sessionstate.Fact {
		return sessionstate.Fact{Value: value, Source: source}
	}
	tests := []struct {
		name      string
		trust     sessionstate.Fact
		principal string
		want      sessionstate.Fact
	}{
		{"unknown", sessionstate.Fact{}, "", sessionstate.Fact{}},
		{"the host's variables do not override the principal", from(sessionstate.HostEnvironment, "direct"), "sandboxed", from(sessionstate.Credential, "sandboxed")},
		{"the session's level", from(sessionstate.Credential, "direct"), "", from(sessionstate.Credential, "direct")},
		{"the principal's level", sessionstate.Fact{}, "direct", from(sessionstate.Credential, "direct")},
		{"the principal's word is normalised", sessionstate.Fact{}, "root", from(sessionstate.Credential, "sandboxed")},
		{"the operator overrides the principal", from(sessionstate.Operator, "sandboxed"), "direct", from(sessionstate.Operator, "sandboxed")},
		{"the operator's word is normalised", from(sessionstate.Operator, "trusted"), "", from(sessionstate.Operator, "sandboxed")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := &sessionstate.Context{Trust: test.trust, Principal: &sessionstate.Principal{Trust: test.principal}}
			if got, _ := c.Lookup("session.trust"); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestWithCopies(t *testing.T) {
	fact := sessionstate.Fact{Value: "new", Source: sessionstate.Operator, From: "--flag"}
	with := map[string]func(*sessionstate.Context) *sessionstate.Context{
		"session.id":             func(c *sessionstate.Context) *sessionstate.Context { return c.WithSession(fact) },
		"session.conversation":   func(c *sessionstate.Context) *sessionstate.Context { return c.WithConversation(fact) },
		"session.workspace.path": func(c *sessionstate.Context) *sessionstate.Context { return c.WithWorkspace(fact) },
		"session.workspace.id":   func(c *sessionstate.Context) *sessionstate.Context { return c.WithWorkspaceID(fact) },
	}
	for path, change := range with {
		before := full()
		after := change(before)
		if after == before {
			t.Fatalf("%s: the context itself was changed", path)
		}
		if diff := cmp.Diff(full(), before); diff != "" {
			t.Errorf("%s: the old snapshot changed\n%s", path, diff)
		}
		if got, _ := after.Lookup(path); got != fact {
			t.Errorf("%s: got %v, want %v", path, got, fact)
		}
		if again := change(after); again != after {
			t.Errorf("%s: setting the same fact again made a copy", path)
		}
		if got, _ := change(nil).Lookup(path); got != fact {
			t.Errorf("%s: on a nil context: got %v, want %v", path, got, fact)
		}
	}

	c := full().With(func(c *sessionstate.Context) { c.Protocol, c.Modern = "2026-07-28", true })
	if c.Protocol != "2026-07-28" || !c.Modern || c.Session.Value != "s1" {
		t.Errorf("With lost a fact: %+v", c)
	}
	if same := c.WithPrincipal(c.Principal); same != c {
		t.Error("setting the same principal made a copy")
	}
	if gone := c.WithPrincipal(nil); gone.Principal != nil || c.Principal == nil {
		t.Error("WithPrincipal(nil) did not remove the principal from only the copy")
	}
}

// These run for every message.
func TestNoAllocations(t *testing.T) {
	c := full()
	sessions := sessionstate.NewSessions(sessionstate.SessionsOptions{})
	sessions.Get("s1")
	weaker := sessionstate.Fact{Value: "/roots", Source: sessionstate.Roots}
	tests := map[string]func(){
		"Lookup":         func() { c.Lookup("principal.tenant") },
		"Lookup trust":   func() { c.Lookup("session.trust") },
		"Lookup on nil":  func() { (*sessionstate.Context)(nil).Lookup("session.id") },
		"WithWorkspace":  func() { c.WithWorkspace(weaker) },
		"WithPrincipal":  func() { c.WithPrincipal(c.Principal) },
		"Sessions.Get":   func() { sessions.Get("s1") },
		"NormalizeTrust": func() { sessionstate.NormalizeTrust("direct") },
	}
	for name, f := range tests {
		if got := testing.AllocsPerRun(100, f); got != 0 {
			t.Errorf("%s allocates %v times", name, got)
		}
	}
}

func TestEnvironment(t *testing.T) {
	long := strings.Repeat("x", 32_768)
	with := func(edit func(*sessionstate.Context)) *sessionstate.Context { return full().With(edit) }
	tests := []struct {
		name     string
		context  *sessionstate.Context
		prefixes []string
		existing []string
		want     []string
	}{
		{
			name: "all facts", context: full(), prefixes: []string{"ATTACHE"},
			want: []string{
				"ATTACHE_SESSION_ID=s1", "ATTACHE_WORKSPACE_ID=w1", "ATTACHE_WORKSPACE_PATH=/work/a",
				"ATTACHE_TRUST_LEVEL=direct", "ATTACHE_USER_ID=ada", "ATTACHE_TENANT_ID=acme",
			},
		},
		{
			name: "no facts", prefixes: []string{"ATTACHE"},
			want: []string{"ATTACHE_WORKSPACE_ID=", "ATTACHE_WORKSPACE_PATH="},
		},
		{
			name: "several prefixes, one twice", prefixes: []string{"A", "B_2", "A"},
			want: []string{"A_WORKSPACE_ID=", "A_WORKSPACE_PATH=", "B_2_WORKSPACE_ID=", "B_2_WORKSPACE_PATH="},
		},
		{
			name: "existing variables are kept", context: full(), prefixes: []string{"A", "B"},
			existing: []string{"A_SESSION_ID", "A_WORKSPACE_PATH", "A_USER_ID", "B_TRUST_LEVEL", "B_WORKSPACE_ID", "B_TENANT_ID"},
			want: []string{
				"A_WORKSPACE_ID=w1", "A_TRUST_LEVEL=direct", "A_TENANT_ID=acme",
				"B_SESSION_ID=s1", "B_WORKSPACE_PATH=/work/a", "B_USER_ID=ada",
			},
		},
		{
			name: "values that would prevent the start or look like two",
			context: with(func(c *sessionstate.Context) {
				c.Session.Value = "a\x00b"
				c.WorkspaceID.Value = "a\nPATH=/evil"
				c.Workspace.Value = long
				c.Principal = &sessionstate.Principal{User: "a\rb", Tenant: long[1:]}
			}),
			prefixes: []string{"A"},
			want:     []string{"A_TRUST_LEVEL=direct", "A_TENANT_ID=" + long[1:]},
		},
		{name: "no prefixes", context: full()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			exists := func(name string) bool { return slices.Contains(test.existing, name) }
			if test.existing == nil {
				exists = nil
			}
			got := sessionstate.Environment(test.context, test.prefixes, exists)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func ExampleContext_Lookup() {
	var c *sessionstate.Context // nothing is known
	c = c.WithWorkspace(sessionstate.Fact{Value: "/home/ada/old", Source: sessionstate.HostEnvironment, From: "CLAUDE_PROJECT_DIR"})
	c = c.WithWorkspace(sessionstate.Fact{Value: "/home/ada/app", Source: sessionstate.Operator, From: "--workspace"})
	c = c.WithWorkspace(sessionstate.Fact{Value: "/etc", Source: sessionstate.RequestMeta, From: `_meta["orbit.workspace"]`})

	workspace, _ := c.Lookup("session.workspace.path")
	fmt.Println(workspace.Value, "from", workspace.From)
	// Output:
	// /home/ada/app from --workspace
}
