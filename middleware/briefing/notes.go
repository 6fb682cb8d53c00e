package briefing

import (
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/policy"
)

// result returns the briefing in the form for a tool result.
func (s *session) result() toolresult.Text {
	return toolresult.Text{
		Text: s.text, Meta: []byte(`{"` + MarkerKey + `":{"digest":"` + policy.Digest(s.text) + `"}}`),
		Layer: "briefing", Rule: "policy", Why: "the turn of this response", Source: s.source(),
	}
}

// source names the source of the briefing.
func (s *session) source() string {
	if s.scope != "" {
		return "the policies of scope " + s.scope
	}
	return "the policy source"
}

// skip adds a note about why a reply carries no briefing.
func skip(call *middleware.Call, why string) {
	if call.Explained() {
		call.Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Skipped, Why: why})
	}
}

// fail adds a note about why a briefing that is due is missing.
func fail(call *middleware.Call, why string) {
	if call.Noted() {
		call.Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Failed, Why: why})
	}
}
