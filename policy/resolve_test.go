package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/policy"
)

// pre and app return policies for tables.
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

func TestResolve(t *testing.T) {
	own := policy.Policy{Name: "style", Position: policy.Append, Text: "our own"}
	tests := []struct {
		name   string
		scopes map[string]policy.Scope
		want   policy.Effective
	}{
		{
			name:   "an empty scope has nothing to say",
			scopes: map[string]policy.Scope{"leaf": {}},
		},
		{
			name: "prepends of the outermost come first, its appends last",
			scopes: map[string]policy.Scope{
				"root": {Policies: []policy.Policy{pre("r1"), app("r2"), pre("r3"), app("r4")}},
				"mid":  {Parent: "root", Policies: []policy.Policy{app("m1"), pre("m2")}},
				"leaf": {Parent: "mid", Policies: []policy.Policy{pre("l1"), app("l2")}},
			},
			want: policy.Effective{Policies: []policy.Policy{
				inherited(pre("r1")), inherited(pre("r3")), inherited(pre("m2")), pre("l1"),
				app("l2"), inherited(app("m1")), inherited(app("r2")), inherited(app("r4")),
			}},
		},
		{
			name: "a child's policy replaces a parent's and is local",
			scopes: map[string]policy.Scope{
				"root": {Policies: []policy.Policy{pre("style"), pre("tests")}},
				"leaf": {Parent: "root", Policies: []policy.Policy{own}},
			},
			want: policy.Effective{Policies: []policy.Policy{inherited(pre("tests")), own}},
		},
		{
			name: "a dropped policy stays dropped, and an inner scope can add it again",
			scopes: map[string]policy.Scope{
				"root": {Policies: []policy.Policy{pre("a"), pre("b")}},
				"mid":  {Parent: "root", Drop: []string{"a", "b", "nobody has it"}},
				"leaf": {Parent: "mid", Policies: []policy.Policy{pre("b")}},
			},
			want: policy.Effective{Policies: []policy.Policy{pre("b")}},
		},
		{
			name: "a scope can drop an inherited policy and have one of the same name",
			scopes: map[string]policy.Scope{
				"root": {Policies: []policy.Policy{pre("style")}},
				"leaf": {Parent: "root", Policies: []policy.Policy{own}, Drop: []string{"style"}},
			},
			want: policy.Effective{Policies: []policy.Policy{own}},
		},
		{
			name: "objectives are concatenated, outermost first, without duplicates",
			scopes: map[string]policy.Scope{
				"root": {Objectives: []string{"reliability", "cost"}},
				"leaf": {Parent: "root", Objectives: []string{"speed", " cost ", "speed", " "}},
			},
			want: policy.Effective{Objectives: []string{"reliability", "cost", "speed"}},
		},
		{
			name: "errors outside the chain are ignored",
			scopes: map[string]policy.Scope{
				"leaf":  {Objectives: []string{"a"}},
				"other": {Parent: "nowhere", Policies: []policy.Policy{{}}},
				"loop":  {Parent: "loop"},
			},
			want: policy.Effective{Objectives: []string{"a"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := policy.Resolve(test.scopes, "leaf")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	bad := func(p policy.Policy) map[string]policy.Scope {
		return map[string]policy.Scope{"leaf": {Parent: "root"}, "root": {Policies: []policy.Policy{pre("a"), p}}}
	}
	many := make(map[string]policy.Scope)
	for i := range 10 {
		many[fmt.Sprintf("s%d", i)] = policy.Scope{}
	}
	tests := []struct {
		name   string
		scopes map[string]policy.Scope
		ask    string
		is     error
		says   string
	}{
		{"no scopes", nil, "leaf", policy.ErrUnknownScope, "there are none: write one"},
		{"unknown", map[string]policy.Scope{"a": {}, "b": {}}, "leaf", policy.ErrUnknownScope, `"leaf"; known are a, b: choose one`},
		{"many known", many, "leaf", policy.ErrUnknownScope, "s7 and 2 more: choose one"},
		{"no name", map[string]policy.Scope{"a": {}}, "", policy.ErrUnknownScope, "no scope was named"},
		{"unknown parent", map[string]policy.Scope{"leaf": {Parent: "root"}}, "leaf", policy.ErrInvalid, `scope "leaf" has the parent "root"`},
		{"own parent", map[string]policy.Scope{"leaf": {Parent: "leaf"}}, "leaf", policy.ErrInvalid, "leaf < leaf"},
		{
			"cycle further out",
			map[string]policy.Scope{"leaf": {Parent: "a"}, "a": {Parent: "b"}, "b": {Parent: "a"}},
			"leaf", policy.ErrInvalid, "leaf < a < b < a",
		},
		{"duplicate name", bad(app("a")), "leaf", policy.ErrInvalid, `policy 2 ("a") of scope "root" appears twice`},
		{"position", bad(policy.Policy{Name: "b", Text: "b", Position: "before"}), "leaf", policy.ErrInvalid, `position "before"`},
		{"nameless", bad(policy.Policy{Text: "b", Position: policy.Append}), "leaf", policy.ErrInvalid, "has no name"},
		{"textless", bad(policy.Policy{Name: "b", Text: " \n", Position: policy.Append}), "leaf", policy.ErrInvalid, "has no text"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := policy.Resolve(test.scopes, test.ask)
			if !errors.Is(err, test.is) || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("got %v, want %v saying %s", err, test.is, test.says)
			}
		})
	}
}

func ExampleResolve() {
	scopes := map[string]policy.Scope{
		"acme": {
			Policies: []policy.Policy{
				{Name: "require-tests", Position: policy.Prepend, Text: "All code changes must include tests."},
			},
			Objectives: []string{"Improve platform reliability"},
		},
		"acme/platform": {
			Parent: "acme",
			Policies: []policy.Policy{
				{Name: "security-review", Position: policy.Append, Text: "Flag any credential handling for review."},
			},
			Objectives: []string{"Reduce deployment time to under 5 minutes"},
		},
	}
	effective, err := policy.Resolve(scopes, "acme/platform")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(policy.Render(effective, 0))
	// Output:
	// ═══ SESSION CONTEXT (auto-injected) ═══
	//
	// Policies:
	//   - [prepend] require-tests: All code changes must include tests. (inherited)
	//   - [append] security-review: Flag any credential handling for review. (local)
	//
	// Objectives:
	//   - Improve platform reliability
	//   - Reduce deployment time to under 5 minutes
	//
	// ═══════════════════════════════════════
}
