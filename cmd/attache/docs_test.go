package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/policy/filesource"
)

// These tests compare what people read with the program: configurations, policy files, command lines, links,
// messages. Other tests play the sessions in guides (TestRulesGuide, TestClientsGuide, TestInjectGuide,
// TestAuditGuide).

// page returns the text of a page. name is its path in the repository.
func page(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", name))
	check(t, err)
	return string(data)
}

// pages returns the paths of all pages in the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "testdata/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", "..", pattern))
		check(t, err)
		for _, file := range found {
			all = append(all, strings.TrimPrefix(filepath.ToSlash(file), "../../"))
		}
	}
	return all
}

// Every yaml block is a valid configuration. Blocks that begin with a comment naming a file under policies/
// together form a directory of policy files.
func TestDocsConfigurations(t *testing.T) {
	for _, name := range pages(t) {
		policies, found := t.TempDir(), false
		for i, block := range append(blocks(page(t, name), "yaml"), indentedYAML(page(t, name))...) {
			if strings.HasPrefix(block, "# policies/") {
				found = true
				attachetest.WriteFile(t, filepath.Join(policies, fmt.Sprintf("%d.yaml", i)), block)
				continue
			}
			p := attachetest.WriteConfig(t, block)
			if _, err := config.Load(p, nil, nil); err != nil {
				t.Errorf("%s: %v in\n%s", name, err, block)
			}
		}
		if found {
			for _, problem := range filesource.Check(policies) {
				t.Errorf("%s: %v", name, problem)
			}
		}
	}
}

// indentedYAML returns the indented blocks whose first line is a section of the
// configuration.
func indentedYAML(text string) (all []string) {
	var keys []string
	for _, o := range config.Options(config.DefaultSettings("")) {
		key, _, _ := strings.Cut(o.Key, ".")
		keys = append(keys, key+":")
	}
	for _, block := range indented(text) {
		if first, _, _ := strings.Cut(block, "\n"); slices.Contains(keys, first) {
			all = append(all, block)
		}
	}
	return all
}

// indented returns the indented blocks of a page, without the indentation of their first line.
func indented(text string) (all []string) {
	text = regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
	for _, m := range regexp.MustCompile(`(?m)(?:\A|^\n)((?:^ {4,}\S.*\n(?:\n*))+)`).FindAllStringSubmatch(text, -1) {
		margin := m[1][:len(m[1])-len(strings.TrimLeft(m[1], " "))]
		all = append(all, strings.ReplaceAll("\n"+m[1], "\n"+margin, "\n")[1:])
	}
	return all
}

// Every command line of attache in a block or a help text has an existing command with flags and arguments
// that it accepts. None is run.
func TestDocsCommands(t *testing.T) {
	parsed := 0
	check := func(name, text string) {
		for line := range strings.Lines(text) {
			args, ok := commandLine(line)
			if !ok {
				continue
			}
			parsed++
			if err := parseCommand(args); err != nil {
				t.Errorf("%s: %v: %s", name, err, line)
			}
		}
	}
	for _, name := range pages(t) {
		text := page(t, name)
		all := indented(text)
		for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
			if slices.Contains([]string{"", "sh", "text", "console"}, m[1]) {
				all = append(all, m[2])
			}
		}
		check(name, strings.Join(all, "\n"))
	}
	eachCommand(new(program).rootCommand([]string{"help"}), func(cmd *cobra.Command) {
		check(cmd.CommandPath()+" --help", cmd.Example)
	})
	if parsed < 80 {
		t.Errorf("only %d command lines were found: are they looked for as they are written?", parsed)
	}
}

// eachCommand visits a command and its subcommands.
func eachCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, visit)
	}
}

// commandLine returns the arguments of attache in a line of a page, without shell syntax and without a comment
// in a second column.
func commandLine(line string) (args []string, ok bool) {
	line, _, _ = strings.Cut(strings.TrimSpace(line), "   ")
	line = regexp.MustCompile(`^(\$ )?([A-Z_]+=\S+ )*(go run \./cmd/)?`).ReplaceAllString(line, "")
	if !strings.HasPrefix(line, "attache ") {
		return nil, false
	}
	for _, m := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1)[1:] {
		if strings.HasPrefix(m, "#") || m == "|" || m == ">" || m == "<" || strings.HasPrefix(m, "2>") {
			break
		}
		args = append(args, strings.Trim(m, `'"`))
	}
	return args, true
}

// parseCommand parses a line with the command tree, and runs nothing.
func parseCommand(args []string) error {
	c := &program{Process: cli.Process{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}}
	args = c.split(args)
	root := c.rootCommand(append([]string{"help"}, args...)) // the whole tree, whatever the line is
	root.PersistentPreRunE = nil
	eachCommand(root, func(cmd *cobra.Command) {
		cmd.RunE = func(*cobra.Command, []string) error { return nil }
	})
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	return root.Execute()
}

// Every link within the repository leads to an existing file and heading.
func TestDocsLinks(t *testing.T) {
	for _, name := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(page(t, name), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.ToSlash(filepath.Join(filepath.Dir(name), file))
			if file == "" {
				target = name
			}
			if _, err := os.Stat(filepath.Join("..", "..", target)); err != nil {
				t.Errorf("%s: there is no %s", name, m[1])
			} else if anchor != "" && !slices.Contains(anchors(page(t, target)), anchor) {
				t.Errorf("%s: %s has no heading for %s", name, target, m[1])
			}
		}
	}
}

// anchors returns the link targets of the headings of a page.
func anchors(text string) (all []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}

// Every page under docs is in the index.
func TestDocsIndex(t *testing.T) {
	index := page(t, "docs/README.md")
	for _, name := range pages(t) {
		if file, ok := strings.CutPrefix(name, "docs/"); ok && file != "README.md" && !strings.Contains(index, "]("+file+")") {
			t.Errorf("docs/README.md does not name %s", file)
		}
	}
}

// The table in docs/design.md lists the layers in the order of the chain.
func TestDocsOrder(t *testing.T) {
	_, table, _ := strings.Cut(page(t, "docs/design.md"), "| layer | reason for its place |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var got, want []string
	for row := range strings.Lines(table) {
		got = append(got, strings.Split(strings.TrimSpace(strings.Split(row, "|")[1]), ", ")...)
	}
	for _, place := range assembly.Order() {
		want = append(want, place.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/design.md has %q, want %q", got, want)
	}
}

// The program has the messages that docs/troubleshooting.md quotes: the code at the beginning of table rows.
func TestDocsMessages(t *testing.T) {
	sources := programText(t)
	var found [][]string
	for _, row := range regexp.MustCompile("(?m)^\\| `[^`]*`(, `[^`]*`)*").FindAllString(page(t, "docs/troubleshooting.md"), -1) {
		found = append(found, regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(row, -1)...)
	}
	if len(found) < 20 {
		t.Errorf("only %d messages were found", len(found))
	}
	for _, m := range found {
		if !strings.Contains(sources, m[1]) {
			t.Errorf("docs/troubleshooting.md: attache never says %q", m[1])
		}
	}
}

// Every test and fixture that the pages name for a promise exists.
func TestDocsNameTests(t *testing.T) {
	tests := sources(t, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	for _, name := range []string{"docs/design.md", "docs/threat-model.md"} {
		text := page(t, name)
		named := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w*`).FindAllString(text, -1)
		if len(named) == 0 {
			t.Errorf("%s names no test", name)
		}
		for _, test := range named {
			if !strings.Contains(tests, "\nfunc "+test+"(") {
				t.Errorf("%s: there is no %s", name, test)
			}
		}
		for _, m := range regexp.MustCompile("`([\\w/-]+/testdata/[^`{}]+)`").FindAllStringSubmatch(text, -1) {
			if found, err := filepath.Glob(filepath.Join("..", "..", m[1])); err != nil || found == nil {
				t.Errorf("%s: there is no %s", name, m[1])
			}
		}
	}
}

// programText returns the program's sources without tests, with quotes unescaped.
func programText(t *testing.T) string {
	t.Helper()
	text := sources(t, func(file string) bool { return !strings.HasSuffix(file, "_test.go") })
	return strings.ReplaceAll(text, `\"`, `"`)
}

// sources returns the concatenated Go files that wanted accepts.
func sources(t *testing.T, wanted func(file string) bool) string {
	t.Helper()
	var all strings.Builder
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(file, ".go") || !wanted(file):
			return nil
		}
		data, err := os.ReadFile(file)
		all.Write(data)
		return err
	})
	check(t, err)
	return all.String()
}
