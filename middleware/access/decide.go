package access

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A Default is what a call meets that no rule decides.
type Default string

// The defaults there are.
const (
	Allow Default = "allow"
	Deny  Default = "deny"
)

// A Rule says what it takes to call some tools.
type Rule struct {
	// Tools are patterns of tool names, with * and ?.
	Tools []string
	// Require are permissions the principal must hold, all of them.
	Require []string
	// Deny refuses.
	Deny bool
	// When, if not nil, is the condition under which the rule applies.
	When *expression.Program
	// Message is told to the model in place of the usual text of a refusal.
	Message string
}

// Check says what makes no sense in the rule; nil if nothing does.
func (r *Rule) Check() error {
	switch {
	case r.When != nil && r.When.Type() != expression.Bool:
		return errors.New("when is no condition: compile it as one")
	case r.Deny && len(r.Require) > 0:
		return errors.New("deny and require contradict each other: write two rules")
	case r.Message != "" && !r.Deny && len(r.Require) == 0:
		return errors.New("the rule has a message for refusals and allows: add deny or require, or take the message out")
	case !r.Deny && len(r.Require) == 0 && r.When != nil && r.When.UsesAnnotations():
		return errors.New("would allow on the word of the server, whose annotations say what it likes: name the tools that are allowed, or write the contrary with deny")
	case slices.Contains(r.Require, ""):
		return errors.New("an empty permission is required: name one")
	}
	return glob.Check(r.Tools)
}

// CheckOrder says that rule i is never reached because one before it decides every
// call of its tools; nil if it may be. A deny that stands too late refuses
// nothing, and nobody notices.
func CheckOrder(rules []Rule, i int) error {
	if by := decidedBy(rules[:i], rules[i].Tools); by >= 0 {
		return fmt.Errorf("is never reached, as %s decides every call of its tools: put it before that one, or take it out", ruleName(by))
	}
	return nil
}

// decidedBy returns the index of the rule that decides every call of the tools, -1
// if none does by itself.
func decidedBy(rules []Rule, tools []string) int {
	return slices.IndexFunc(rules, func(r Rule) bool {
		return r.When == nil && !slices.ContainsFunc(tools, func(tool string) bool {
			return !slices.ContainsFunc(r.Tools, func(pattern string) bool { return covers(pattern, tool) })
		})
	})
}

// covers reports whether one pattern surely matches all that another does.
func covers(pattern, other string) bool {
	if pattern == other {
		return true
	}
	head, open := strings.CutSuffix(pattern, "*")
	return open && !strings.ContainsAny(head, `*?\`) && strings.HasPrefix(other, head)
}

// judgesCalls reports whether the rule can be applied to nothing but a call.
func (r *Rule) judgesCalls() bool { return r.When != nil && r.When.UsesArguments() }

// mayRefuse reports whether the rule can refuse at all; one that allows does if
// its condition fails.
func (r *Rule) mayRefuse() bool {
	return r.Deny || len(r.Require) > 0 || r.When != nil && r.When.NeedsEngine()
}

func (r *Rule) usesPrincipal() bool {
	return len(r.Require) > 0 || r.When != nil && r.When.UsesPrincipal()
}

func (r *Rule) usesSession() bool {
	return len(r.Require) > 0 || r.When != nil && r.When.UsesSession()
}

// A Request is what is decided about.
type Request struct {
	// Inputs are the call and its session.
	Inputs *expression.Inputs
	// LookupErr says why the caller's identity could not be looked up.
	LookupErr error
	// Listing asks whether any arguments could make the call allowed.
	Listing bool

	named bool // the rules that are looked at are known to be for the tool
}

// A Reason is what came of a rule, or decided.
type Reason string

// The reasons. The first three pass a rule over, the others decide.
const (
	OtherTools     Reason = "it is for other tools"
	ConditionFalse Reason = "its condition does not hold"
	NeedsArguments Reason = "its condition depends on arguments, which a list has none of"

	Allowed        Reason = "it allows the call"
	HasPermissions Reason = "the principal holds what it requires"
	Denied         Reason = "it denies the call"
	NoPermission   Reason = "it requires a permission that is not held"
	NoPrincipal    Reason = "it requires a permission and there is no principal"
	Undecided      Reason = "it could not be decided"

	ByDefault   Reason = "no rule decides"
	RateReached Reason = "the rate is reached"
)

// A Decision says whether a call is allowed, and why.
type Decision struct {
	Allowed bool
	Reason  Reason
	// Rule is the index of the rule that decided, -1 if none did.
	Rule int
	// Rate is the index of the rate that refused, -1 if none did.
	Rate int
	// Missing are the permissions that are required and not held.
	Missing []string
	// Err is why it could not be decided. It holds no value of the call.
	Err error
	// RetryAfter is when a rate will allow the call, if no other takes the turn.
	RetryAfter time.Duration
	// Text is what the model is told of a refusal.
	Text string
}

const none = -1 // no rule, no rate

// By returns where the configuration has what decided: "access.rules[2]",
// "access.rates[0]" or "access.default".
func (d Decision) By() string {
	switch {
	case d.Rate >= 0:
		return "access.rates[" + strconv.Itoa(d.Rate) + "]"
	case d.Rule >= 0:
		return ruleName(d.Rule)
	}
	return "access.default"
}

func ruleName(i int) string { return "access.rules[" + strconv.Itoa(i) + "]" }

// Why returns the reason with what it is about, for people.
func (d Decision) Why() string { return why(d.Reason, d.Missing, d.Err) }

func why(reason Reason, missing []string, err error) string {
	text := string(reason)
	if len(missing) > 0 {
		text += " (" + strings.Join(missing, ", ") + ")"
	}
	if err != nil {
		text += ": " + err.Error()
	}
	return text
}

// String says what was decided, by what and why, for people.
func (d Decision) String() string {
	verdict := "refused"
	if d.Allowed {
		verdict = "allowed"
	}
	return verdict + ": " + d.By() + ": " + d.Why()
}

// A Step is what came of one rule.
type Step struct {
	Rule    int
	Reason  Reason
	Missing []string
	Err     error
}

// Decide applies the rules to a request. It depends on nothing else; rates are
// not counted.
func Decide(o *Options, q Request) Decision { return decide(o, o.every(), q, nil) }

// Explain is Decide, and tells what came of each rule that was looked at.
func Explain(o *Options, q Request) (d Decision, steps []Step) {
	d = decide(o, o.every(), q, func(s Step) { steps = append(steps, s) })
	return d, steps
}

// candidates are the rules that may be for a tool: all others are for other tools.
type candidates struct {
	rules []int // their indexes, in order
	named bool  // it is known that each of them is for the tool
}

// every returns the candidates for any tool.
func (o *Options) every() *candidates {
	c := new(candidates)
	for i := range o.Rules {
		c.rules = append(c.rules, i)
	}
	return c
}

// candidates returns those for a tool. A rule whose patterns take too long to match
// is one: it has to say so.
func (o *Options) candidates(tool string) *candidates {
	c := &candidates{named: true}
	for i := range o.Rules {
		named, err := glob.Match(o.Rules[i].Tools, tool)
		if named || err != nil {
			c.rules = append(c.rules, i)
		}
		c.named = c.named && err == nil
	}
	return c
}

// decide is Decide by the candidates for the tool.
func decide(o *Options, c *candidates, q Request, visit func(Step)) Decision {
	q.named = c.named
	for _, i := range c.rules {
		r := &o.Rules[i]
		reason, missing, err := r.apply(&q)
		if visit != nil {
			visit(Step{i, reason, missing, err})
		}
		switch reason {
		case OtherTools, ConditionFalse, NeedsArguments:
			continue
		case Allowed, HasPermissions:
			return Decision{Allowed: true, Reason: reason, Rule: i, Rate: none}
		case Undecided:
			return undecided(i, err)
		}
		return Decision{Reason: reason, Rule: i, Rate: none, Missing: missing, Text: r.refusal(missing)}
	}
	d := Decision{Allowed: o.Default != Deny, Reason: ByDefault, Rule: none, Rate: none}
	if !d.Allowed {
		d.Text = textDenied
	}
	return d
}

// The texts of refusals give the model no name: the layers outside may have
// shown it another.
const (
	textDenied    = "Permission denied: this tool may not be called here"
	textUndecided = "Permission denied: the access rules could not be applied to this call"
)

func undecided(rule int, err error) Decision {
	return Decision{Reason: Undecided, Rule: rule, Rate: none, Err: err, Text: textUndecided}
}

func (r *Rule) refusal(missing []string) string {
	switch {
	case r.Message != "":
		return r.Message
	case len(missing) > 0:
		return "Permission denied: " + strings.Join(missing, ", ") + " required"
	}
	return textDenied
}

var errLookup = errors.New("the caller's identity could not be looked up")

// apply says what comes of one rule.
func (r *Rule) apply(q *Request) (reason Reason, missing []string, err error) {
	if !q.named {
		switch named, err := glob.Match(r.Tools, q.Inputs.Tool); {
		case err != nil:
			return Undecided, nil, err
		case !named:
			return OtherTools, nil, nil
		}
	}
	if q.LookupErr != nil && r.usesPrincipal() {
		return Undecided, nil, errLookup
	}
	maybe := q.Listing && r.judgesCalls()
	if r.When != nil && !maybe {
		holds, err := r.When.Holds(q.Inputs)
		switch {
		case err != nil:
			return Undecided, nil, err
		case !holds:
			return ConditionFalse, nil, nil
		}
	}
	reason, missing = r.verdict(q)
	if maybe && reason != Allowed && reason != HasPermissions {
		return NeedsArguments, nil, nil
	}
	return reason, missing, nil
}

// verdict says what a rule that applies decides.
func (r *Rule) verdict(q *Request) (Reason, []string) {
	switch {
	case r.Deny:
		return Denied, nil
	case len(r.Require) == 0:
		return Allowed, nil
	}
	c := q.Inputs.Context
	if c == nil || c.Principal == nil {
		return NoPrincipal, r.Require
	}
	var missing []string
	for _, permission := range r.Require {
		if !slices.Contains(c.Principal.Permissions, permission) {
			missing = append(missing, permission)
		}
	}
	if len(missing) > 0 {
		return NoPermission, missing
	}
	return HasPermissions, nil
}
