// Package announce is the layer that learns how a client wants to be told that a list has
// changed. attache uses it to tell the client when its own rules change what is listed.
//
// A legacy client is told once the server has declared listChanged for the list and the client
// has sent notifications/initialized. A modern client is told in each subscription that asked
// for the list and that the server has acknowledged; the notification has the id of the
// subscription (revision 2026-07-28, basic/patterns/subscriptions). Any other client is not
// told: it would take the notification for a fault.
//
// The layer edits nothing and answers nothing.
package announce

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A List is a kind of list that a server has.
type List string

// The lists, by the name of their capability.
const (
	Tools     List = "tools"
	Prompts   List = "prompts"
	Resources List = "resources"
)

var all = []List{Tools, Prompts, Resources}

// subscriptionKey is the _meta key of a notification in a subscription. Its value is the id of
// the subscriptions/listen request.
const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

// maxSubscriptions bounds how many subscriptions of one client are kept.
const maxSubscriptions = 1000

// An Announce is the layer and what it has learnt on one connection. The zero value is ready.
type Announce struct {
	mu            sync.Mutex
	declared      []List // by the server's answer to initialize
	initialized   bool
	subscriptions []subscription
	prompts       listedNames
	resources     listedNames
}

type subscription struct {
	id    string // raw
	lists []List
}

// Layer returns the layer.
func (a *Announce) Layer() middleware.Layer {
	return middleware.Layer{Name: "announce", Wrap: a.wrap}
}

func (a *Announce) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.MethodIs("tools/call"): // the commonest, and none of those below
		case m.MethodIs("notifications/cancelled"):
			a.end(m.Get("params", "requestId").Raw)
		case m.From == wire.Server:
			if m.MethodIs("notifications/subscriptions/acknowledged") {
				a.begin(m)
			}
		case m.MethodIs("initialize"):
			a.restart()
			middleware.CallFrom(ctx).OnReply(a.declare)
		case m.MethodIs("prompts/list"):
			middleware.CallFrom(ctx).OnReply(a.show(&a.prompts, "prompts", "name"))
		case m.MethodIs("resources/list"):
			middleware.CallFrom(ctx).OnReply(a.show(&a.resources, "resources", "uri"))
		case m.MethodIs("resources/templates/list"):
			middleware.CallFrom(ctx).OnReply(a.show(&a.resources, "resourceTemplates", "uriTemplate"))
		case m.MethodIs("notifications/initialized"):
			a.ready()
		case m.MethodIs("subscriptions/listen"):
			middleware.CallFrom(ctx).OnReply(func(_ context.Context, reply *wire.Message) error {
				a.end(reply.ID())
				return nil
			})
		}
		return next(ctx, m)
	}
}

func (a *Announce) restart() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.declared, a.initialized = nil, false
}

func (a *Announce) ready() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.initialized = true
}

// declare reads the server's capabilities out of its answer to initialize.
func (a *Announce) declare(_ context.Context, reply *wire.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range all {
		if isTrue(reply.Get("result", "capabilities", string(l), "listChanged")) {
			a.declared = append(a.declared, l)
		}
	}
	return nil
}

// listedNames are the names or URIs in a list that the client got. One that a later list
// has no more stays: it may cost a notification too many, and never one too few.
type listedNames struct {
	names map[string]bool
	more  bool // some were not kept
}

const (
	maxShown     = 10_000 // names
	maxShownName = 1 << 10
)

// show returns the hook that keeps the names in a page of a list.
func (a *Announce) show(in *listedNames, member, key string) middleware.ReplyHook {
	return func(_ context.Context, reply *wire.Message) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if in.names == nil {
			in.names = map[string]bool{}
		}
		for entry := range reply.Get("result", member).Elements() {
			if name := entry.Get(key).Text(); len(name) > maxShownName || len(in.names) >= maxShown {
				in.more = true
			} else {
				in.names[name] = true
			}
		}
		in.more = in.more || reply.TooLarge()
		return nil
	}
}

// Shows reports whether the client got a list of prompts or resources with a name or
// URI that satisfies match, or may have.
func (a *Announce) Shows(l List, match func(name string) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	in := &a.prompts
	if l == Resources {
		in = &a.resources
	}
	for name := range in.names {
		if match(name) {
			return true
		}
	}
	return in.more
}

// begin reads what a subscription is granted.
func (a *Announce) begin(m *wire.Message) {
	id := m.Get("params", "_meta", subscriptionKey)
	s := subscription{id: string(id.Raw)}
	for _, l := range all {
		if isTrue(m.Get("params", "notifications", string(l)+"ListChanged")) {
			s.lists = append(s.lists, l)
		}
	}
	if !id.Exists() || s.lists == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.subscriptions) < maxSubscriptions {
		a.subscriptions = append(a.subscriptions, s)
	}
}

func (a *Announce) end(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subscriptions = slices.DeleteFunc(a.subscriptions, func(s subscription) bool { return s.id == string(id) })
}

func isTrue(v wire.Value) bool { return bytes.Equal(v.Raw, []byte("true")) }

// Changed returns the notifications that tell the client of changed lists, none if
// it does not want to know. They are the caller's to send.
func (a *Announce) Changed(lists ...List) []*wire.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*wire.Message
	for _, l := range lists {
		method := "notifications/" + string(l) + "/list_changed"
		if a.initialized && slices.Contains(a.declared, l) {
			out = append(out, wire.NewNotification(wire.Server, method, nil))
		}
		for _, s := range a.subscriptions {
			if slices.Contains(s.lists, l) {
				out = append(out, wire.NewNotification(wire.Server, method, tag(s.id)))
			}
		}
	}
	return out
}

// tag returns params that name a subscription.
func tag(id string) []byte {
	params := wire.AppendQuote([]byte(`{"_meta":{`), subscriptionKey)
	return append(append(append(params, ':'), id...), "}}"...)
}
