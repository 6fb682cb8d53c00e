package briefing

import (
	"github.com/attache-mcp/attache/middleware"
)

// edited notes an edit of the reply to call.
func (s *session) edited(call *middleware.Call, why string, before, after []byte, path ...string) {
	if !call.Noted() {
		return
	}
	source := "the policy source"
	if s.scope != "" {
		source = "the policies of scope " + s.scope
	}
	if after == nil {
		source = ""
	}
	call.Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Edited, Why: why, Path: path, Before: before, After: after, Source: source})
}

// skip notes why a reply carries no briefing, if somebody wants to know.
func skip(call *middleware.Call, why string) {
	if call.Explained() {
		call.Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Skipped, Why: why})
	}
}

// fail notes that there should be a briefing and is none.
func fail(call *middleware.Call, why string) {
	if call.Noted() {
		call.Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Failed, Why: why})
	}
}
