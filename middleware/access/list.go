package access

import (
	"bytes"
	"context"
	"strings"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

const (
	// maxLearnt is of how many tools the annotations are kept.
	maxLearnt = 10_000
	// maxAnnotations is how long annotations may be; longer ones are none.
	maxAnnotations = 4 << 10
)

func (a *Access) learnt(tool string) []byte {
	if !a.learns {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.annotations[tool]
}

func (a *Access) learn(tool string, annotations []byte) {
	if len(annotations) > maxAnnotations {
		annotations = nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.annotations[tool]; !known && len(a.annotations) >= maxLearnt {
		clear(a.annotations)
	}
	a.annotations[strings.Clone(tool)] = bytes.Clone(annotations)
}

// forget drops what is known of tools: the server says that they changed.
func (a *Access) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.annotations)
}

// listed returns the hook that learns from a page of tools/list and takes out of
// it what the session may not call.
func (a *Access) listed(view *sessionstate.Context) middleware.ReplyHook {
	return func(_ context.Context, reply *wire.Message) error {
		if reply.Kind() == wire.Error {
			return nil
		}
		result := reply.Get("result")
		list := result.Get("tools")
		switch {
		case !reply.Plain(), list.Exists() && !list.IsArray():
			a.withhold(reply)
			return nil
		case !list.Exists():
			return nil
		}
		hidden := 0
		edits := wire.RemoveElements(list, func(entry wire.Value) bool {
			gone := a.hides(view, entry)
			if gone {
				hidden++
			}
			return gone
		})
		if a.private && !a.o.DryRun {
			edits = append(edits, private(result, view)...)
		}
		if hidden > 0 {
			a.o.Log.Debug("tools were left out of the list", "count", hidden)
		}
		if err := reply.Apply(edits...); err != nil {
			a.withhold(reply)
		}
		return nil
	}
}

// hides learns from an entry of the list, and reports whether it is left out. An
// entry without a name cannot be called, nor judged.
func (a *Access) hides(view *sessionstate.Context, entry wire.Value) bool {
	name, annotations := entry.Get("name"), entry.Get("annotations")
	if !annotations.IsObject() {
		annotations = wire.Value{}
	}
	if a.learns && name.IsString() {
		a.learn(name.View(), annotations.Raw)
	}
	if !a.filters || a.o.DryRun {
		return false
	}
	if !name.IsString() {
		return true
	}
	in := expression.Inputs{Context: view, Tool: name.View(), Annotations: annotations.Raw, Server: a.o.Server}
	if len(in.Annotations) > maxAnnotations {
		in.Annotations = nil
	}
	return !Decide(&a.o, Request{Inputs: &in, LookupErr: a.lookupErr(view), Listing: true}).Allowed
}

// private returns the edit that keeps a list from those it was not made for
// (specification, server/utilities/caching: cacheScope).
func private(result wire.Value, view *sessionstate.Context) []wire.Splice {
	scope := result.Get("cacheScope")
	switch {
	case scope.Equals("private"), !scope.Exists() && (view == nil || !view.Modern):
		return nil
	case scope.Exists():
		return []wire.Splice{{Off: scope.Off, Len: len(scope.Raw), Text: []byte(`"private"`)}}
	}
	return []wire.Splice{wire.AddMember(result, "cacheScope", []byte(`"private"`))}
}

// withhold answers with an error in place of a list that cannot be filtered. One
// over the hold limit is withheld by the relay; see [middleware.Call.MustHold].
func (a *Access) withhold(reply *wire.Message) {
	if !a.filters {
		return
	}
	a.o.Log.Warn("a list of tools could not be filtered and was answered with an error", "why", reply.Ambiguity().String())
	*reply = *wire.ErrorReply(bytes.Clone(reply.ID()), wire.CodeInternalError, "the server's list of tools could not be read, so that the access rules could not be applied to it")
}
