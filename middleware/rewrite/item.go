package rewrite

import (
	"context"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// item handles a request or notification that may be about prompts or resources.
func (c *Conn) item(ctx context.Context, m *wire.Message, method string, view *sessionstate.Context, next middleware.Handler) error {
	call := middleware.CallFrom(ctx)
	var f refusal
	switch method {
	case "prompts/list":
		c.watchItems(call, view, "prompts", "name", c.promptHiddenBy)
	case "resources/list":
		c.watchResources(call, view, "resources", "uri")
	case "resources/templates/list":
		c.watchResources(call, view, "resourceTemplates", "uriTemplate")
	case "prompts/get":
		f = c.promptRefusal(view, m.Params())
	case "skills/list": // the extension Skills, whose entries name resources
		c.watchResources(call, view, "skills", "uri")
	case "resources/read", "resources/subscribe", "resources/unsubscribe", "skills/get":
		f = c.resourceRefusal(view, m.Params(), false)
	case "resources/directory/read":
		if f = c.resourceRefusal(view, m.Params(), false); f.text == "" {
			c.watchResources(call, view, "resources", "uri")
		}
	case "completion/complete":
		f = c.referenceRefusal(view, m.Params())
	case "subscriptions/listen":
		f = c.filterSubscriptions(call, m, view)
	}
	if f.text == "" {
		return next(ctx, m)
	}
	call.Note(middleware.Note{Layer: layerName, Rule: c.key(f.rule), Act: middleware.Refused, Why: f.why})
	c.log.InfoContext(ctx, "a request was refused", "method", method, "rule", c.key(f.rule), "why", f.why)
	return c.answer(ctx, m, wire.ErrorReply(m.ID(), wire.CodeInvalidParams, f.text))
}

// find returns a member of an object. kind is its type: "a string", "an object" or "an array". If
// there is no such member, find returns no value, and the server handles that. If readers of the
// request could find different members, it returns a refusal.
func find(in wire.Value, member, kind string) (wire.Value, refusal) {
	v := in.Get(member)
	fits := kind == "a string" && v.IsString() || kind == "an object" && v.IsObject() || kind == "an array" && v.IsArray()
	// A reader that converts types or ignores letter case could find another value, so a hidden
	// item could be asked for past the rules.
	if v.Exists() && !fits || in.Exists() && !in.IsObject() || in.HasTwin(member) {
		return v, refusal{none, "refused: " + member + " must appear exactly once, as " + kind, member + " could be read in more than one way"}
	}
	return v, refusal{}
}

// promptRefusal returns the refusal of a request for a hidden prompt. It has the error of the
// specification for an unknown prompt (server/prompts, "Error Handling").
func (c *Conn) promptRefusal(view *sessionstate.Context, in wire.Value) refusal {
	name, f := find(in, "name", "a string")
	if !name.Exists() || f.text != "" {
		return f
	}
	if rule, err := c.promptHiddenBy(view, name.View()); rule != none {
		return refusal{rule, "Unknown prompt: " + middleware.Clip(name.Text()), hiddenText("prompt", err)}
	}
	return refusal{}
}

// resourceRefusal is like promptRefusal for a resource or, with template, for a resource
// template. Older revisions have their own error code for an unknown resource, -32002, which
// 2026-07-28 has retired.
func (c *Conn) resourceRefusal(view *sessionstate.Context, in wire.Value, template bool) refusal {
	if !c.hidesURIs() {
		return refusal{}
	}
	uri, f := find(in, "uri", "a string")
	if !uri.Exists() || f.text != "" {
		return f
	}
	text := uri.Text()
	if rule, err := c.uriHiddenBy(view, text); rule != none {
		return refusal{rule, "Resource not found: " + middleware.Clip(text), hiddenText("resource", err)}
	}
	if template {
		// No URI has the braces of a template. What is between them is a name.
		text = strings.NewReplacer("{", "", "}", "").Replace(text)
	}
	// After the rules for the URI itself, because their answer is that of a server without the resource.
	if rule, why := c.irregularBy(view, text); rule != none {
		return refusal{rule, "refused: the URI is not in normal form: " + why, "the URI is not in normal form and may refer to a hidden resource: " + why}
	}
	return refusal{}
}

// referenceRefusal is like promptRefusal for the ref of a completion, which has the name of a
// prompt or the URI of a resource template.
func (c *Conn) referenceRefusal(view *sessionstate.Context, params wire.Value) refusal {
	ref, f := find(params, "ref", "an object")
	if !ref.Exists() || f.text != "" {
		return f
	}
	if f := c.resourceRefusal(view, ref, true); f.text != "" {
		return f
	}
	return c.promptRefusal(view, ref)
}

// filterSubscriptions removes hidden resources from a request for subscriptions.
func (c *Conn) filterSubscriptions(call *middleware.Call, m *wire.Message, view *sessionstate.Context) refusal {
	if !c.hidesURIs() {
		return refusal{}
	}
	path := []string{"params", "notifications", "resourceSubscriptions"}
	list, by := m.Params(), none
	for i, kind := range []string{"an object", "an array"} {
		var f refusal
		if list, f = find(list, path[i+1], kind); !list.Exists() || f.text != "" {
			return f
		}
	}
	// Only what is hidden goes: the rest of the subscription must work, and a refusal would say what is hidden.
	gone := wire.RemoveElements(list, func(uri wire.Value) bool {
		// With an error, uriHiddenBy returns a rule too: the error hides.
		rule, _ := c.uriHiddenBy(view, uri.View())
		if rule == none {
			rule, _ = c.irregularBy(view, uri.View())
		}
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
		c.note(call, by, "hide", path, before, m.Get(path...).Raw)
	}
	return refusal{}
}

// watchResources adds the hook that edits a list of resources or templates and remembers its URIs
// that are not in normal form.
func (c *Conn) watchResources(call *middleware.Call, view *sessionstate.Context, list, member string) {
	if !c.hidesURIs() {
		return
	}
	c.watchItems(call, view, list, member, func(view *sessionstate.Context, uri string) (int, error) {
		rule, err := c.uriHiddenBy(view, uri)
		// The server itself writes it so. It is shown, so the client must be able to ask for it.
		if rule == none && irregularity(uri) != "" {
			c.addListed(uri)
		}
		return rule, err
	})
}

// watchItems adds the hook that edits a list of prompts or resources. member identifies an
// entry.
func (c *Conn) watchItems(call *middleware.Call, view *sessionstate.Context, list, member string, by func(*sessionstate.Context, string) (int, error)) {
	c.watch(call, listEdit{view: view, list: list, binds: true, private: c.privateItems, hides: func(_ *listEdit, entry wire.Value) int {
		name := entry.Get(member)
		if !name.IsString() {
			return c.nameless()
		}
		rule, _ := by(view, name.View())
		return rule
	}})
}

// promptHiddenBy returns the index of the rule that hides a prompt, or none. err is the reason if
// the rule could not be evaluated.
func (c *Conn) promptHiddenBy(view *sessionstate.Context, name string) (rule int, err error) {
	// The hooks of lists run in the server's direction, so they must not use Conn.in.
	in := expression.Inputs{Context: view, Tool: name, Server: c.server}
	return c.hiddenBy(&in, c.items)
}

// uriHiddenBy is like promptHiddenBy for a resource, by its URI or its template.
func (c *Conn) uriHiddenBy(view *sessionstate.Context, uri string) (rule int, err error) {
	in := expression.Inputs{Context: view, Tool: uri, Server: c.server}
	variants := readings(uri) // once for all rules
	return c.hiddenIf(&in, c.uris, func(r *Rule) (outcome, error) {
		// The patterns are compared with the URI as it is written, and their canonical forms with
		// each reading of it.
		named, err := glob.Match(r.Tools, uri)
		for i := 0; i < len(variants) && !named && err == nil; i++ {
			named, err = glob.Match(r.uris, variants[i])
		}
		return r.judgeNamed(&in, named, err)
	})
}

// irregularBy returns the index of a rule that may hide resources of the scheme of a URI that is
// not in normal form, and what is wrong with the URI; none if the URI may pass.
func (c *Conn) irregularBy(view *sessionstate.Context, uri string) (rule int, why string) {
	// A URI that the server has listed means the listed resource, and uriHiddenBy has judged its readings.
	why = irregularity(uri)
	if why == "" || c.listed.has(uri) {
		return none, ""
	}
	in := expression.Inputs{Context: view, Tool: uri, Server: c.server}
	scheme := schemeOf(uri)
	rule, _ = c.hiddenIf(&in, c.uris, func(r *Rule) (outcome, error) { return r.judgeNamed(&in, mayMatchScheme(r.uris, scheme), nil) })
	return rule, why
}

// ListedURIs holds the URIs not in normal form that the server of a connection listed while a rule hid
// resources. The zero value is empty.
type ListedURIs struct {
	mu   sync.Mutex
	uris map[string]bool
	size int // the bytes in uris
}

// maxListed bounds the bytes of the URIs in a ListedURIs, because the server chooses them. What does not fit is
// refused.
const maxListed = 1 << 20

// add reports whether there was room for the URI.
func (l *ListedURIs) add(uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uris[uri] {
		return true
	}
	if l.size+len(uri) > maxListed {
		return false
	}
	if l.uris == nil {
		l.uris = map[string]bool{}
	}
	// uri may be a view of a frame.
	l.uris[strings.Clone(uri)] = true
	l.size += len(uri)
	return true
}

func (l *ListedURIs) has(uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uris[uri]
}

// addListed remembers a URI that the server listed and that is not in normal form.
func (c *Conn) addListed(uri string) {
	if !c.listed.add(uri) && c.once("listed") {
		c.log.Warn("the server lists too many URIs that are not in normal form; some will be refused, as rules hide resources", "uri", middleware.Clip(uri))
	}
}
