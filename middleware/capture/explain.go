package capture

import (
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/sessionstate"
)

// explain adds notes about the facts of a frame's _meta that were not used, and about a failed
// identification. The facts that were used are in view, with their sources.
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
	explainUnused(call, "session.meta.workspace", f.workspace, view.Workspace)
	explainUnused(call, "session.meta.conversation", f.conversation, view.Session)
	if view.Workspace.Empty() {
		call.Note(middleware.Note{Layer: "capture", Rule: "session.meta.workspace", Act: middleware.Skipped, Why: "no workspace is known: neither the operator, nor _meta, nor the client's environment has one"})
	}
}

// explainUnused adds a note about a fact in _meta if another fact was used instead.
func explainUnused(call *middleware.Call, rule string, f, used sessionstate.Fact) {
	if f.Empty() || used.Value == f.Value {
		return
	}
	call.Note(middleware.Note{Layer: "capture", Rule: rule, Act: middleware.Skipped,
		Why: f.From + " is not used: " + used.From + " (" + used.Source.String() + ") takes precedence"})
}
