package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/sessionstate"
)

var updateGuide = flag.Bool("update-clients", false, "write the table of docs/clients.md")

// The guide has a section for each client, with a difference that is the one that
// wrap makes, and the table of files is that of the code.
func TestClientsGuide(t *testing.T) {
	const file = "../../docs/clients.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	guide := string(data)
	table := regexp.MustCompile(`(?s)(<!-- TestClientsGuide[^\n]*\n)(.*?)(\nIn place of these)`)
	want := table.ReplaceAllStringFunc(guide, func(s string) string {
		m := table.FindStringSubmatch(s)
		return m[1] + clientTable() + m[3]
	})
	if *updateGuide {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != guide {
		t.Errorf("the table of files: %s", cmp.Diff(want, guide))
	}
	for _, c := range clientconfig.Clients() {
		t.Run(c.Name, func(t *testing.T) {
			_, section, ok := strings.Cut(guide, "\n## "+c.Title+"\n")
			if !ok {
				t.Fatalf("no section %q", c.Title)
			}
			section, _, _ = strings.Cut(section, "\n## ")
			if !strings.Contains(section, "attache wrap --client "+c.Name+"\n") {
				t.Error("the command is not there")
			}
			before, after := sides(t, section)
			name := "x.json"
			if c.Name == "codex" {
				name = "x.toml"
			}
			d, err := clientconfig.Read(clientconfig.File{Client: &c, Path: name}, []byte(before))
			if err != nil {
				t.Fatal(err)
			}
			plan := d.Wrap(clientconfig.Launch{Command: "/usr/local/bin/attache"}, func(string) bool { return true })
			if diff := cmp.Diff(after, string(plan.Content)); diff != "" {
				t.Errorf("wrap makes another: %s", diff)
			}
		})
	}
}

// sides returns what the difference in a section says of before and after.
func sides(t *testing.T, section string) (before, after string) {
	t.Helper()
	m := regexp.MustCompile("(?s)```diff\n(.*?)```").FindStringSubmatch(section)
	if m == nil {
		t.Fatal("no difference is shown")
	}
	for line := range strings.Lines(m[1]) {
		if line[0] != '+' {
			before += line[1:]
		}
		if line[0] != '-' {
			after += line[1:]
		}
	}
	return before, after
}

// clientTable is where the clients keep their files, as a table.
func clientTable() string {
	var b strings.Builder
	b.WriteString("| client | `--client` | Linux | macOS | Windows | in a project |\n|---|---|---|---|---|---|\n")
	variable := func(names ...string) func(string) string {
		return func(name string) string {
			for _, n := range names {
				if n == name {
					return "%" + name + "%"
				}
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
	systems := []clientconfig.System{
		{OS: "linux", Home: "~", Getenv: variable(), ReadDir: list},
		{OS: "darwin", Home: "~", Getenv: variable(), ReadDir: list},
		{OS: "windows", Home: "%USERPROFILE%", Getenv: variable("APPDATA", "LOCALAPPDATA"), ReadDir: list},
	}
	for _, c := range clientconfig.Clients() {
		fmt.Fprintf(&b, "| %s | `%s` ", c.Title, c.Name)
		for _, s := range systems {
			b.WriteString("| " + cells(s.UserFiles(&c)))
		}
		project := systems[0].ProjectFiles(&c, "")
		b.WriteString("| " + strings.ReplaceAll(cells(project), "`/", "`") + "|\n")
	}
	return b.String()
}

// cells returns the paths of files for a table, of VS Code's the first alone: the
// others are the same for its other editions.
func cells(files []clientconfig.File) string {
	var all []string
	for _, f := range files {
		if f.Client.Name == "vscode" && len(all) == 1 {
			break
		}
		all = append(all, "`"+f.Path+"`")
	}
	return strings.Join(all, ", ") + " "
}

// What docs/inject.md shows goes in and comes out so.
func TestInjectGuide(t *testing.T) {
	data, err := os.ReadFile("../../docs/inject.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```([a-z ]+)\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		blocks[m[1]] = m[2]
	}
	p := attachetest.WriteConfig(t, blocks["yaml"])
	line := regexp.MustCompile(`attache inject (.*) \.mcp\.json`).FindStringSubmatch(string(data))
	p.Args = append([]string{"inject"}, strings.Fields(line[1])...)
	var out, stderr strings.Builder
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(blocks["json in"]), &out, &stderr
	if status := run(t.Context(), p); status != 0 {
		t.Fatalf("exit status %d: %s", status, &stderr)
	}
	if diff := cmp.Diff(blocks["json out"], out.String()); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(stderr.String(), "this one is "+sessionstate.Sandboxed) {
		t.Errorf("shell is not left out for its trust: %s", &stderr)
	}
}
