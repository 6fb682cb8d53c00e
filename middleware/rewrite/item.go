package rewrite

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// item takes a request or notification that may be about prompts or resources.
func (r *Rewrite) item(ctx context.Context, m *wire.Message, method string, view *sessionstate.Context, next middleware.Handler) error {
	call := middleware.CallFrom(ctx)
	var f refusal
	switch method {
	case "prompts/list":
		r.watchItems(call, view, "prompts", "name", r.itemHiddenBy)
	case "resources/list":
		r.watchItems(call, view, "resources", "uri", r.uriHiddenBy)
	case "resources/templates/list":
		r.watchItems(call, view, "resourceTemplates", "uriTemplate", r.uriHiddenBy)
	case "prompts/get":
		f = r.promptRefused(view, m.Params())
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		f = r.resourceRefused(view, m.Params())
	case "completion/complete":
		f = r.referenceRefused(view, m.Params())
	case "subscriptions/listen":
		f = r.unlisten(call, m, view)
	}
	if f.text == "" {
		return next(ctx, m)
	}
	call.Note(middleware.Note{Layer: layerName, Rule: r.key(f.rule), Act: middleware.Refused, Why: f.why})
	r.o.Log.InfoContext(ctx, "a request was refused", "method", method, "rule", r.key(f.rule), "why", f.why)
	return r.answer(ctx, m, wire.ErrorReply(m.ID(), wire.CodeInvalidParams, f.text))
}

// promptRefused says what the client is told of a prompt it may not get, if it
// may not: the error of the specification for one that is not there
// (server/prompts, "Error Handling").
func (r *Rewrite) promptRefused(view *sessionstate.Context, in wire.Value) refusal {
	name := in.Get("name")
	if twin(in, "name") || !name.IsString() {
		return notPlain("name", "a string")
	}
	if rule, err := r.itemHiddenBy(view, name.View()); rule != none {
		return refusal{rule, "Unknown prompt: " + cut(name.Text()), hidden("prompt", err)}
	}
	return refusal{}
}

// resourceRefused is promptRefused for a resource. Older revisions have an error
// code of their own, -32002, for one that is not there; 2026-07-28 has retired it.
func (r *Rewrite) resourceRefused(view *sessionstate.Context, in wire.Value) refusal {
	uri := in.Get("uri")
	if twin(in, "uri") || !uri.IsString() {
		return notPlain("uri", "a string")
	}
	if rule, err := r.uriHiddenBy(view, uri.View()); rule != none {
		return refusal{rule, "Resource not found: " + cut(uri.Text()), hidden("resource", err)}
	}
	return refusal{}
}

// referenceRefused is promptRefused for what a completion refers to, by a name or
// a URI.
func (r *Rewrite) referenceRefused(view *sessionstate.Context, params wire.Value) refusal {
	ref := params.Get("ref")
	if twin(params, "ref") || !ref.IsObject() {
		return notPlain("ref", "an object")
	}
	if ref.Get("uri").Exists() || twin(ref, "uri") {
		if f := r.resourceRefused(view, ref); f.text != "" {
			return f
		}
	}
	if ref.Get("name").Exists() || twin(ref, "name") {
		return r.promptRefused(view, ref)
	}
	return refusal{}
}

// unlisten takes hidden resources out of what the client wants to be told of.
func (r *Rewrite) unlisten(call *middleware.Call, m *wire.Message, view *sessionstate.Context) refusal {
	path := []string{"params", "notifications", "resourceSubscriptions"}
	if twin(m.Params(), path[1]) || twin(m.Get(path[:2]...), path[2]) {
		return notPlain(path[1], "an object")
	}
	list, by := m.Get(path...), none
	gone := wire.RemoveElements(list, func(uri wire.Value) bool {
		rule, _ := r.uriHiddenBy(view, uri.View())
		if rule != none {
			by = rule
		}
		return rule != none
	})
	if by == none {
		return refusal{}
	}
	before := list.Raw
	if err := m.Apply(gone...); err != nil {
		return refusal{by, "the rewrite rules could not be applied to this request", err.Error()}
	}
	if call.Noted() {
		r.note(call, by, "hide", path, before, m.Get(path...).Raw)
	}
	return refusal{}
}

// notPlain refuses a request in which a member that is held against the rules
// could be read in more than one way.
func notPlain(member, kind string) refusal {
	return refusal{none, "refused: " + member + " must be there once, as " + kind, member + " could be read in more than one way"}
}

// twin reports whether some reader takes another member of an object for the one
// that counts.
func twin(in wire.Value, member string) bool {
	for m := range in.Members() {
		if !m.Key.Equals(member) && wire.Alike([]byte(m.Key.View()), member) {
			return true
		}
	}
	return false
}

// watchItems has the reply to a list of prompts or resources edited. Entries are
// known by member.
func (r *Rewrite) watchItems(call *middleware.Call, view *sessionstate.Context, list, member string, by func(*sessionstate.Context, string) (int, error)) {
	call.MustHold()
	call.OnReply(func(ctx context.Context, reply *wire.Message) error {
		if reply.Kind() == wire.Error || reply.TooLarge() {
			return nil
		}
		call := middleware.CallFrom(ctx)
		result := reply.Get("result")
		entries := result.Get(list)
		switch {
		case !reply.Plain(), entries.Exists() && !entries.IsArray():
			r.withhold(call, reply, true, reply.Ambiguity().String())
			return nil
		case !entries.Exists():
			return nil
		}
		e := edits{r: r, call: call, view: view, list: list}
		e.remove(entries, func(entry wire.Value) int {
			name := entry.Get(member)
			if !name.IsString() {
				return r.nameless()
			}
			rule, _ := by(view, name.View())
			return rule
		})
		if r.privateItems {
			e.splices = append(e.splices, middleware.PrivateList(call, layerName, result, view != nil && view.Modern)...)
		}
		e.apply(reply, true)
		return nil
	})
}

// itemHiddenBy is hiddenBy for a prompt, by its name.
func (r *Rewrite) itemHiddenBy(view *sessionstate.Context, name string) (rule int, err error) {
	in := expression.Inputs{Context: view, Tool: name, Server: r.o.Server}
	return r.hiddenBy(&in, r.items)
}

// uriHiddenBy is hiddenBy for a resource, by its URI or the template of one.
func (r *Rewrite) uriHiddenBy(view *sessionstate.Context, uri string) (rule int, err error) {
	if rule, err := r.itemHiddenBy(view, uri); rule != none {
		return rule, err
	}
	if clean := cleaned(uri); clean != "" && clean != uri {
		return r.itemHiddenBy(view, clean)
	}
	return none, nil
}

// cleaned returns a URI as a server may read it: its scheme and host in lower
// case, escapes and dots in its path resolved, its query and fragment cut off, and
// what the URL parsers of browsers and Node do to it (URL Standard, "URL parsing"):
// blanks around it and line breaks and tabs in it are gone, a backslash is a slash,
// and this machine needs no name in a file's. It returns "" for what is none, or
// has no path.
func cleaned(uri string) string {
	uri = strings.TrimFunc(uri, func(c rune) bool { return c <= ' ' })
	uri = urlBytes.Replace(uri)
	if end := strings.IndexAny(uri, "?#"); end >= 0 {
		uri = uri[:end]
	}
	u, err := url.Parse(escaped(uri))
	if err != nil || u.Scheme == "" {
		return ""
	}
	host, file := strings.ToLower(u.Host), u.Scheme == "file"
	switch {
	case u.Opaque != "" && !file:
		return ""
	case u.Opaque != "":
		u.Path, err = url.PathUnescape("/" + u.Opaque)
	}
	if file && host == "localhost" {
		host = ""
	}
	at := u.Scheme + "://" + host
	if u.Path == "" || err != nil {
		return at
	}
	return at + path.Clean(u.Path)
}

// escaped returns a URI with escapes for what stands for itself and could be none
// of it: a percent sign that begins no escape, and control characters.
func escaped(uri string) string {
	var b strings.Builder
	for i := range len(uri) {
		c := uri[i]
		begins := c != '%' || len(uri) > i+2 && hexadecimal(uri[i+1]) && hexadecimal(uri[i+2])
		if c < ' ' || c == 0x7f || !begins {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

func hexadecimal(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

var urlBytes = strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/")
