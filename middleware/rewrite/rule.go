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

// A Rule changes how some tools are listed and called. A field that is not set changes nothing.
type Rule struct {
	// Name is where the configuration has the rule, "rewrite[1]", for notes and errors;
	// "" stands for its place among the rules.
	Name string
	// Tools are patterns of the server's names, with * and ?. A rule that hides
	// also holds them against the names of prompts and the URIs of resources.
	Tools []string
	// When, if not nil, is the condition under which the rule applies.
	When *expression.Program
	// Hide takes the tool away: it is not listed and cannot be called.
	Hide bool
	// Rename is the name the client knows the tool by. Tools is then one name,
	// without * and ?.
	Rename string
	// Describe is the description the client is shown.
	Describe string
	// Set sets arguments of calls, whatever the client sent for them.
	Set []Setting

	// Set by Compile:
	quoted []byte   // the server's name of a renamed tool
	uris   []string // the patterns for URIs, as canonical makes them
}

// A Setting is an argument and its value.
type Setting struct {
	// Path is the argument's name, or the names on the way to it through objects.
	Path []string
	// Value yields any JSON value.
	Value *expression.Program

	keys []string // from the frame's root; set by Compile
}

// maxName is how long a tool's name may be (specification, server/tools, "Tool
// Names").
const maxName = 128

// Check returns what is wrong with the rule, regardless of other rules.
func (r *Rule) Check() error {
	err := glob.Check(r.Tools)
	for _, problem := range [...]error{r.checkActs(), r.checkWhen(), r.checkRename(), r.checkSet()} {
		err = cmp.Or(err, problem)
	}
	return err
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
		return errors.New("when is no condition: compile it as one")
	case r.When.UsesArguments() && (r.Hide || r.shows()):
		return errors.New("when reads arguments, which a list has none of, so it can decide about set alone: write a rule for set with this condition, and another without")
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
	case len(r.Rename) > maxName || strings.ContainsFunc(r.Rename, strange):
		return fmt.Errorf("%q is no name of a tool: write at most %d letters, digits, dots, dashes, underscores and slashes", r.Rename, maxName)
	}
	return nil
}

// strange reports whether c must not be in the name of a tool.
func strange(c rune) bool {
	plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	return !plain && !strings.ContainsRune("._-/", c)
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

// isInside reports whether path is outer, or leads into it.
func isInside(path, outer []string) bool {
	return len(path) >= len(outer) && slices.Equal(path[:len(outer)], outer)
}

// shows reports whether the rule changes how a tool is listed.
func (r *Rule) shows() bool { return r.Rename != "" || r.Describe != "" }

// lists reports whether the rule can change a list.
func (r *Rule) lists() bool { return r.Hide || r.shows() }

// hidesItems reports whether the rule can hide prompts and resources. They have
// no annotations, so a condition that reads those is about tools alone.
func (r *Rule) hidesItems() bool {
	return r.Hide && (r.When == nil || !r.When.UsesAnnotations())
}

// needs returns which names of arguments a frame must have once: those that are
// set, and those that conditions and values read.
func (r *Rule) needs() (needs []middleware.Layer) {
	read := func(p *expression.Program) {
		if p != nil {
			needs = append(needs, middleware.Layer{ArgumentNames: p.ArgumentNames()})
		}
	}
	read(r.When)
	for _, s := range r.Set {
		var names [][]string
		for _, name := range s.Path {
			names = append(names, []string{name})
		}
		needs = append(needs, middleware.Layer{ArgumentNames: names})
		read(s.Value)
	}
	return needs
}

func (r *Rule) usesSession() bool { return r.When != nil && r.When.UsesSession() }

// Collision returns what is wrong with rule i beside those before it: that two
// tools would be shown under one name, or one under two. Whether the server has
// the tools is not known here; the layer finds out when they are listed.
func Collision(rules []Rule, i int) error {
	r := &rules[i]
	if r.Rename == "" {
		return nil
	}
	for j := range rules[:i] {
		switch s := &rules[j]; {
		case s.Rename == "" || !together(rules, j, i):
		case s.Tools[0] == r.Tools[0] && s.When == nil:
			return fmt.Errorf("%s is renamed by %s already, to %s: keep one", r.Tools[0], s.Name, s.Rename)
		case s.Tools[0] != r.Tools[0] && s.Rename == r.Rename:
			return fmt.Errorf("%s and, by %s, %s would both be shown as %s: choose another name", r.Tools[0], s.Name, s.Tools[0], r.Rename)
		}
	}
	return nil
}

// together reports whether the rules j and i, j before i, are certain to apply to
// their tools at the same time, at least now and then.
func together(rules []Rule, j, i int) bool {
	a, b := rules[j].When, rules[i].When
	return rules[j].always(rules[:j]) || rules[i].always(rules[:i]) || a != nil && b != nil && a.String() == b.String()
}

// always reports whether the rule renames its tool under any condition, given
// those before it.
func (r *Rule) always(before []Rule) bool {
	return r.When == nil && !slices.ContainsFunc(before, func(s Rule) bool { return s.Rename != "" && s.Tools[0] == r.Tools[0] })
}

// A ruleSet has the indexes of some rules by what they do, in order.
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

// rulesFor returns the rules that may be for a tool: those whose patterns match,
// and those whose patterns take too long to match, as that is an error of its own.
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

// An outcome is the result of one rule for one name.
type outcome string

// The outcomes.
const (
	otherNames     outcome = "it is for other tools"
	conditionFalse outcome = "its condition does not hold"
	applies        outcome = "it applies"
	undecided      outcome = "it could not be decided"
)

// judge applies the rule to a tool or a prompt. The error says why it
// could not be decided.
func (r *Rule) judge(in *expression.Inputs) (outcome, error) {
	named, err := glob.Match(r.Tools, in.Tool)
	return r.judgeNamed(in, named, err)
}

// judgeNamed is judge where it is known whether the rule's patterns match.
func (r *Rule) judgeNamed(in *expression.Inputs, named bool, err error) (outcome, error) {
	switch {
	case err != nil:
		return undecided, err
	case !named:
		return otherNames, nil
	case r.When == nil:
		return applies, nil
	}
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
