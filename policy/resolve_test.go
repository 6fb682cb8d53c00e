package policy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/policytest"
)

// scopes is a source of scopes in memory.
type scopes map[string]policy.Scope

func (s scopes) Effective(ctx context.Context, q policy.Query) (policy.Effective, error) {
	if err := ctx.Err(); err != nil {
		return policy.Effective{}, err
	}
	return policy.Resolve(s, q.Scope)
}

// TestResolve asks Resolve what each source of policies is asked.
func TestResolve(t *testing.T) {
	policytest.Run(t, func(_ *testing.T, s map[string]policy.Scope) policy.Source { return scopes(s) })
}

// TestResolveUnchecked has scopes that a source of files refuses before it resolves them.
func TestResolveUnchecked(t *testing.T) {
	tests := []struct {
		name   string
		scopes map[string]policy.Scope
		want   policy.Effective
	}{
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
			testkit.Check(t, err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	good := policy.Policy{Name: "a", Text: "a", Position: policy.Prepend}
	bad := func(p policy.Policy) map[string]policy.Scope {
		return map[string]policy.Scope{"leaf": {Parent: "root"}, "root": {Policies: []policy.Policy{good, p}}}
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
		{"unknown", map[string]policy.Scope{"a": {}, "b": {}}, "leaf", policy.ErrUnknownScope, `"leaf"; the scopes are a, b: choose one`},
		{"many known", many, "leaf", policy.ErrUnknownScope, "s7 and 2 more: choose one"},
		{"no name", map[string]policy.Scope{"a": {}}, "", policy.ErrUnknownScope, "no scope was named"},
		{"unknown parent", map[string]policy.Scope{"leaf": {Parent: "root"}}, "leaf", policy.ErrInvalid, `scope "leaf" has the parent "root"`},
		{"own parent", map[string]policy.Scope{"leaf": {Parent: "leaf"}}, "leaf", policy.ErrInvalid, "leaf < leaf"},
		{
			"cycle further out",
			map[string]policy.Scope{"leaf": {Parent: "a"}, "a": {Parent: "b"}, "b": {Parent: "a"}},
			"leaf", policy.ErrInvalid, "leaf < a < b < a",
		},
		{"duplicate name", bad(policy.Policy{Name: "a", Text: "b", Position: policy.Append}), "leaf", policy.ErrInvalid, `policy 2 ("a") of scope "root" appears twice`},
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
