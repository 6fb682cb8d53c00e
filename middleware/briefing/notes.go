package briefing

import (
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/sessionstate"
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

// skipped tells of a call whose reply will carry nothing whatever it is. s is
// what open returned.
func (b *Briefing) skipped(call *middleware.Call, view *sessionstate.Context, s *session) {
	switch {
	case !call.Explained():
	case !b.o.Response:
		skip(call, "briefing.channels does not name response")
	case s == nil:
		skip(call, b.whyNone(view))
	}
}

// whyNone says why there is nothing to give a session.
func (b *Briefing) whyNone(view *sessionstate.Context) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch s := b.sessions[view.Session.Value]; {
	case s == nil || s.done:
		return "the session has had its briefing"
	case s.text != "":
		return "it is another server's turn in this session, or was"
	default:
		return s.why
	}
}
