package rewrite

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

const layerName = "rewrite"

const none = -1 // the index if there is no rule

// A Rule changes how some tools are listed and called. A field that is not set changes nothing.
type Rule struct {
	// Name is the rule's place in the configuration, such as "rewrite[1]", for notes and
	// errors; "" stands for its index among the rules.
	Name string
	// Tools are patterns of the server's names, with * and ?. A rule that hides also
	// matches them with the names of prompts and the URIs of resources.
	Tools []string
	// When, if not nil, is the condition under which the rule applies.
	When *expression.Program
	// Hide hides the tool: it is not listed and cannot be called.
	Hide bool
	// Rename is the tool's name for the client. Tools must then be a single name without
	// * and ?.
	Rename string
	// Describe is the tool's description for the client.
	Describe string
	// Set sets arguments of calls, whatever value the client sent.
	Set []Setting

	// Set by Compile:
	quoted []byte   // the server's name of a renamed tool, as JSON
	uris   []string // the patterns that may match URIs, in canonical form
}

// A Setting is an argument and its value.
type Setting struct {
	// Path is the path of the argument: one name, or the names of nested objects and the
	// argument.
	Path []string
	// Value yields any JSON value.
	Value *expression.Program

	keys []string // the path from the frame's root; set by Compile
}

// maxName is the maximum length of a tool's name (specification, server/tools, "Tool
// Names").
const maxName = 128

// Check returns an error if the rule is invalid, regardless of other rules.
func (r *Rule) Check() error {
	return cmp.Or(glob.Check(r.Tools), r.checkActs(), r.checkWhen(), r.checkRename(), r.checkSet())
}

func (r *Rule) checkActs() error {
	changes := r.Rename != "" || r.Describe != "" || len(r.Set) > 0
	switch {
	case !r.Hide && !changes:
		return errors.New("does nothing: give it hide, rename, describe or set, or remove it")
	case r.Hide && changes:
		return errors.New("hide leaves nothing that could be changed: keep hide alone, or write two rules")
	}
	return nil
}

func (r *Rule) checkWhen() error {
	switch {
	case r.When == nil:
		return nil
	case r.When.Type() != expression.Bool:
		return errors.New("when is not a condition: compile it as one")
	case r.When.UsesArguments() && r.editsList():
		return errors.New("when reads arguments, which a list does not have, so it can only be used with set: write one rule for set with this condition, and another without it")
	}
	return nil
}

func (r *Rule) checkRename() error {
	switch {
	case r.Rename == "":
		return nil
	case len(r.Tools) != 1 || !glob.Literal(r.Tools[0]):
		return errors.New("rename gives one tool one name: write one tool without * and ?, and a rule for each")
	case r.Rename == r.Tools[0]:
		return errors.New("rename gives the tool the name it has: remove it")
	case len(r.Rename) > maxName || strings.Trim(r.Rename, letters+digits+"._-/") != "":
		return fmt.Errorf("%q is not the name of a tool: write at most %d letters, digits, dots, dashes, underscores and slashes", r.Rename, maxName)
	}
	return nil
}

func (r *Rule) checkSet() error {
	for i, s := range r.Set {
		if len(s.Path) == 0 || slices.Contains(s.Path, "") {
			return errors.New("set has an argument without a name: name it")
		}
		for _, t := range r.Set[:i] {
			if isInside(s.Path, t.Path) || isInside(t.Path, s.Path) {
				return fmt.Errorf("set has %s and %s, and one of them contains the other: keep one", strings.Join(t.Path, "."), strings.Join(s.Path, "."))
			}
		}
	}
	return nil
}

func isInside(path, outer []string) bool {
	return len(path) >= len(outer) && slices.Equal(path[:len(outer)], outer)
}

// editsList reports whether the rule can change a list of tools.
func (r *Rule) editsList() bool { return r.Hide || r.Rename != "" || r.Describe != "" }

// hidesItems reports whether the rule can hide prompts and resources. They have
// no annotations, so a condition that reads annotations only applies to tools.
func (r *Rule) hidesItems() bool {
	return r.Hide && !r.When.UsesAnnotations()
}

// needs returns layers with the names of the arguments that the rule sets, or reads in
// conditions and values.
func (r *Rule) needs() (needs []middleware.Layer) {
	needs = append(needs, middleware.Layer{ArgumentNames: r.When.ArgumentNames()})
	for _, s := range r.Set {
		var names [][]string
		for _, name := range s.Path {
			names = append(names, []string{name})
		}
		needs = append(needs, middleware.Layer{ArgumentNames: names}, middleware.Layer{ArgumentNames: s.Value.ArgumentNames()})
	}
	return needs
}

// Collision returns an error if rule i and a rule before it would show two tools under
// one name, or one tool under two names. It does not know whether the server has the
// tools; the layer checks that when they are listed. The rules must pass [Rule.Check].
func Collision(rules []Rule, i int) error {
	r := &rules[i]
	if r.Rename == "" {
		return nil
	}
	for j := range rules[:i] {
		switch s := &rules[j]; {
		case s.Rename == "" || !coincide(rules, j, i):
		case s.Tools[0] == r.Tools[0] && s.When == nil:
			return fmt.Errorf("%s is renamed by %s already, to %s: keep one", r.Tools[0], s.Name, s.Rename)
		case s.Tools[0] != r.Tools[0] && s.Rename == r.Rename:
			return fmt.Errorf("%s and, by %s, %s would both be shown as %s: choose another name", r.Tools[0], s.Name, s.Tools[0], r.Rename)
		}
	}
	return nil
}

// coincide reports whether the rules j and i, j < i, certainly apply at the same time in
// some situation. It does not compare conditions otherwise: two that differ may exclude each other, which is a way
// to show one of two tools under one name.
func coincide(rules []Rule, j, i int) bool {
	a, b := rules[j].When, rules[i].When
	return rules[j].always(rules[:j]) || rules[i].always(rules[:i]) || a != nil && b != nil && a.String() == b.String()
}

// always reports whether the rule renames its tool unconditionally, given the rules before
// it.
func (r *Rule) always(before []Rule) bool {
	return r.When == nil && !slices.ContainsFunc(before, func(s Rule) bool { return s.Rename != "" && s.Tools[0] == r.Tools[0] })
}

// usesAnnotations reports whether the rule reads annotations, in its condition or for a value.
func (r *Rule) usesAnnotations() bool {
	return r.When.UsesAnnotations() || slices.ContainsFunc(r.Set, func(s Setting) bool { return s.Value.UsesAnnotations() })
}

// A ruleSet holds the indexes of rules by what they do, in order.
type ruleSet struct{ hide, rename, describe, set []int }

func (s *ruleSet) add(i int, rule *Rule) {
	if rule.Hide {
		s.hide = append(s.hide, i)
	}
	if rule.Rename != "" {
		s.rename = append(s.rename, i)
	}
	if rule.Describe != "" {
		s.describe = append(s.describe, i)
	}
	if len(rule.Set) > 0 {
		s.set = append(s.set, i)
	}
}

// dependsOnAnnotations returns the first of the rules for calls that depends on annotations, which are not known,
// or none.
func (s *ruleSet) dependsOnAnnotations(rules []Rule, in *expression.Inputs) int {
	// Describe changes no call.
	for _, i := range slices.Concat(s.hide, s.rename, s.set) {
		r := &rules[i]
		if r.When.DependsOnAnnotations(in) {
			return i
		}
		depends := func(s Setting) bool { return s.Value.DependsOnAnnotations(in) }
		// s has the rules for the tool only, so the patterns need not be matched again.
		if result, _ := r.judgeNamed(in, true, nil); result != conditionFalse && slices.ContainsFunc(r.Set, depends) {
			return i
		}
	}
	return none
}

// rulesFor returns the rules that may apply to a tool: those whose patterns match, and
// those whose patterns take too long to match, so that judge returns the error.
func (s *Shared) rulesFor(tool string) *ruleSet {
	found := new(ruleSet)
	for i := range s.rules {
		rule := &s.rules[i]
		if named, err := glob.Match(rule.Tools, tool); named || err != nil {
			found.add(i, rule)
		}
	}
	return found
}

// An outcome is the result of a rule for one name.
type outcome string

// The outcomes.
const (
	otherNames     outcome = "it is for other tools" // the texts are those of explanations
	conditionFalse outcome = "its condition does not hold"
	applies        outcome = "it applies"
	undecided      outcome = "it could not be decided"
)

// judge returns the outcome of the rule for a tool or a prompt. If it is undecided, the
// error is the reason.
func (r *Rule) judge(in *expression.Inputs) (outcome, error) {
	named, err := glob.Match(r.Tools, in.Tool)
	return r.judgeNamed(in, named, err)
}

// judgeNamed is like judge, with the result of matching the rule's patterns.
func (r *Rule) judgeNamed(in *expression.Inputs, named bool, err error) (outcome, error) {
	switch {
	case err != nil:
		return undecided, err
	case !named:
		return otherNames, nil
	case r.When == nil:
		return applies, nil
	}
	// Before the condition: with nobody in place of the principal it might not hold, and hide nothing.
	if err := r.When.Identified(in.Context); err != nil {
		return undecided, err
	}
	holds, err := r.When.Holds(in)
	switch {
	case err != nil:
		return undecided, err
	case !holds:
		return conditionFalse, nil
	}
	return applies, nil
}
