package rules

import (
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// Rewrite returns a value that is a list of rules that rewrite tools.
func Rewrite(to *[]rewrite.Rule) setting.Value {
	return setting.Entries[rewrite.Rule]{
		To:       to,
		Name:     func(r *rewrite.Rule) *string { return &r.Name },
		Options:  rewriteOptions,
		Required: []string{"tools"},
		Example:  `{tools: ["delete_*"], hide: true}`,
		Check:    checkRewrite,
	}
}

func rewriteOptions(r *rewrite.Rule) []setting.Option {
	return []setting.Option{
		{Key: "tools", Help: "globs of the tools' names, as the server has them", Value: globs(&r.Tools)},
		{Key: "when", Help: "the condition under which the rule applies", Value: setting.Expression(&r.When, expression.Bool)},
		{Key: "hide", Help: "not listed, and unknown when called; prompts and resources too", Value: setting.Bool(&r.Hide)},
		{Key: "rename", Help: "the name of the tool for the client", Value: setting.Text(&r.Rename, setting.NotEmpty)},
		{Key: "describe", Help: "the description that the client sees", Value: setting.Text(&r.Describe, setting.NotBlank("is empty: write a text for the model, or leave the key out to keep the server's"))},
		{Key: "set", Help: "arguments, or paths such as options.labels, and expressions for their values", Value: assignments{&r.Set}},
	}
}

// checkRewrite returns an error if rule i is wrong by itself or conflicts with a rule before it.
func checkRewrite(all []rewrite.Rule, i int) error {
	r := &all[i]
	if err := r.Check(); err != nil {
		return err
	}
	for _, s := range r.Set {
		if callerChooses(r.When, s.Value, s.Path) {
			return errCallerChooses
		}
	}
	return rewrite.Collision(all, i)
}

// assignments reads paths of arguments and the expressions for their values.
type assignments struct{ to *[]rewrite.Setting }

func (v assignments) byName() setting.ByName[*expression.Program] {
	all := map[string]*expression.Program{}
	for _, s := range *v.to {
		all[strings.Join(s.Path, ".")] = s.Value
	}
	return setting.ByName[*expression.Program]{To: &all, Check: argumentPath,
		Value: func(p **expression.Program) setting.Value { return setting.Expression(p, expression.Any) }}
}

// Read reads the assignments in the order of their paths.
func (v assignments) Read(r *setting.Reader, key string, n ast.Node) {
	all := v.byName()
	all.Read(r, key, n)
	for _, name := range slices.Sorted(maps.Keys(*all.To)) {
		*v.to = append(*v.to, rewrite.Setting{Path: strings.Split(name, "."), Value: (*all.To)[name]})
	}
}

func (v assignments) String() string         { return v.byName().String() }
func (v assignments) Schema() map[string]any { return v.byName().Schema() }
