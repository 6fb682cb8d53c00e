package access

import (
	"bytes"
	"context"
	"errors"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// ListLayer returns the layer that removes from tools/list the tools that may not be
// called. It must run in front of the layers that edit calls, because those have to see
// every tool.
func (c *Conn) ListLayer() middleware.Layer {
	return middleware.Layer{Name: "access-list", Wrap: c.wrapLists, Enforces: true}
}

func (c *Conn) wrapLists(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From == wire.Client && m.MethodIs("tools/list") && c.filters {
			call := middleware.CallFrom(ctx)
			call.MustHold()
			call.OnReply(c.filterReply(sessionstate.ContextOf(call)))
		}
		return next(ctx, m)
	}
}

// filterReply returns the hook that filters one page of tools/list.
func (c *Conn) filterReply(view *sessionstate.Context) middleware.ReplyHook {
	return func(ctx context.Context, reply *wire.Message) error {
		if reply.Kind() == wire.Error {
			return nil
		}
		call := middleware.CallFrom(ctx)
		result := reply.Get("result")
		list := result.Get("tools")
		switch {
		case !reply.Plain(), list.Exists() && !list.IsArray():
			c.withhold(call, reply)
			return nil
		case !list.Exists():
			return nil
		}
		edits := middleware.LimitCaching(c.filter(call, view, list), call, layerName, result, c.private, view != nil && view.Modern)
		if err := reply.Apply(edits...); err != nil {
			c.withhold(call, reply)
		}
		return nil
	}
}

func (c *Conn) filter(call *middleware.Call, view *sessionstate.Context, list wire.Value) []wire.Splice {
	i, hidden := -1, 0
	edits := wire.RemoveElements(list, func(entry wire.Value) bool {
		i++
		d := c.judgeEntry(view, entry)
		if !d.allowed {
			c.noteHidden(call, i, entry, &d)
			hidden++
		}
		return !d.allowed
	})
	if hidden > 0 {
		c.log.DebugContext(call.LogContext(), "tools were left out of the list", "count", hidden)
	}
	return edits
}

// judgeEntry decides whether an entry stays in the list. An entry without a name is
// removed, because it can neither be called nor judged.
func (c *Conn) judgeEntry(view *sessionstate.Context, entry wire.Value) decision {
	name := entry.Get("name")
	if !name.IsString() {
		return undecided(byDefaultRule, errors.New("the tool has no name"))
	}
	in := expression.Inputs{Context: view, Tool: name.View(), Annotations: middleware.AnnotationsOf(entry), Server: c.o.Server}
	return c.decide(c.all, request{inputs: &in, listing: true}, nil)
}

// withhold replaces a list that cannot be filtered by an error. The relay does the same
// with a list over the hold limit; see [middleware.Call.MustHold].
func (c *Conn) withhold(call *middleware.Call, reply *wire.Message) {
	call.Note(middleware.Note{Layer: layerName, Act: middleware.Refused, Why: "the list of tools could not be filtered"})
	c.log.WarnContext(call.LogContext(), "a list of tools could not be filtered and was answered with an error", "why", reply.Ambiguity().String())
	*reply = *wire.ErrorReply(bytes.Clone(reply.ID()), wire.CodeInternalError, "the server's list of tools could not be read, so that the access rules could not be applied to it")
}
