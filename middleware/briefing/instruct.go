package briefing

import (
	"context"
	"errors"
	"strings"
	"unicode/utf16"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// expectInstructions adds the hook that puts the briefing into the answer to initialize or
// server/discover.
func (c *Conn) expectInstructions(call *middleware.Call, view *sessionstate.Context, how channel) {
	s := c.open(view, "")
	if s == nil {
		return
	}
	call.OnReply(func(_ context.Context, reply *wire.Message) error {
		if reply.Kind() != wire.Result || !reply.Plain() || !reply.Get("result").IsObject() {
			return nil
		}
		if s.isReady() {
			return c.takeInstructions(call, view, s, how, reply)
		}
		call.Suspend(reply, s.ready, c.shared.o.Wait, func(_ context.Context, reply *wire.Message) error {
			if s.isReady() {
				return c.takeInstructions(call, view, s, how, reply)
			}
			c.warnings.once("the instructions went without the briefing, as the policy source is slow (briefing.wait, policy.timeout)", nil)
			return nil
		})
		return nil
	})
}

// takeInstructions appends the briefing to the instructions in reply, if it is their turn.
func (c *Conn) takeInstructions(call *middleware.Call, view *sessionstate.Context, s *session, how channel, reply *wire.Message) error {
	if s.text == "" {
		fail(call, s.why)
		return nil
	}
	if how == spends && c.isCutOff(s, reply) {
		if c.responds() {
			skip(call, "the client would cut it off: it shows the beginning of long instructions alone")
			return nil
		}
		c.warnings.once("the client may cut the briefing off: it shows the beginning of long instructions alone; name response in briefing.channels", nil)
	}
	suffix := ""
	if how == beside {
		suffix = "\ninstructions"
	}
	t := c.turnOf(view, s, suffix)
	return t.take(call, reply, func(reply *wire.Message, _ int, why string) error {
		if why != "" {
			skip(call, why)
			return nil
		}
		outcome, err := sessionstate.Seen, instruct(call, s, reply)
		if err != nil {
			outcome = sessionstate.Open
		}
		if how == spends {
			c.noteOutcome(view.Session.Value, s, outcome)
		}
		return errors.Join(err, t.settle(call, reply, outcome))
	})
}

// isCutOff reports whether the client would cut off the text if it followed the server's own
// instructions. If they already have the text, from another attache in a chain, it is not cut off.
func (c *Conn) isCutOff(s *session, reply *wire.Message) bool {
	limit, said := c.o.Results.MaxInstructions(), reply.Get("result", "instructions").Text()
	if said != "" {
		said += "\n\n"
	}
	return limit > 0 && !strings.Contains(said, s.text) && len(utf16.Encode([]rune(said+s.text))) > limit
}

// instruct appends the text to the instructions.
func instruct(call *middleware.Call, s *session, reply *wire.Message) error {
	text, old := s.text, reply.Get("result", "instructions")
	switch said := old.Text(); {
	case strings.Contains(said, text):
		skip(call, "an attache further in has added the same briefing")
		return nil
	case said != "":
		text = said + "\n\n" + text
	}
	quoted := wire.Quote(text)
	if err := reply.Set(quoted, "result", "instructions"); err != nil {
		return err
	}
	if call.Noted() {
		call.Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Edited, Path: []string{"result", "instructions"},
			Before: old.Raw, After: quoted, Source: s.source()})
	}
	return nil
}
