// Package recipes holds ready-made rules for popular servers, and adds them to a configuration
// file and removes them again.
//
// A recipe is an entry of the configuration under servers.NAME: how the server is
// recognised, and the rules for it. Values that differ between users are parameters.
// Editing changes no other byte of the file.
package recipes

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed recipes/*.yaml
var files embed.FS

// A Recipe is a set of rules for one server.
type Recipe struct {
	// Name is the name of the recipe on the command line, and of the server in the
	// configuration.
	Name string
	// Summary describes in one sentence what the rules do.
	Summary string
	// Parameters are the values that the user provides, in the order of the file.
	Parameters []Parameter
	// Text is the text of the recipe: comments, and YAML with placeholders for the
	// parameters.
	Text string
}

// A Parameter is a value that a recipe needs. Its placeholder in the text is {{name}}.
type Parameter struct {
	Name string
	// Help describes the value, such as "the organisation in github.com/OWNER".
	Help string
}

// All returns the recipes, sorted by the names of their files.
func All() []Recipe {
	entries, err := files.ReadDir("recipes")
	if err != nil {
		panic(err) // the files are part of the program
	}
	var all []Recipe
	for _, e := range entries {
		text, err := files.ReadFile("recipes/" + e.Name())
		if err != nil {
			panic(err)
		}
		all = append(all, parse(strings.TrimSuffix(e.Name(), path.Ext(e.Name())), string(text)))
	}
	return all
}

// parse reads the comments of a recipe: its first line is the summary, and a line
// "# parameter NAME: HELP" declares a parameter.
func parse(name, text string) Recipe {
	r := Recipe{Name: name, Text: text}
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "# ")
		if !ok {
			break
		}
		if parameter, ok := strings.CutPrefix(comment, "parameter "); ok {
			name, help, _ := strings.Cut(parameter, ": ")
			r.Parameters = append(r.Parameters, Parameter{name, help})
		} else if r.Summary == "" {
			r.Summary = comment
		}
	}
	return r
}

// Body returns the YAML of the recipe with these values of its parameters. It returns an error if a
// value is missing, or if the recipe has no such parameter.
func (r Recipe) Body(values map[string]string) (string, error) {
	body := r.Text
	for _, p := range r.Parameters {
		value, ok := values[p.Name]
		if !ok || value == "" {
			return "", fmt.Errorf("the recipe needs %s, %s: give it with --set %s=VALUE", p.Name, p.Help, p.Name)
		}
		// A value of a rule is an expression, so a text is quoted twice.
		quoted := "'" + strings.ReplaceAll(strconv.Quote(value), "'", "''") + "'"
		body = strings.ReplaceAll(body, "{{"+p.Name+"}}", quoted)
	}
	for name := range values {
		if !slices.ContainsFunc(r.Parameters, func(p Parameter) bool { return p.Name == name }) {
			return "", fmt.Errorf("the recipe %s has no parameter %q: see \"attache recipe show %s\"", r.Name, name, r.Name)
		}
	}
	var lines []string
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "# parameter ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, ""), nil
}
