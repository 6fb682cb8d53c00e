package capture

import (
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/sessionstate"
)

// explain notes which facts of a frame's _meta were not used, and why nobody is identified. The
// facts that were used are in view, with their sources.
func explain(call *middleware.Call, view *sessionstate.Context, f *facts) {
	if !call.Noted() {
		return
	}
	if view.Unidentified != nil {
		call.Note(middleware.Note{Layer: "capture", Act: middleware.Failed, Why: "nobody could be identified: " + view.Unidentified.Error()})
	}
	if !call.Explained() {
		return
	}
	passedOver(call, "session.meta.workspace", f.workspace, f.workspaceFrom, view.Workspace)
	passedOver(call, "session.meta.conversation", f.conversation, f.conversationFrom, view.Session)
	if view.Workspace.Empty() {
		call.Note(middleware.Note{Layer: "capture", Rule: "session.meta.workspace", Act: middleware.Skipped, Why: "no workspace is known: neither the operator, nor _meta, nor the client's environment has one"})
	}
}

// passedOver notes a fact in _meta that a fact of a higher source replaces.
func passedOver(call *middleware.Call, rule, value, from string, holds sessionstate.Fact) {
	if value == "" || holds.Value == value {
		return
	}
	call.Note(middleware.Note{Layer: "capture", Rule: rule, Act: middleware.Skipped,
		Why: from + " is passed over: " + holds.From + " (" + holds.Source.String() + ") stands above it"})
}
