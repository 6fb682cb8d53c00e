package access

import (
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A request is a call or a listed tool to decide about.
type request struct {
	inputs  *expression.Inputs
	listing bool // whether to ask if a call with some arguments could be allowed
	unknown bool // whether the annotations of the tool are not known
	matched bool // whether the tool is known to match each rule
}

// A Reason describes what a rule did with a call.
type Reason string

// OtherTools is the reason of a rule that is skipped because its patterns do not
// match the tool.
const OtherTools Reason = "it is for other tools"

const (
	// The rule is skipped.
	conditionFalse Reason = "its condition does not hold"
	needsArguments Reason = "its condition depends on arguments, which a list has none of"

	// The rule decides.
	allows         Reason = "it allows the call"
	hasPermissions Reason = "the principal holds what it requires"
	denies         Reason = "it denies the call"
	noPermission   Reason = "it requires a permission that is not held"
	noPrincipal    Reason = "it requires a permission and there is no principal"
	errored        Reason = "it could not be decided"

	// No rule decides, or a rate refuses what a rule allowed.
	byDefault   Reason = "no rule decides"
	rateReached Reason = "the rate is reached"
	rateUnknown Reason = "the rate is not known: the shared database does not answer"
)

// A step is the result of one rule.
type step struct {
	rule    int
	reason  Reason
	missing []string // permissions that are required and that the principal lacks
	err     error    // why the rule could not be decided; contains no value of the call
}

// skipped reports whether the rule left the decision to the next.
func (s *step) skipped() bool {
	return s.reason == OtherTools || s.reason == conditionFalse || s.reason == needsArguments
}

// why returns the reason and its details, for people.
func (s *step) why() string {
	text := string(s.reason)
	if len(s.missing) > 0 {
		text += " (" + strings.Join(s.missing, ", ") + ")"
	}
	if s.err != nil {
		text += ": " + s.err.Error()
	}
	return text
}

// A decision states whether a call is allowed, and why.
type decision struct {
	step       // of the rule that decided, or with a reason without a rule
	allowed    bool
	by         string        // the name of the rule or rate that decided, or byDefaultRule
	rate       int           // the index of the rate that refused, or none
	retryAfter time.Duration // how long until the rate allows the call
	text       string        // the text of the refusal, for the model
	annotated  string        // the name of the first rule that depends on annotations that are not known
}

const none = -1 // no rate

// byDefaultRule replaces the name of the rule if no rule decided.
const byDefaultRule = "access.default"

// String returns the verdict, the name of the rule and the reason, for people.
func (d *decision) String() string {
	verdict := "refused"
	if d.allowed {
		verdict = "allowed"
	}
	return verdict + ": " + d.by + ": " + d.why()
}

// decide applies rules to a request, but no rates. visit, if not nil, is called with
// the result of each rule.
func (s *Shared) decide(c *candidates, q request, visit func(step)) decision {
	q.matched = c.matched
	annotated := ""
	for _, i := range c.rules {
		r := &s.o.Rules[i]
		result := r.apply(&q)
		if result.rule = i; visit != nil {
			visit(result)
		}
		if annotated == "" && q.unknown && result.reason != OtherTools && r.When.DependsOnAnnotations(q.inputs) {
			annotated = r.Name
		}
		if result.skipped() {
			continue
		}
		d := decision{step: result, by: r.Name, rate: none, annotated: annotated}
		switch result.reason {
		case allows, hasPermissions:
			d.allowed = true
		case errored:
			d.text = textUndecided
		default:
			d.text = r.refusal(result.missing)
		}
		return d
	}
	d := decision{step: step{reason: byDefault}, allowed: s.o.Default != Deny, by: byDefaultRule, rate: none, annotated: annotated}
	if !d.allowed {
		d.text = textDenied
	}
	return d
}

// The texts of refusals do not name the tool: an outer layer may have shown it to
// the model under another name.
const (
	textDenied      = "Permission denied: this tool may not be called here"
	textUndecided   = "Permission denied: the access rules could not be applied to this call"
	textRateUnknown = "The rate limit of this tool cannot be checked at the moment: try again later"
)

func undecided(by string, err error) decision {
	return decision{step: step{reason: errored, err: err}, by: by, rate: none, text: textUndecided}
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

func (r *Rule) apply(q *request) step {
	if !q.matched {
		switch matches, err := glob.Match(r.Tools, q.inputs.Tool); {
		case err != nil:
			return step{reason: errored, err: err}
		case !matches:
			return step{reason: OtherTools}
		}
	}
	if c := q.inputs.Context; c != nil && c.Unidentified != nil && r.usesPrincipal() {
		return step{reason: errored, err: expression.ErrUnidentified}
	}
	maybe := q.listing && r.When.UsesArguments()
	if r.When != nil && !maybe {
		switch holds, err := r.When.Holds(q.inputs); {
		case err != nil:
			return step{reason: errored, err: err}
		case !holds:
			return step{reason: conditionFalse}
		}
	}
	reason, missing := r.verdict(q)
	if maybe && reason != allows && reason != hasPermissions {
		return step{reason: needsArguments}
	}
	return step{reason: reason, missing: missing}
}

// verdict returns the decision of a rule that matches and whose condition holds, and the
// permissions that are missing.
func (r *Rule) verdict(q *request) (Reason, []string) {
	switch {
	case r.Deny:
		return denies, nil
	case len(r.Require) == 0:
		return allows, nil
	}
	c := q.inputs.Context
	if c == nil || c.Principal == nil {
		return noPrincipal, r.Require
	}
	var missing []string
	for _, permission := range r.Require {
		if !slices.Contains(c.Principal.Permissions, permission) {
			missing = append(missing, permission)
		}
	}
	if len(missing) > 0 {
		return noPermission, missing
	}
	return hasPermissions, nil
}
