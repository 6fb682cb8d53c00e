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

// listed returns the hook that learns from a page of tools/list and takes out of
// it what the session may not call.
func (a *Access) listed(view *sessionstate.Context) middleware.ReplyHook {
	return func(ctx context.Context, reply *wire.Message) error {
		if reply.Kind() == wire.Error {
			return nil
		}
		call := middleware.CallFrom(ctx)
		result := reply.Get("result")
		list := result.Get("tools")
		switch {
		case !reply.Plain(), list.Exists() && !list.IsArray():
			a.withhold(call, reply)
			return nil
		case !list.Exists():
			return nil
		}
		edits := a.filter(call, view, list)
		if a.private {
			edits = append(edits, middleware.PrivateList(call, layerName, result, view != nil && view.Modern)...)
		}
		if err := reply.Apply(edits...); err != nil {
			a.withhold(call, reply)
		}
		return nil
	}
}

// filter learns from a list, and returns the edits that take out of it what the
// session may not call.
func (a *Access) filter(call *middleware.Call, view *sessionstate.Context, list wire.Value) []wire.Splice {
	i, hidden := -1, 0
	edits := wire.RemoveElements(list, func(entry wire.Value) bool {
		i++
		d := a.listing(view, entry)
		if !d.Allowed {
			a.noteHidden(call, i, entry, &d)
			hidden++
		}
		return !d.Allowed
	})
	if hidden > 0 {
		a.o.Log.DebugContext(call.LogContext(), "tools were left out of the list", "count", hidden)
	}
	return edits
}

var errNoName = errors.New("the tool has no name")

// listing learns from an entry of the list, and decides whether it stays there.
// An entry without a name cannot be called, nor judged.
func (a *Access) listing(view *sessionstate.Context, entry wire.Value) Decision {
	name, annotations := entry.Get("name"), entry.Get("annotations")
	if !annotations.IsObject() {
		annotations = wire.Value{}
	}
	if a.learns && name.IsString() {
		a.memory.learn(name.View(), annotations.Raw)
	}
	switch {
	case !a.filters:
		return Decision{Allowed: true}
	case !name.IsString():
		return undecided(none, errNoName)
	}
	in := expression.Inputs{Context: view, Tool: name.View(), Annotations: annotations.Raw, Server: a.o.Server}
	if len(in.Annotations) > maxAnnotations {
		in.Annotations = nil
	}
	return decide(&a.o, a.rules.All, Request{Inputs: &in, LookupErr: a.lookupErr(view), Listing: true}, nil)
}

// withhold answers with an error in place of a list that cannot be filtered. One
// over the hold limit is withheld by the relay; see [middleware.Call.MustHold].
func (a *Access) withhold(call *middleware.Call, reply *wire.Message) {
	if !a.filters {
		return
	}
	call.Note(middleware.Note{Layer: layerName, Act: middleware.Refused, Why: "the list of tools could not be filtered"})
	a.o.Log.WarnContext(call.LogContext(), "a list of tools could not be filtered and was answered with an error", "why", reply.Ambiguity().String())
	*reply = *wire.ErrorReply(bytes.Clone(reply.ID()), wire.CodeInternalError, "the server's list of tools could not be read, so that the access rules could not be applied to it")
}
