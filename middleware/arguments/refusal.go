package arguments

import (
	"context"
	"fmt"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A refusal is the reason why a rule refuses a call.
type refusal struct {
	rule *rule
	why  string // for people
	text string // for the model
}

// refuse answers the call in place of the upstream. A notification is dropped.
func (c *Conn) refuse(ctx context.Context, tc *toolCall, no *refusal) error {
	session, _ := tc.view.Lookup("session.id")
	c.log.InfoContext(ctx, "a call was refused", "tool", middleware.Clip(tc.name), "argument", no.rule.path, "why", no.why, "session", session.Value)
	tc.addNotes()
	if tc.call.Noted() {
		tc.call.Note(middleware.Note{Layer: layerName, Rule: no.rule.Name, Act: middleware.Refused, Why: no.why, Path: no.rule.keys})
	}
	if tc.m.Kind() != wire.Request {
		return nil
	}
	return tc.call.Answer(ctx, wire.RefusalReply(tc.m, no.text, tc.view != nil && tc.view.Modern))
}

// The texts of refusals do not name the tool: an outer layer may have shown it to the model
// under another name.
const textUndecided = "Permission denied: the rules for the arguments of this tool could not be applied to this call"

// argumentRefusal refuses a call that has an argument which is forbidden.
func argumentRefusal(r *rule) *refusal {
	return &refusal{r, "the call has the argument, which is forbidden",
		fmt.Sprintf("The argument %q is not the model's to choose: it is forbidden here. Leave it out and call again.", r.path)}
}

// shapeRefusal refuses a call that may have the argument where attache cannot see it.
func shapeRefusal(r *rule) *refusal {
	return &refusal{r, "what stands around the argument, which is forbidden, is no object",
		fmt.Sprintf("The argument %q is not the model's to choose: it is forbidden here, and what is around it has to be an object. Give an object where one belongs, or leave it out, and call again.", r.path)}
}

// pinRefusal refuses a call for which a pin has no value.
func pinRefusal(in *intent) *refusal {
	how := "its value could not be determined"
	if in.rule.fact != "" {
		how = "it is taken from " + in.rule.fact + ", which is not known for this session"
	}
	return &refusal{in.rule, "there is no value to pin the argument to",
		fmt.Sprintf("The argument %q is not the model's to choose: %s, so the call was not sent. Ask the user to %s.",
			in.rule.path, how, remedy(in.rule))}
}

// writeRefusal refuses a call that has no place for the value of a pin.
func writeRefusal(r *rule, err error) *refusal {
	return &refusal{r, "the value could not be written: " + err.Error(),
		fmt.Sprintf("The argument %q is not the model's to choose, and this call has no place to set it: leave it and what is around it out, or give an object where one belongs, and call again.", r.path)}
}

// remedy says what a person should do about a missing value.
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

// missingText tells the model what to do about an argument that is required.
func missingText(tool string, r *rule) string {
	return fmt.Sprintf("missing %s: the tool %s needs the argument %q and the session has no value for it. Give it in the call, or ask the user to %s.",
		r.path, tool, r.path, remedy(r))
}
