package briefing

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// expectInstructions adds the hook that puts the briefing into the answer to initialize or
// server/discover.
func (c *Conn) expectInstructions(call *middleware.Call, view *sessionstate.Context, use instructionsUse) {
	s := c.open(view, "")
	if s == nil {
		return
	}
	limit := c.o.Results.MaxInstructions()
	call.OnReply(func(_ context.Context, reply *wire.Message) error {
		if reply.Kind() != wire.Result || !reply.Plain() || !reply.Get("result").IsObject() {
			return nil
		}
		if s.isReady() {
			return c.extendInstructions(call, view, s, use, limit, reply)
		}
		call.Suspend(reply, s.ready, c.shared.o.Wait, func(_ context.Context, reply *wire.Message) error {
			if s.isReady() {
				return c.extendInstructions(call, view, s, use, limit, reply)
			}
			c.warnings.once("the instructions were sent without the briefing, because the policy source is slow (briefing.wait, policy.timeout)")
			return nil
		})
		return nil
	})
}

// extendInstructions appends the briefing to the instructions in reply, if they have the turn. limit is
// the MaxInstructions of the client.
func (c *Conn) extendInstructions(call *middleware.Call, view *sessionstate.Context, s *session, use instructionsUse, limit int, reply *wire.Message) error {
	if s.text == "" {
		fail(call, s.why)
		return nil
	}
	if use == spendsTurn && isCutOff(s, limit, reply) {
		if c.usesResponses() {
			skip(call, "the client would cut it off: it shows only the beginning of long instructions")
			return nil
		}
		c.warnings.once("the client may cut the briefing off: it shows only the beginning of long instructions; name response in briefing.channels")
	}
	suffix := ""
	if use == keepsTurn {
		suffix = "\ninstructions"
	}
	t := c.instructionsTurn(view, s, suffix)
	return t.take(call, reply, func(reply *wire.Message, _ int, why string) error {
		if why != "" {
			skip(call, why)
			return nil
		}
		outcome, err := sessionstate.Seen, instruct(call, s, reply, view.Modern)
		if err != nil {
			outcome = sessionstate.Open
		}
		if use == spendsTurn {
			c.recordOutcome(view.Session.Value, s, outcome)
		}
		return errors.Join(err, t.settle(call, reply, outcome))
	})
}

// isCutOff reports whether the client would cut off the text behind the server's own instructions.
// It returns false if they already contain the text, from another attache in the chain.
func isCutOff(s *session, limit int, reply *wire.Message) bool {
	old := reply.Get("result", "instructions").Text()
	if old != "" {
		old += "\n\n"
	}
	return limit > 0 && !strings.Contains(old, s.text) && len(utf16.Encode([]rune(old+s.text))) > limit
}

// instruct appends the text to the instructions. An answer of the modern era becomes private, because
// the text is that of one principal, and clients may show others an answer that is public.
func instruct(call *middleware.Call, s *session, reply *wire.Message, modern bool) error {
	quoted, old := wire.Quote(s.text), reply.Get("result", "instructions")
	switch oldText := old.Text(); {
	case strings.Contains(oldText, s.text):
		skip(call, "an attache further in has added the same briefing")
		return nil
	case oldText != "": // the server's own text keeps its escapes
		quoted = slices.Concat(old.Raw[:len(old.Raw)-1], wire.Quote("\n\n" + s.text)[1:])
	}
	if err := reply.Set(quoted, "result", "instructions"); err != nil {
		return err
	}
	if call.Noted() {
		call.Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Edited, Path: []string{"result", "instructions"},
			Before: old.Raw, After: quoted, Source: s.source()})
	}
	return reply.Apply(middleware.LimitCaching(nil, call, "briefing", reply.Get("result"), true, modern)...)
}
