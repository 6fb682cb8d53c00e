package briefing

import (
	"context"
	"errors"
	"slices"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A response is where a reply has the result of a tool.
type response struct {
	tool   string   // "" if it is not known
	at     []string // the path of the result
	asTask bool     // the client asked for a task in place of the result
}

// get returns a member of the result.
func (r response) get(reply *wire.Message, keys ...string) wire.Value {
	return reply.Get(r.path(keys...)...)
}

func (r response) path(keys ...string) []string { return slices.Concat(r.at, keys) }

// expects returns the session of a call whose reply may carry the briefing, nil if it will
// not whatever it is.
func (c *Conn) expects(call *middleware.Call, view *sessionstate.Context) *session {
	s := c.open(view)
	switch {
	case !c.responds():
		skip(call, "briefing.channels does not name response")
		return nil
	case s == nil && call.Explained():
		skip(call, c.shared.sessions.whyNone(view.Session.Value))
	}
	return s
}

// expect has the reply of a call carry the briefing if it is its turn.
func (c *Conn) expect(call *middleware.Call, view *sessionstate.Context, s *session, r response) {
	call.OnReply(func(_ context.Context, reply *wire.Message) error { return c.respond(call, view, s, r, reply) })
}

// respond takes the reply to a call of a session whose turn may be open.
func (c *Conn) respond(call *middleware.Call, view *sessionstate.Context, s *session, r response, reply *wire.Message) error {
	if id := handle(reply, r); id != "" {
		c.o.Memory.learnTask(id, r.tool)
		skip(call, "the result is that of a task, which is fetched later")
		return nil
	}
	if why := c.unfit(r, reply); why != "" {
		if why != isError {
			c.miss(view.Session.Value, why, true)
		}
		skip(call, why)
		return nil
	}
	if s.isReady() {
		return c.carry(call, view, s, r, reply)
	}
	call.Suspend(reply, s.ready, c.shared.o.Wait, func(_ context.Context, reply *wire.Message) error {
		if s.isReady() {
			return c.carry(call, view, s, r, reply)
		}
		c.warnings.once("a tool response went without the briefing, as the policy source is slow; the next one carries it (briefing.wait, policy.timeout)", nil)
		fail(call, "the policy source is slow; the next response carries the briefing")
		return nil
	})
	return nil
}

// handle returns the id of the task that reply is a handle of, "" if it is none: of a
// legacy task that the client asked for, or of one of the modern era.
func handle(reply *wire.Message, r response) string {
	switch {
	case r.asTask:
		return reply.Get("result", "task", "taskId").Text()
	case reply.Get("result", "resultType").Equals("task") && !reply.Get("result", "content").Exists():
		return reply.Get("result", "taskId").Text()
	}
	return ""
}

const isError = "the reply is an error"

// unfit says why a reply cannot carry the briefing, "" if it can: then it has a finished
// tool result for the model.
func (c *Conn) unfit(r response, reply *wire.Message) string {
	kind := r.get(reply, "resultType")
	switch {
	case c.appOnly(r.tool):
		return "the tool is for a user interface, the model does not see its results"
	case !reply.Plain():
		return "the reply is ambiguous or too large, and is not edited"
	case reply.Kind() != wire.Result:
		return isError
	case !isEmpty(kind) && !kind.Equals("complete"), !isEmpty(r.get(reply, "task")), !isEmpty(r.get(reply, "inputRequests")):
		return "the result is not the last word on the call"
	case !r.get(reply, "content").IsArray():
		return "the result has no content"
	}
	return ""
}

// isEmpty reports whether v is absent, null, or a text, array or object with nothing in it.
func isEmpty(v wire.Value) bool {
	for range v.Elements() {
		return false
	}
	for range v.Members() {
		return false
	}
	return !v.Exists() || v.IsNull() || v.IsArray() || v.IsObject() || v.Equals("")
}

// appOnly reports whether calls of a tool come from a user interface alone.
func (c *Conn) appOnly(tool string) bool {
	t, _ := c.o.Catalog.Tool(tool)
	if t == nil {
		return false
	}
	visibility := wire.Value{Raw: t.Meta}.Get("ui", "visibility")
	for e := range visibility.Elements() {
		if !e.Equals("app") {
			return false
		}
	}
	return visibility.IsArray()
}

// A carrier is how a result takes the text.
type carrier uint8

const (
	textBlock carrier = iota // a block of content
	member                   // a member of structuredContent
	textOnly                 // a block of content, and no structuredContent
)

// plan says how a result takes the text, and whether the client shows it there.
func (c *Conn) plan(r response, reply *wire.Message) (how carrier, seen bool) {
	structured := r.get(reply, "structuredContent")
	if !structured.Exists() || structured.IsNull() || string(r.get(reply, "isError").Raw) == "true" {
		return textBlock, true
	}
	client, way := clientOf(c.o.Memory.clientName()), c.shared.o.Structured
	switch {
	case way == Member || way == Auto && client.StructuredAlone:
		if c.o.Memory.hasMember(r.tool) && structured.IsObject() && !structured.Get(memberName).Exists() {
			return member, true
		}
	case way == TextOnly:
		if t, _ := c.o.Catalog.Tool(r.tool); t != nil && t.Passed && t.OutputSchema == nil {
			return textOnly, true
		}
	}
	// With auto, a client that is not known counts as one that shows the block: it has
	// it once, in its first response.
	return textBlock, client.ContentAlone || way == Auto && !client.StructuredAlone
}

// unseenText says why a result may not show its model the text.
const unseenText = "the client may show structuredContent alone"

// carry puts the text into the reply if it is this reply's turn.
func (c *Conn) carry(call *middleware.Call, view *sessionstate.Context, s *session, r response, reply *wire.Message) error {
	if s.text == "" {
		fail(call, s.why)
		return nil
	}
	if call.Cancelled() {
		skip(call, "the call was cancelled")
		return nil
	}
	if _, seen := c.plan(r, reply); !seen && c.shared.sessions.exhausted(s) {
		c.miss(view.Session.Value, unseenText, true)
		skip(call, unseenText)
		return nil
	}
	t := c.turnOf(view, s, "")
	return t.take(call, reply, func(reply *wire.Message, unseen int, why string) error {
		c.shared.sessions.count(s, unseen)
		if why != "" {
			if t.isShared() {
				c.leaveAlone(s)
				c.seen(view.Session.Value) // by another server's response, or soon
			}
			skip(call, why)
			return nil
		}
		return c.give(call, view, t, r, reply)
	})
}

// give puts the text into the reply, whose turn it is.
func (c *Conn) give(call *middleware.Call, view *sessionstate.Context, t turn, r response, reply *wire.Message) error {
	session, outcome, err := view.Session.Value, sessionstate.Open, error(nil)
	_, seen := c.plan(r, reply)
	switch {
	case call.Cancelled(): // while the turn was asked for
		skip(call, "the call was cancelled")
	case !seen && c.shared.sessions.exhausted(t.s):
		c.miss(session, unseenText, true)
		skip(call, unseenText)
	default:
		outcome, err = c.inject(call, view, t, r, reply)
	}
	c.carried(session, t.s, outcome)
	return errors.Join(err, t.settle(call, reply, outcome))
}

// carried notes what became of the turn of s.
func (c *Conn) carried(session string, s *session, outcome sessionstate.Outcome) {
	switch outcome {
	case sessionstate.Open:
		return
	case sessionstate.Seen:
		c.shared.sessions.finish(s)
		c.seen(session)
	case sessionstate.Unseen:
		c.shared.sessions.countOne(s)
		c.miss(session, unseenText, false)
	}
	if c.o.Carried != nil {
		c.o.Carried(session, s.text)
	}
}

// inject edits the reply, and says what became of the turn.
func (c *Conn) inject(call *middleware.Call, view *sessionstate.Context, t turn, r response, reply *wire.Message) (sessionstate.Outcome, error) {
	s := t.s
	how, seen := c.plan(r, reply)
	switch {
	case r.get(reply, "structuredContent", memberName).Equals(s.text):
		skip(call, "an attache further in has added the same briefing")
		return sessionstate.Seen, nil
	case alreadyThere(r.get(reply, "content"), s.text):
		skip(call, "an attache further in has put the same briefing in front")
		if !seen && t.isShared() {
			return sessionstate.Open, nil // the other has counted it
		}
		return outcome(seen && how == textBlock), nil
	case how == member:
		return c.injectMember(call, s, r, reply)
	}
	added := block(s.text, view.Protocol)
	if err := reply.Prepend(added, r.path("content")...); err != nil {
		return sessionstate.Open, err
	}
	s.edited(call, "the turn of this response", nil, added, r.path("content", "0")...)
	if how == textOnly {
		before := r.get(reply, "structuredContent").Raw
		if err := reply.Delete(r.path("structuredContent")...); err != nil {
			return sessionstate.Unseen, err
		}
		s.edited(call, "some clients show the model nothing else of a result that has it", before, nil, r.path("structuredContent")...)
	}
	return outcome(seen), nil
}

func outcome(seen bool) sessionstate.Outcome {
	if seen {
		return sessionstate.Seen
	}
	return sessionstate.Unseen
}

// alreadyThere reports whether the first block is this very briefing. The text is
// compared, of which the marker has the digest: a server can write a marker, but does not
// know the text.
func alreadyThere(content wire.Value, text string) bool {
	for e := range content.Elements() {
		return e.Get("text").Equals(text)
	}
	return false
}

// block returns the content block in the form the revision knows: annotations
// came with 2025-03-26, a block's _meta with 2025-06-18. An unknown revision is
// taken for the newest.
func block(text, revision string) []byte {
	out := append([]byte(`{"type":"text","text":`), wire.Quote(text)...)
	if revision == "" || revision >= "2025-03-26" {
		out = append(out, `,"annotations":{"audience":["assistant"],"priority":1}`...)
	}
	if revision == "" || revision >= "2025-06-18" {
		out = append(out, `,"_meta":{"`+MarkerKey+`":{"digest":"`+policy.Digest(text)+`"}}`...)
	}
	return append(out, '}')
}
