package briefing

import (
	"context"

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
	if t.appOnly || !carriable(reply) {
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
			return nil
		}
	})
	return nil
}

// carriable reports whether a reply is a finished tool result that can take a
// block: no JSON-RPC error, no input_required, no task handle, nothing unknown,
// nothing too large to edit.
func carriable(reply *wire.Message) bool {
	if reply.Kind() != wire.Result || !reply.Plain() {
		return false
	}
	if kind := reply.Get("result", "resultType"); kind.Exists() && !kind.Equals("complete") {
		return false
	}
	return reply.Get("result", "content").IsArray() && !reply.Get("result", "task").Exists() &&
		!reply.Get("result", "inputRequests").Exists()
}

// carry puts the block into the reply if it is this reply's turn.
func (b *Briefing) carry(call *middleware.Call, view *sessionstate.Context, s *session, t tool, reply *wire.Message) error {
	if s.text == "" || call.Cancelled() {
		return nil
	}
	key := view.Session.Value
	mine, err := b.o.Store.Take(context.Background(), key)
	if err != nil || !mine {
		return err
	}
	outcome, err := b.inject(view, s.text, t, reply)
	b.settled(s, outcome)
	if outcome != sessionstate.Open && b.o.Given != nil {
		b.o.Given(key, s.text)
	}
	if settleErr := b.o.Store.Settle(context.Background(), key, outcome); settleErr != nil {
		return settleErr
	}
	return err
}

// inject edits the reply, and says what became of the turn.
func (b *Briefing) inject(view *sessionstate.Context, text string, t tool, reply *wire.Message) (sessionstate.Outcome, error) {
	structured := reply.Get("result", "structuredContent").Exists()
	if alreadyThere(reply, text) {
		return outcome(!structured), nil // an attache further in was first
	}
	if err := reply.Prepend(block(text, view.Protocol), "result", "content"); err != nil {
		return sessionstate.Open, err
	}
	seen := !structured
	switch {
	case !structured:
	case b.o.Structured == TextOnly && !t.output:
		seen = reply.Delete("result", "structuredContent") == nil
	case b.o.Structured == Member && !t.closed && reply.Get("result", "structuredContent").IsObject() &&
		!reply.Get("result", "structuredContent", "session_context").Exists():
		seen = reply.Set(wire.Quote(text), "result", "structuredContent", "session_context") == nil
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
			return nil
		}
		text := s.text
		if old := reply.Get("result", "instructions").Text(); old != "" {
			text = old + "\n\n" + text
		}
		return reply.Set(wire.Quote(text), "result", "instructions")
	}
	select {
	case <-s.ready:
		return add(context.Background(), reply)
	default:
	}
	call.Suspend(reply, s.ready, b.o.Wait, add)
	return nil
}
