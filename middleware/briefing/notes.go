package briefing

import (
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/policy"
)

// result returns the briefing as a text for a tool result.
func (s *session) result() toolresult.Text {
	return toolresult.Text{
		Text: s.text, Meta: []byte(`{"` + MarkerKey + `":{"digest":"` + policy.Digest(s.text) + `"}}`),
		Layer: "briefing", Rule: "policy", Why: "the turn of this response", Source: s.source(),
	}
}

// source says where the briefing came from.
func (s *session) source() string {
	if s.scope != "" {
		return "the policies of scope " + s.scope
	}
	return "the policy source"
}

// skip notes why a reply carries no briefing, if an outer layer reads notes.
func skip(call *middleware.Call, why string) {
	if call.Explained() {
		call.Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Skipped, Why: why})
	}
}

// fail notes why a briefing that is due is missing.
func fail(call *middleware.Call, why string) {
	if call.Noted() {
		call.Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Failed, Why: why})
	}
}
