// Package recipes holds ready-made rules for servers that many people run, and puts
// them into a configuration file and takes them out again.
//
// A recipe is what the configuration has under servers.NAME: how the server is
// recognised, and the rules for it. Values that differ between users are parameters.
// Editing keeps every other byte of the file: comments, order and spacing.
package recipes

import (
	"cmp"
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
	// Name is what it is called on a command line, and the name of the server in
	// the configuration.
	Name string
	// Summary says in one sentence what the rules do.
	Summary string
	// Parameters are the values that the user gives, in the order of the file.
	Parameters []Parameter
	// Text is the recipe as it is shipped: comments, and YAML with parameters in it.
	Text string
}

// A Parameter is a value that a recipe needs. It stands in the text as {{name}}.
type Parameter struct {
	Name string
	// Help says what the value is, such as "the organisation in github.com/OWNER".
	Help string
}

// All returns the recipes, by name.
func All() []Recipe {
	entries, err := files.ReadDir("recipes")
	if err != nil {
		panic(err) // they are part of the program
	}
	var all []Recipe
	for _, e := range entries {
		text, err := files.ReadFile("recipes/" + e.Name())
		if err != nil {
			panic(err)
		}
		all = append(all, parse(strings.TrimSuffix(e.Name(), path.Ext(e.Name())), string(text)))
	}
	slices.SortFunc(all, func(a, b Recipe) int { return cmp.Compare(a.Name, b.Name) })
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

// Body returns the YAML of the recipe with the values of its parameters. An error
// names a parameter that values lacks, or one that the recipe does not have.
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
