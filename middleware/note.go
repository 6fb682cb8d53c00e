package middleware

import "strings"

// An Act is the effect of one rule on one call.
type Act string

// The acts.
const (
	// Skipped: the rule did not apply; Why gives the reason.
	Skipped Act = "skipped"
	// Kept: the rule had a value, but the call's own value was kept.
	Kept Act = "kept"
	// Edited: a member of the call or of its reply was set, changed or removed.
	Edited Act = "edited"
	// Allowed: the rule allowed the call.
	Allowed Act = "allowed"
	// Refused: the call was answered with a refusal, or a notification was dropped.
	Refused Act = "refused"
	// Failed: the rule applied but could not do its work; the call continued.
	Failed Act = "failed"
)

// A Note records what one layer did with one call, or why it did nothing. Audit
// records, traces, `attache explain` and dry runs are built from notes.
type Note struct {
	// Layer is the name of the layer, as in [Layer].
	Layer string
	// Rule is the rule's place in the configuration, such as "arguments[1]"; "" if
	// the layer acts without a rule.
	Rule string
	Act  Act
	// Why is the reason, for people. It contains no value of the call and no secret.
	Why string
	// Path is the path of the edited member from the frame's root, such as
	// params, arguments, path.
	Path []string
	// Before and After are the member's raw JSON, nil if there is no such member. They
	// may be secret, so the listener decides what to store or show of them. They are
	// valid until the listener returns.
	Before, After []byte
	// Source is the origin of After: the fact and its source, such as
	// "session.workspace.path from --workspace".
	Source string
	// Pinned means that the client cannot choose the edited value.
	Pinned bool
	// DryRun means that the layer ran in a dry run and the act had no effect.
	DryRun bool
}

// Listen registers a function that is called with every later note about the call. It also
// receives the call, so that one function can serve many calls. skipped also asks for notes of
// rules that did not apply; they cost time, so only explanations ask for them. Both handlers and
// hooks make notes, so the function is called from both directions and needs a lock. For a frame
// that is not a request, notes are made until its handlers have returned.
func (c *Call) Listen(skipped bool, listener func(*Call, Note)) {
	c.relayed().Listen(skipped, listener)
}

// Clip shortens a text from a message for use in a note, a log line or an error.
func Clip(text string) string {
	if len(text) > 200 {
		return strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// Noted reports whether the call has listeners. Check it before doing work for a note.
func (c *Call) Noted() bool { return len(c.relayed().Listeners()) > 0 }

// Explained reports whether a listener wants notes of rules that did not apply.
func (c *Call) Explained() bool { return c.relayed().Explained() }

// Note passes n to the listeners.
func (c *Call) Note(n Note) {
	for _, listener := range c.relayed().Listeners() {
		listener.(func(*Call, Note))(c, n)
	}
}
