package clientconfig

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

var updateGuide = flag.Bool("update-clients", false, "write the table of docs/clients.md")

// TestClientsGuide checks that wrap makes the changes that docs/clients.md shows, and that the
// page's table of files matches the code.
func TestClientsGuide(t *testing.T) {
	const file = "../../../../docs/clients.md"
	data, err := os.ReadFile(file)
	check(t, err)
	guide := string(data)
	table := regexp.MustCompile(`(?s)(<!-- TestClientsGuide[^\n]*\n)(.*?)(\nIn place of these)`)
	want := table.ReplaceAllStringFunc(guide, func(s string) string {
		m := table.FindStringSubmatch(s)
		return m[1] + clientTable() + m[3]
	})
	if *updateGuide {
		check(t, os.WriteFile(file, []byte(want), 0o644))
	} else if want != guide {
		t.Errorf("the table of files: %s", cmp.Diff(want, guide))
	}
	shown := regexp.MustCompile("(?s)```diff\n(.*?)```").FindAllStringSubmatch(guide, -1)
	if len(shown) != 2 {
		t.Fatalf("%d differences are shown, not one in JSON and one in TOML", len(shown))
	}
	checkDifference(t, "claude-code", shown[0][1])
	checkDifference(t, "codex", shown[1][1])
}

// TestWrapDifferences checks the changes that wrap makes to a file of each client, against the diffs
// in testdata/wrapped.
func TestWrapDifferences(t *testing.T) {
	for _, c := range mcpclient.All() {
		t.Run(c.Name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", "wrapped", c.Name+".diff"))
			check(t, err)
			checkDifference(t, c.Name, string(data))
		})
	}
}

// checkDifference checks that wrap turns one side of a diff into the other.
func checkDifference(t *testing.T, client, difference string) {
	t.Helper()
	var before, after string
	for line := range strings.Lines(difference) {
		if line[0] != '+' {
			before += line[1:]
		}
		if line[0] != '-' {
			after += line[1:]
		}
	}
	name := "x.json"
	if client == "codex" {
		name = "x.toml"
	}
	d := mustRead(t, mcpclient.File{Client: clientNamed(client), Path: name}, []byte(before))
	plan := d.Wrap(Launch{Command: "/usr/local/bin/attache"}, all)
	if diff := cmp.Diff(after, string(plan.Content)); diff != "" {
		t.Errorf("wrap makes another: %s", diff)
	}
}

// clientTable returns a Markdown table of the clients' files.
func clientTable() string {
	var b strings.Builder
	b.WriteString("| client | `--client` | your file | in a project |\n|---|---|---|---|\n")
	variable := func(names ...string) func(string) string {
		return func(name string) string {
			if slices.Contains(names, name) {
				return "%" + name + "%"
			}
			return ""
		}
	}
	list := func(path string) []string {
		if strings.HasSuffix(path, "Packages") {
			return []string{"Claude_..."}
		}
		return nil
	}
	systems := []mcpclient.System{
		{OS: "linux", Home: "~", Getenv: variable(), ReadDir: list},
		{OS: "darwin", Home: "~", Getenv: variable(), ReadDir: list},
		{OS: "windows", Home: "~", Getenv: variable("APPDATA", "LOCALAPPDATA"), ReadDir: list},
	}
	for _, c := range mcpclient.All() {
		var files []string
		for _, s := range systems {
			text := cells(s.UserFiles(&c))
			if strings.Contains(text, `~\`) {
				text = strings.ReplaceAll(text, `\`, "/")
			}
			files = append(files, text)
		}
		project := systems[0].ProjectFiles(&c, "")
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", c.Title, c.Name, joinSystems(files), strings.ReplaceAll(cells(project), "`/", "`"))
	}
	return b.String()
}

// joinSystems joins the files of Linux, macOS and Windows, and names a system only if its files differ from
// those of Linux.
func joinSystems(files []string) string {
	text := files[0]
	for i, name := range []string{"macOS", "Windows"} {
		if other := files[i+1]; other != files[0] {
			text += "; " + name + ": " + other
		}
	}
	return text
}

// cells returns the paths of files for the table. For VS Code it returns only the first, because the
// others are the same for its other editions.
func cells(files []mcpclient.File) string {
	var all []string
	for _, f := range files {
		if f.Client.Name == "vscode" && len(all) == 1 {
			break
		}
		all = append(all, "`"+f.Path+"`")
	}
	return strings.Join(all, ", ")
}
