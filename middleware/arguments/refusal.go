package arguments

import "fmt"

// A refusal is the reason why a rule refuses a call.
type refusal struct {
	rule *rule
	why  string // for the operator
	text string // for the model
}

// The texts of refusals do not name the tool, because an outer layer may have renamed it for
// the model.
const textUndecided = "Permission denied: the rules for the arguments of this tool could not be applied to this call"

// refusal returns a refusal by the rule. text is what the model reads after the argument's name.
func (r *rule) refusal(why, text string) *refusal {
	return &refusal{r, why, fmt.Sprintf("The argument %q %s", r.path, text)}
}

// pinRefusal returns the refusal of a call for which a pin has no value.
func pinRefusal(r *rule) *refusal {
	how := "its value could not be determined"
	if r.fact != "" {
		how = "it is taken from " + r.fact + ", which is not known for this session"
	}
	return r.refusal("there is no value to pin the argument to",
		"is not the model's to choose: "+how+", so the call was not sent. Ask the user to "+remedy(r)+".")
}

// remedy returns what a person should do about a missing value.
func remedy(r *rule) string {
	switch {
	case r.fact == workspacePath:
		return "set the session's workspace (--workspace or ATTACHE_WORKSPACE for attache, or _meta of the client)"
	case r.Value.ReadsPrincipal():
		return "check the credential that attache was given for this session"
	case r.fact != "":
		return "set " + r.fact + " for the session"
	}
	return "look at the configuration and the log of attache"
}

// missingText returns the text for the model about a required argument without a value.
func missingText(r *rule) string {
	return fmt.Sprintf("missing %s: this tool needs the argument %q and the session has no value for it. Give it in the call, or ask the user to %s.",
		r.path, r.path, remedy(r))
}
