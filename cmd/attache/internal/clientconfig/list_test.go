package clientconfig

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// opencode has the program and its arguments in one list, and calls the variables "environment".
func TestWrapCommandList(t *testing.T) {
	for from, want := range map[string]string{
		`{"type": "local", "command": ["node"], "environment": {"K": "SECRET"}}`://
		`{"type": "local", "command": ["attache", "--", "node"], "environment": {"K": "SECRET"}}`,
		`{"type": "local", "command": [/* a */ "node", "--key", "SECRET",]}`://
		`{"type": "local", "command": [/* a */ "attache", "--", "node", "--key", "SECRET",]}`,
		`{"type": "remote", "url": "https://x", "headers": {"Authorization": "SECRET"}, "enabled": true}`://
		`{"type": "local", "command": ["attache", "--", "https://x"], "environment": {"ATTACHE_HEADER_Authorization": "SECRET"}, "enabled": true}`,
		`{"type": "remote", "url": "https://x", "oauth": false}`://
		`{"type": "local", "command": ["attache", "--", "https://x"], "oauth": false}`,
		`{"url": "https://x", "type": "remote"}`://
		`{"command": ["attache", "--", "https://x"], "type": "local"}`,
	} {
		inMCP := func(entry string) string { return `{"mcp": {"off": {"enabled": false}, "s": ` + entry + `}}` }
		for _, section := range []func(string) string{inMCP, inJSON} {
			checkBothWays(t, section(from), section(want))
		}
	}
}

// checkBothWays checks that wrapping the only server of a file gives want, with a diff without secrets, and that unwrapping
// restores the file.
func checkBothWays(t *testing.T, from, want string) {
	t.Helper()
	plan := mustRead(t, mcpclient.File{Path: "x.json"}, []byte(from)).Wrap(Launch{Command: "attache"}, all)
	if diff := gocmp.Diff(want, string(plan.Content)); diff != "" || len(plan.Steps) != 1 || !plan.Steps[0].Done {
		t.Errorf("%s: %+v\n%s", from, plan.Steps, diff)
	}
	for _, line := range plan.Diff(nil) {
		if strings.Contains(line.Text, "SECRET") {
			t.Errorf("%s: the diff has a secret: %s", from, line.Text)
		}
	}
	back := mustRead(t, mcpclient.File{Path: "x.json"}, plan.Content).Unwrap(Launch{Command: "attache"}, all)
	if diff := gocmp.Diff(from, string(back.Content)); diff != "" {
		t.Errorf("%s: not restored\n%s", from, diff)
	}
}

// Other clients do not read such a list.
func TestWrapSkipsCommandListOfOtherClients(t *testing.T) {
	clients := mcpclient.All()
	d := mustRead(t, mcpclient.File{Client: &clients[0], Path: "x.json"}, []byte(inJSON(`{"command": ["npx", "-y", "x"]}`)))
	if step := d.Wrap(Launch{Command: "attache"}, all).Steps[0]; step.Done || !strings.HasPrefix(step.Text, "its command is a list, which the client does not read: ") {
		t.Errorf("%s: %+v", clients[0].Name, step)
	}
}

// The form is that of the client, whatever the type of the entry: Cursor connects to a url of any type, and
// opencode refuses the whole file if an entry has another form.
func TestCommandListOfKnownClients(t *testing.T) {
	for _, c := range []struct{ client, section, entry, want, teams string }{
		{"cursor", "mcpServers", `{"type": "remote", "url": "https://x"}`, `"command": "attache", "args": [`, `{"command": "attache", "args": ["teams"]}`},
		{"kilo", "mcp", `{"type": "http", "url": "https://x"}`, `"command": ["attache", "--", "https://x"]`, `{"type": "local", "command": ["attache", "teams"]}`},
		{"opencode", "mcp", `{"type": "local", "command": []}`, `"command": []`, `{"type": "local", "command": ["attache", "teams"]}`},
	} {
		file := mcpclient.File{Client: clientNamed(c.client), Path: "x.json"}
		content := `{"` + c.section + `": {"s": ` + c.entry + `}}`
		d := mustRead(t, file, []byte(content))
		plan := d.Wrap(Launch{Command: "attache"}, all)
		d.AddTeams(plan, file, Launch{Command: "attache"})
		if got := string(plan.Content); !strings.Contains(got, c.want) || !strings.Contains(got, `"attache-teams": `+c.teams) {
			t.Errorf("%s: %s", c.client, got)
		}
		if got := string(Bare(file, plan.Content, Launch{Command: "attache"})); got != content {
			t.Errorf("%s: not restored: %s", c.client, got)
		}
	}
}

func TestRepairCommandList(t *testing.T) {
	const content = `{"mcp": {"s": {"type": "local", "command": ["npx", "-y", "attache-mcp", "--trust", "direct", "--", "node"]}}}`
	plan := mustRead(t, mcpclient.File{Path: "x.json"}, []byte(content)).Repair(Launch{Command: "/bin/attache"}, all)
	if want := `["/bin/attache", "--trust", "direct", "--", "node"]`; !strings.Contains(string(plan.Content), want) {
		t.Errorf("%s", plan.Content)
	}
}

// Settings of other programs are not servers: VS Code has an object "servers" in "mcp".
func TestMCPSectionWithoutServers(t *testing.T) {
	d := mustRead(t, mcpclient.File{Path: "settings.json"}, []byte(`{"mcp": {"inputs": [], "timeout": 5, "servers": {"git": {"command": "uvx"}}}}`))
	if len(d.Entries) != 1 || d.Entries[0].Name != "git" {
		t.Errorf("%d entries: %+v", len(d.Entries), d.Entries[0])
	}
}

func TestAddTeamsToCommandLists(t *testing.T) {
	for content, want := range map[string]string{
		`{"mcp": {"s": {"type": "remote", "url": "https://x"}}}`: `"attache-teams": {"type": "local", "command": ["attache", "teams"]}, "s": `,
		`{"mcp": {"s": {"type": "stdio", "command": "x"}}}`:      `"attache-teams": {"type": "stdio", "command": "attache", "args": ["teams"]}, "s": `,
	} {
		file := mcpclient.File{Path: "x.json"}
		d := mustRead(t, file, []byte(content))
		plan := d.Wrap(Launch{Command: "attache"}, all)
		d.AddTeams(plan, file, Launch{Command: "attache"})
		if !strings.Contains(string(plan.Content), want) {
			t.Errorf("%s", plan.Content)
		}
	}
}
