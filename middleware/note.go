package middleware

import "strings"

// An Act is what one rule did to one call.
type Act string

// The acts.
const (
	// Skipped: the rule did not apply; Why says why not.
	Skipped Act = "skipped"
	// Kept: the rule would have given a value and the call's own was left.
	Kept Act = "kept"
	// Edited: a member of the call or of its reply was set, changed or removed.
	Edited Act = "edited"
	// Allowed: the rule decided that the call may go on.
	Allowed Act = "allowed"
	// Refused: the call was answered with a refusal, or a notification dropped.
	Refused Act = "refused"
	// Failed: the rule applied and could not do its work; the call went on.
	Failed Act = "failed"
)

// A Note says what one layer did with one call, or why it did nothing. Audit
// records, traces, `attache explain` and dry runs are made of notes.
type Note struct {
	// Layer is the name of the layer, as in [Layer].
	Layer string
	// Rule is where the configuration has the rule, "arguments[1]"; "" if the
	// layer acts without one.
	Rule string
	Act  Act
	// Why is for people. It has no value of the call's and no secret in it.
	Why string
	// Path is the member of the frame an edit is about, from the frame's root:
	// params, arguments, path.
	Path []string
	// Before and After are the member's raw JSON, nil for one that is not there.
	// They may be secret, so what is stored or shown of them is the listener's
	// to decide, and they are valid until the listener returns.
	Before, After []byte
	// Source is where After came from: the fact and its origin, such as
	// "session.workspace.path from --workspace".
	Source string
	// Pinned says that the client has no choice in what was edited.
	Pinned bool
	// DryRun says that the note is of a dry run: what it tells would have been
	// done, and was not.
	DryRun bool
}

// Listen registers a function for every later note about the call. The function also gets the
// call, so that one function can serve many calls. skipped also asks for notes of rules that
// did not apply; they cost time, so only explanations ask for them. Handlers and hooks make
// notes, so the function is called from both directions and needs a lock. For a frame that is
// not a request, notes are made until its handlers have returned.
func (c *Call) Listen(skipped bool, listener func(*Call, Note)) {
	c.listeners = append(c.listeners, listener)
	c.explained = c.explained || skipped
}

// Clip shortens a text that came over the wire for a note, a log line or an error.
func Clip(text string) string {
	if len(text) > 200 {
		return strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// Noted reports whether anybody listens. A layer asks before it does work for a note.
func (c *Call) Noted() bool { return len(c.listeners) > 0 }

// Explained reports whether a listener wants notes of rules that did not apply.
func (c *Call) Explained() bool { return c.explained }

// Note gives n to the listeners.
func (c *Call) Note(n Note) {
	for _, listener := range c.listeners {
		listener(c, n)
	}
}
