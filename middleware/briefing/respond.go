package briefing

import (
	"context"
	"errors"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// tool is what tools/list says of a tool that matters here.
type tool struct {
	appOnly bool // its calls come from a user interface, not from the model
	output  bool // it declares an outputSchema
	closed  bool // whose objects admit no further member
}

// tool returns what is known of a tool; nothing is the usual case.
func (b *Briefing) tool(name wire.Value) tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools[name.View()]
}

// learn reads a page of tools/list.
func (b *Briefing) learn(_ context.Context, reply *wire.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for entry := range reply.Get("result", "tools").Elements() {
		var t tool
		if v := entry.Get("_meta", "ui", "visibility"); v.IsArray() {
			t.appOnly = true
			for e := range v.Elements() {
				t.appOnly = t.appOnly && e.Equals("app")
			}
		}
		schema := entry.Get("outputSchema")
		t.output = schema.Exists()
		extra := schema.Get("additionalProperties")
		t.closed = extra.Exists() && string(extra.Raw) != "true" || schema.Get("unevaluatedProperties").Exists()
		name := entry.Get("name").Text()
		if t == (tool{}) {
			delete(b.tools, name)
		} else {
			b.tools[name] = t
		}
	}
	return nil
}

// respond takes the reply to a tool call of a session whose turn may be open.
func (b *Briefing) respond(call *middleware.Call, view *sessionstate.Context, s *session, t tool, reply *wire.Message) error {
	if why := uncarriable(t, reply); why != "" {
		b.passedBy(s, reply, why)
		skip(call, why)
		return nil
	}
	select {
	case <-s.ready:
		return b.carry(call, view, s, t, reply)
	default:
	}
	call.Suspend(reply, s.ready, b.o.Wait, func(_ context.Context, reply *wire.Message) error {
		select {
		case <-s.ready:
			return b.carry(call, view, s, t, reply)
		default:
			b.warnOnce("a tool response went without the briefing, as the policy source is slow; the next one carries it (briefing.wait, policy.timeout)", nil)
			fail(call, "the policy source is slow; the next response carries the briefing")
			return nil
		}
	})
	return nil
}

// uncarriable says why a reply cannot take a block, "" if it can: then it is a
// finished tool result for the model.
func uncarriable(t tool, reply *wire.Message) string {
	kind := reply.Get("result", "resultType")
	task, requests := reply.Get("result", "task"), reply.Get("result", "inputRequests")
	switch {
	case t.appOnly:
		return "the tool is for a user interface, the model does not see its results"
	case reply.Kind() != wire.Result:
		return "the reply is an error"
	case !reply.Plain():
		return "the reply is too large, or ambiguous, and is not edited"
	case kind.Exists() && !kind.Equals("complete"), !isEmpty(task), !isEmpty(requests):
		return "the result is not the last word on the call"
	case !reply.Get("result", "content").IsArray():
		return "the result has no content"
	}
	return ""
}

// isEmpty reports whether v is absent, null, or an array or object with nothing in it.
func isEmpty(v wire.Value) bool {
	for range v.Elements() {
		return false
	}
	for range v.Members() {
		return false
	}
	return !v.Exists() || v.IsNull() || v.IsArray() || v.IsObject()
}

// carry puts the block into the reply if it is this reply's turn.
func (b *Briefing) carry(call *middleware.Call, view *sessionstate.Context, s *session, t tool, reply *wire.Message) error {
	if s.text == "" {
		fail(call, s.why)
		return nil
	}
	if call.Cancelled() {
		skip(call, "the call was cancelled")
		return nil
	}
	mine, err := b.o.Store.Take(context.Background(), view.Session.Value)
	if err != nil || !mine {
		skip(call, "it is another response's turn")
		return err
	}
	if b.isShared(view) {
		return b.takeShared(call, view, s, t, reply)
	}
	return b.give(call, view, s, t, reply)
}

// give puts the block into the reply, whose turn it is.
func (b *Briefing) give(call *middleware.Call, view *sessionstate.Context, s *session, t tool, reply *wire.Message) error {
	key, outcome, err := view.Session.Value, sessionstate.Open, error(nil)
	if call.Cancelled() { // while the turn was asked for
		skip(call, "the call was cancelled")
	} else {
		outcome, err = b.inject(call, view, s, t, reply)
	}
	b.settled(s, outcome)
	if outcome != sessionstate.Open && b.o.Given != nil {
		b.o.Given(key, s.text)
	}
	return errors.Join(err,
		b.o.Store.Settle(context.Background(), key, outcome),
		b.settleShared(call, view, s, outcome, reply))
}

// inject edits the reply, and says what became of the turn.
func (b *Briefing) inject(call *middleware.Call, view *sessionstate.Context, s *session, t tool, reply *wire.Message) (sessionstate.Outcome, error) {
	text := s.text
	structured := reply.Get("result", "structuredContent").Exists()
	if alreadyThere(reply, text) {
		skip(call, "an attache further in has put the same briefing in front")
		return outcome(!structured), nil // an attache further in was first
	}
	added := block(text, view.Protocol)
	if err := reply.Prepend(added, "result", "content"); err != nil {
		return sessionstate.Open, err
	}
	s.edited(call, "the turn of this response", nil, added, "result", "content", "0")
	seen := !structured
	switch {
	case !structured:
	case b.o.Structured == TextOnly && !t.output:
		before := reply.Get("result", "structuredContent").Raw
		if seen = reply.Delete("result", "structuredContent") == nil; seen {
			s.edited(call, "clients show the model nothing else of a result that has it", before, nil, "result", "structuredContent")
		}
	case b.o.Structured == Member && !t.closed && reply.Get("result", "structuredContent").IsObject() &&
		!reply.Get("result", "structuredContent", "session_context").Exists():
		quoted := wire.Quote(text)
		if seen = reply.Set(quoted, "result", "structuredContent", "session_context") == nil; seen {
			s.edited(call, "clients show the model nothing else of a result that has it", nil, quoted, "result", "structuredContent", "session_context")
		}
	}
	return outcome(seen), nil
}

func outcome(seen bool) sessionstate.Outcome {
	if seen {
		return sessionstate.Given
	}
	return sessionstate.Deferred
}

// alreadyThere reports whether the first block is this very briefing. The text
// is compared, not the marker: a server can write a marker, but does not know
// the text.
func alreadyThere(reply *wire.Message, text string) bool {
	for e := range reply.Get("result", "content").Elements() {
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

// instruct appends the briefing to the server's instructions, the other channel.
func (b *Briefing) instruct(call *middleware.Call, s *session, reply *wire.Message) error {
	if s == nil || reply.Kind() != wire.Result || !reply.Plain() || !reply.Get("result").IsObject() {
		return nil
	}
	add := func(_ context.Context, reply *wire.Message) error {
		select {
		case <-s.ready:
		default:
			b.warnOnce("the instructions went without the briefing, as the policy source is slow (briefing.wait, policy.timeout)", nil)
			return nil
		}
		if s.text == "" {
			fail(call, s.why)
			return nil
		}
		text := s.text
		old := reply.Get("result", "instructions")
		if old.Text() != "" {
			text = old.Text() + "\n\n" + text
		}
		quoted := wire.Quote(text)
		if err := reply.Set(quoted, "result", "instructions"); err != nil {
			return err
		}
		s.edited(call, "", old.Raw, quoted, "result", "instructions")
		return nil
	}
	select {
	case <-s.ready:
		return add(context.Background(), reply)
	default:
	}
	call.Suspend(reply, s.ready, b.o.Wait, add)
	return nil
}
