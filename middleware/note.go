package middleware

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

// Listen has listener told of every note about the call from here on, and of which
// call: one function can listen to many. skipped
// says that it also wants to know which rules did not apply; that costs time, so
// only what explains asks for it. Handlers and hooks make notes, so a listener is
// called from both directions and locks what it keeps. Of a frame that is no
// request notes are made until its handlers have returned.
func (c *Call) Listen(skipped bool, listener func(*Call, Note)) {
	c.listeners = append(c.listeners, listener)
	c.explained = c.explained || skipped
}

// Noted reports whether anybody listens: a layer that would have to work for a
// note asks first.
func (c *Call) Noted() bool { return len(c.listeners) > 0 }

// Explained reports whether somebody wants notes of rules that did not apply.
func (c *Call) Explained() bool { return c.explained }

// Note tells the listeners of n.
func (c *Call) Note(n Note) {
	for _, listener := range c.listeners {
		listener(c, n)
	}
}
