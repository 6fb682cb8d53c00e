package main

import (
	"io"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/recipes"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/proxytest"
)

// sampleParameters are values for all parameters of recipes.
var sampleParameters = map[string]string{
	"owner": "acme", "repo": "shop", "organization": "acme", "workspace": "1200000000000001",
	"team": "b6c1f7a2-0000-4000-8000-000000000001", "context": "staging",
}

// TestRecipes checks every recipe in a configuration to which "attache recipe add" added it: it applies to the
// package that testdata/recipes/NAME.txt names, its rules name tools and arguments that this package lists
// there, and it has the effect that NAME.diff shows.
func TestRecipes(t *testing.T) {
	for _, r := range recipes.All() {
		t.Run(r.Name, func(t *testing.T) {
			listed := page(t, "cmd/attache/testdata/recipes/"+r.Name+".txt")
			server := regexp.MustCompile(`^# (\S+) `).FindStringSubmatch(listed)
			if server == nil {
				t.Fatalf("testdata/recipes/%s.txt does not begin with the package", r.Name)
			}
			p, settings := loadRecipe(t, r, server[1])
			if len(settings.Arguments)+len(settings.Access.Rules) == 0 || settings.Server.Name != r.Name {
				t.Fatalf("the recipe does not apply to %s", server[1])
			}
			for _, rule := range settings.Arguments {
				checkListed(t, r.Name, listed, rule.Tools, strings.Join(rule.Argument, "."))
			}
			for _, rule := range settings.Access.Rules {
				checkListed(t, r.Name, listed, rule.Tools, "")
			}
			script := "layers chain=recipe\n"
			for diff := range strings.SplitSeq(page(t, "cmd/attache/testdata/recipes/"+r.Name+".diff"), "\n\n") {
				script += play(t, r.Name, strings.TrimSuffix(diff, "\n")+"\n")
			}
			file := filepath.Join(t.TempDir(), "script.txt")
			attachetest.WriteFile(t, file, script)
			chain := func(s *proxytest.Session, _ string) middleware.Layer { return chainWith(t, s, p, settings) }
			proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{"chain": chain}}.Play(t, file)
		})
	}
}

// loadRecipe returns the settings for a server of a user who added the recipe.
func loadRecipe(t *testing.T, r recipes.Recipe, server string) (cli.Process, *config.Settings) {
	t.Helper()
	values := maps.Clone(sampleParameters)
	maps.DeleteFunc(values, func(name, _ string) bool {
		return !slices.ContainsFunc(r.Parameters, func(p recipes.Parameter) bool { return p.Name == name })
	})
	body, err := r.Body(values)
	check(t, err)
	content, err := recipes.Add(nil, r.Name, body)
	check(t, err)
	file := filepath.Join(t.TempDir(), "config.yaml")
	attachetest.WriteFile(t, file, string(content))
	p := cli.Process{
		Env:   []string{"ATTACHE_CONFIG=" + file, "ATTACHE_WORKSPACE=/src/shop", "ATTACHE_TRUST=sandboxed"},
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
	}
	settings, err := config.Load(p, nil, []string{"npx", "-y", server})
	check(t, err)
	return p, settings
}

// checkListed checks that each pattern matches a tool that a server listed, and that this tool has the
// argument, if one is given.
func checkListed(t *testing.T, server, listed string, patterns []string, argument string) {
	t.Helper()
	for _, pattern := range patterns {
		found := false
		for line := range strings.Lines(listed) {
			words := strings.Fields(line)
			match, err := path.Match(pattern, words[0])
			check(t, err)
			if words[0] != "#" && match && (argument == "" || slices.Contains(words[1:], argument)) {
				found = true
			}
		}
		if !found {
			t.Errorf("%s listed no tool %s with the argument %q", server, pattern, argument)
		}
	}
}
