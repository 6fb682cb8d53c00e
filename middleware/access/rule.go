package access

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A Default decides a call that no rule decides.
type Default string

// The defaults.
const (
	Allow Default = "allow"
	Deny  Default = "deny"
)

// A Rule states what a call of some tools needs.
type Rule struct {
	// Name is the place of the rule in the configuration, for notes and errors; "" means
	// "access.rules[i]", with its index.
	Name string
	// Tools are patterns of tool names, with * and ?.
	Tools []string
	// Require lists permissions. The principal must have all of them.
	Require []string
	// Deny refuses the call.
	Deny bool
	// When, if not nil, is the condition under which the rule applies.
	When *expression.Program
	// Message replaces the default text of a refusal.
	Message string
}

// Check returns an error if the rule is invalid.
func (r *Rule) Check() error {
	switch {
	case r.When != nil && r.When.Type() != expression.Bool:
		return errors.New("when is not a condition: compile it as one")
	case r.Deny && len(r.Require) > 0:
		return errors.New("deny and require contradict each other: write two rules")
	case r.Message != "" && !r.Deny && len(r.Require) == 0:
		return errors.New("the rule has a message for refusals and allows: add deny or require, or remove the message")
	case !r.Deny && len(r.Require) == 0 && r.When.UsesAnnotations():
		return errors.New("would allow a call because of annotations, which the server chooses: name the tools that are allowed, or write the opposite condition with deny")
	case slices.Contains(r.Require, ""):
		return errors.New("an empty permission is required: name one")
	}
	return glob.Check(r.Tools)
}

// CheckOrder returns an error if rule i can never decide because a rule before it
// decides every call of its tools. Otherwise nobody would notice that such a deny rule
// refuses nothing.
func CheckOrder(rules []Rule, i int) error {
	by := slices.IndexFunc(rules[:i], func(r Rule) bool {
		return r.When == nil && !slices.ContainsFunc(rules[i].Tools, func(tool string) bool {
			return !slices.ContainsFunc(r.Tools, func(pattern string) bool { return glob.Covers(pattern, tool) })
		})
	})
	if by >= 0 {
		return fmt.Errorf("is never reached, as %s decides every call of its tools: put it before that one, or remove it", rules[by].Name)
	}
	return nil
}

// mayRefuse reports whether the rule can refuse. A rule that allows refuses if its
// condition cannot be evaluated.
func (r *Rule) mayRefuse() bool {
	return r.Deny || len(r.Require) > 0 || r.When.NeedsEngine()
}

func (r *Rule) usesPrincipal() bool {
	return len(r.Require) > 0 || r.When.UsesPrincipal()
}

func (r *Rule) usesSession() bool {
	return len(r.Require) > 0 || r.When.UsesSession()
}
