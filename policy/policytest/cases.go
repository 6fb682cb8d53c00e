package policytest

import (
	"errors"
	"fmt"
	"maps"

	"github.com/attache-mcp/attache/policy"
)

// answer is a query with its expected result.
type answer struct {
	name   string
	scopes map[string]policy.Scope
	ask    string
	want   policy.Effective
}

// refusal is a query that must return an error.
type refusal struct {
	name   string
	scopes map[string]policy.Scope
	ask    string
	is     func(error) bool
}

// chain makes each scope the parent of the next.
func chain(scopes ...policy.Scope) map[string]policy.Scope {
	byName := make(map[string]policy.Scope)
	for i, s := range scopes {
		if i > 0 {
			s.Parent = scopes[i-1].Name
		}
		byName[s.Name] = s
	}
	return byName
}

func pre(name string) policy.Policy {
	return policy.Policy{Name: name, Position: policy.Prepend, Text: "text of " + name}
}

func app(name string) policy.Policy {
	return policy.Policy{Name: name, Position: policy.Append, Text: "text of " + name}
}

func inherited(p policy.Policy) policy.Policy {
	p.Inherited = true
	return p
}

// texts are strings that a source might parse as something else.
var texts = []string{
	"two\nlines", "trailing\n", "\n  leading", "tab\there", `"quoted" and 'quoted'`, `back\slash \n`, "key: value", "# no comment",
	"- no list", "[no, list]", "{no: mapping}", "yes", "null", "~", "1.10", "0x10", "2026-07-28", "*star", "&and", "!bang", "%percent",
	"@at", "`tick`", "|", ">", "---", "ünï — 日本語", "👩\u200d💻", "a\u2028b", "<&>", "trailing space ",
}

func answers() []answer {
	own := policy.Policy{Name: "r1", Position: policy.Append, Text: "our own"}
	mixed := mixedScopes()
	changed := chain(
		policy.Scope{Name: "root", Policies: []policy.Policy{pre("r1"), pre("r2"), pre("r3")}},
		policy.Scope{Name: "mid", Drop: []string{"r2", "r3", "unheard of"}},
		policy.Scope{Name: "leaf", Policies: []policy.Policy{own, pre("r3")}},
	)
	verbatim := verbatimScope()
	siblings := maps.Clone(mixed)
	siblings["sibling"] = policy.Scope{Name: "sibling", Parent: "root", Policies: []policy.Policy{pre("s1")}}
	return []answer{
		{name: "the documentation's example", scopes: example(), ask: "acme/platform", want: exampleEffective()},
		{name: "an empty scope", scopes: chain(policy.Scope{Name: "leaf"}), ask: "leaf"},
		{
			name: "three scopes in order", scopes: mixed, ask: "leaf",
			want: policy.Effective{
				Policies: []policy.Policy{
					inherited(pre("r1")), inherited(pre("r3")), inherited(pre("m2")), pre("l1"),
					app("l2"), inherited(app("m1")), inherited(app("r2")), inherited(app("r4")),
				},
				Objectives: []string{"a", "b", "c", "d"},
			},
		},
		{
			name: "the policies of a parent are not inherited", scopes: mixed, ask: "root",
			want: policy.Effective{
				Policies:   []policy.Policy{pre("r1"), pre("r3"), app("r2"), app("r4")},
				Objectives: []string{"a", "b"},
			},
		},
		{
			name: "siblings do not inherit from each other", scopes: siblings, ask: "sibling",
			want: policy.Effective{
				Policies:   []policy.Policy{inherited(pre("r1")), inherited(pre("r3")), pre("s1"), inherited(app("r2")), inherited(app("r4"))},
				Objectives: []string{"a", "b"},
			},
		},
		{
			name: "overridden, dropped, added again", scopes: changed, ask: "leaf",
			want: policy.Effective{Policies: []policy.Policy{pre("r3"), own}},
		},
		{
			name: "dropped and replaced in one scope", ask: "leaf",
			scopes: chain(
				policy.Scope{Name: "root", Policies: []policy.Policy{pre("r1")}},
				policy.Scope{Name: "leaf", Policies: []policy.Policy{own}, Drop: []string{"r1"}},
			),
			want: policy.Effective{Policies: []policy.Policy{own}},
		},
		{
			name: "text is unchanged", scopes: chain(verbatim), ask: "verbatim",
			want: policy.Effective{Policies: verbatim.Policies, Objectives: verbatim.Objectives},
		},
		{
			name: "scope names are any text", scopes: chain(policy.Scope{Name: "a&b=c d/é?#%", Objectives: []string{"o"}}), ask: "a&b=c d/é?#%",
			want: policy.Effective{Objectives: []string{"o"}},
		},
	}
}

// example returns the scopes of the example in the documentation.
func example() map[string]policy.Scope {
	return map[string]policy.Scope{
		"acme": {
			Name:       "acme",
			Policies:   []policy.Policy{{Name: "require-tests", Position: policy.Prepend, Text: "All code changes must include tests."}},
			Objectives: []string{"Improve platform reliability"},
		},
		"acme/platform": {
			Name: "acme/platform", Parent: "acme",
			Policies:   []policy.Policy{{Name: "security-review", Position: policy.Append, Text: "Flag any credential handling for review."}},
			Objectives: []string{"Reduce deployment time to under 5 minutes"},
		},
	}
}

// exampleEffective returns the effective policies of "acme/platform" in example.
func exampleEffective() policy.Effective {
	return policy.Effective{
		Policies: []policy.Policy{
			{Name: "require-tests", Position: policy.Prepend, Text: "All code changes must include tests.", Inherited: true},
			{Name: "security-review", Position: policy.Append, Text: "Flag any credential handling for review."},
		},
		Objectives: []string{"Improve platform reliability", "Reduce deployment time to under 5 minutes"},
	}
}

// mixedScopes returns three scopes with policies in both positions and objectives that repeat.
func mixedScopes() map[string]policy.Scope {
	return chain(
		policy.Scope{Name: "root", Policies: []policy.Policy{pre("r1"), app("r2"), pre("r3"), app("r4")}, Objectives: []string{"a", "b"}},
		policy.Scope{Name: "mid", Policies: []policy.Policy{app("m1"), pre("m2")}, Objectives: []string{"c", "a"}},
		policy.Scope{Name: "leaf", Policies: []policy.Policy{pre("l1"), app("l2")}, Objectives: []string{"d", "b"}},
	)
}

func verbatimScope() policy.Scope {
	s := policy.Scope{Name: "verbatim", Objectives: texts}
	for i, text := range texts {
		s.Policies = append(s.Policies, policy.Policy{Name: fmt.Sprintf("p%d", i), Position: policy.Append, Text: text})
	}
	return s
}

func refusals() []refusal {
	unknown := func(err error) bool { return errors.Is(err, policy.ErrUnknownScope) }
	// A source that returns the results of another process may not know the reason.
	unusable := func(err error) bool {
		return errors.Is(err, policy.ErrInvalid) || errors.Is(err, policy.ErrUnavailable)
	}
	return []refusal{
		{name: "a missing scope", scopes: example(), ask: "acme/nobody", is: unknown},
		{name: "names are case-sensitive", scopes: example(), ask: "ACME", is: unknown},
		{name: "an empty name", scopes: example(), ask: "", is: unknown},
		{name: "no scopes", ask: "acme", is: unknown},
		{name: "unknown parent", scopes: map[string]policy.Scope{"a": {Name: "a", Parent: "b"}}, ask: "a", is: unusable},
		{
			name: "a cycle of parents",
			scopes: map[string]policy.Scope{
				"a": {Name: "a", Parent: "b"}, "b": {Name: "b", Parent: "c"}, "c": {Name: "c", Parent: "b"},
			},
			ask: "a", is: unusable,
		},
	}
}
