package clientconfig

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// Of a long line only the part around the change is shown. The server that changes may have no
// command in that line, and its name may be in an earlier line.
func TestDiffOfLongLine(t *testing.T) {
	long := strings.Repeat("x", 300)
	shown := strings.Repeat("x", 44) + `","mcpServers":{`
	for _, test := range []struct{ name, path, from, want string }{
		{"a remote server", "x.json", `{"a":"SECRET` + long + `","mcpServers":{"s":{"type":"http","url":"https://x/mcp"}}}`,
			"@line 1\n" +
				"-..." + shown + `"s":{"type":"http","url":"https://x/mcp"}}}` + "\n" +
				"+..." + shown + `"s":{"type":"stdio","command":"attache", "args": ["--", "https://x/mcp"]}}}` + "\n"},
		{"arguments", "x.json", "{\"mcpServers\": {\"s\": {\n\"command\": \"npx\",\n\"env\": {},\n\"args\": [\"-y\", \"" + long + "\"]}}}",
			"@line 2\n-\"command\": \"npx\",\n+\"command\": \"attache\",\n@line 4\n" +
				"-\"args\": [\"-y\", \"" + long + "\"]}}}\n" +
				"+\"args\": [\"--\", \"npx\", \"-y\", \"" + long + "\"]}}}\n"},
		{"an address of TOML", "x.toml", "[mcp_servers.s]\nurl = \"https://" + long + "\"",
			"@line 2\n" +
				"-url = \"https://" + long + "\"\n" +
				"+command = \"attache\"\n+args = [\"--\", \"https://" + long + "\"]\n"},
	} {
		if got := diffOf(t, test.path, test.from); got != test.want {
			t.Errorf("%s: %s", test.name, gocmp.Diff(test.want, got))
		}
	}
}

// Only attache's own server is shown if no other server changes.
func TestDiffOfTeamsInLongLine(t *testing.T) {
	const own = `"attache-teams": {"command": "attache", "args": ["teams"]}, `
	file, launch := mcpclient.File{Path: "x.json"}, Launch{Command: "attache"}
	text := `{"a":"SECRET` + strings.Repeat("x", 300) + `","mcpServers":{"s":{"url":"ws://x"}}}`
	d := mustRead(t, file, []byte(text))
	added := d.Wrap(launch, all)
	d.AddTeams(added, file, launch)
	d = mustRead(t, file, added.Content)
	removed := d.Unwrap(launch, all)
	d.RemoveTeams(removed, file)
	shown := "..." + strings.Repeat("x", 44) + `","mcpServers":{`
	without := DiffLine{Text: shown + `"s":{"url":"ws://x"}}}`}
	with := DiffLine{Text: shown + own + `"s":{"url":"ws://x"}}}`}
	for _, test := range []struct {
		plan     *Plan
		old, new DiffLine
	}{{added, without, with}, {removed, with, without}} {
		test.old.Op, test.new.Op = '-', '+'
		want := []DiffLine{{'@', "line 1"}, test.old, test.new}
		if diff := gocmp.Diff(want, test.plan.Diff(nil)); diff != "" {
			t.Error(diff)
		}
	}
}

// A last line without a line break, which may be a secret, is not shown with the table after it.
func TestDiffOfTeamsAfterLastLine(t *testing.T) {
	file, launch := mcpclient.File{Path: "x.toml"}, Launch{Command: "attache"}
	d := mustRead(t, file, []byte("mcp_servers.s.url = \"ws://x\"\nkey = \"SECRET\""))
	added := d.Wrap(launch, all)
	d.AddTeams(added, file, launch)
	d = mustRead(t, file, added.Content)
	removed := d.Unwrap(launch, all)
	d.RemoveTeams(removed, file)
	for op, plan := range map[byte]*Plan{'+': added, '-': removed} {
		want := []DiffLine{{'@', "line 3"}}
		for line := range strings.SplitSeq(strings.TrimPrefix(tomlTeams("attache", []string{"teams"}), "\n"), "\n") {
			want = append(want, DiffLine{op, line})
		}
		if diff := gocmp.Diff(want, plan.Diff(nil)); diff != "" {
			t.Error(diff)
		}
	}
}
