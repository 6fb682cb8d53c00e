package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A RewriteRule changes how some tools are listed and called.
type RewriteRule struct {
	Name             string   // where it is in the configuration: "servers.git.rewrite[0]"
	Tools            []string // globs of the server's names
	When             *expression.Program
	Hide             bool
	Rename, Describe string
	Set              map[string]*expression.Program // by argument, or its path joined by dots
}

// rule returns the rule as the layer takes it, its settings in one order.
func (r *RewriteRule) rule() rewrite.Rule {
	out := rewrite.Rule{Name: r.Name, Tools: r.Tools, When: r.When, Hide: r.Hide, Rename: r.Rename, Describe: r.Describe}
	for _, name := range slices.Sorted(maps.Keys(r.Set)) {
		out.Set = append(out.Set, rewrite.Setting{Path: strings.Split(name, "."), Value: r.Set[name]})
	}
	return out
}

// RewriteRules returns the rules in the form that the layer takes.
func RewriteRules(all []RewriteRule) []rewrite.Rule {
	var rules []rewrite.Rule
	for i := range all {
		rules = append(rules, all[i].rule())
	}
	return rules
}

// rewriteRuleList is the list of the rules for rewriting.
func rewriteRuleList(to *[]RewriteRule) setting.Value {
	return setting.Entries[RewriteRule]{
		To:       to,
		Name:     func(r *RewriteRule) *string { return &r.Name },
		Options:  rewriteOptions,
		Required: []string{"tools"},
		Example:  `{tools: ["delete_*"], hide: true}`,
		Check:    func(r *RewriteRule) error { return checkRewrite(*to, r) },
	}
}

// rewriteOptions returns what can be set in one rule for rewriting.
func rewriteOptions(r *RewriteRule) []setting.Option {
	return []setting.Option{
		{Key: "tools", Help: "globs of the server's names of tools", Value: globs(&r.Tools)},
		{Key: "when", Help: "the condition under which the rule applies", Value: setting.Expression(&r.When, expression.Bool)},
		{Key: "hide", Help: "not listed, and unknown when called; prompts and resources too", Value: setting.Bool(&r.Hide)},
		{Key: "rename", Help: "the name the client knows the one tool by", Value: setting.Text(&r.Rename, setting.NotEmpty)},
		{Key: "describe", Help: "the description the client is shown", Value: setting.Text(&r.Describe, describesSomething)},
		{Key: "set", Help: "arguments, or paths such as options.labels, and expressions for their values", Value: expressions(&r.Set)},
	}
}

// checkRewrite says what is wrong with r, by itself or beside those before it.
func checkRewrite(all []RewriteRule, r *RewriteRule) error {
	rule := r.rule()
	if err := rule.Check(); err != nil {
		return err
	}
	for argument, value := range r.Set {
		if letsCallSay(r.When, value, argument) {
			return errCallSays
		}
	}
	rules := RewriteRules(all)
	for i := range all {
		if &all[i] == r {
			return rewrite.Collision(rules, i)
		}
	}
	return nil
}

func describesSomething(s string) error {
	if s == "" {
		return errors.New("is empty: write a text for the model, or leave the key out to keep the server's")
	}
	return nil
}
