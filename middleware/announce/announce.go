// Package announce is the layer that observes how a client is to be notified of changed lists.
// attache uses it to notify the client when attache's own rules change a list.
//
// A legacy client is notified if the server has declared listChanged for the list and the client
// has sent notifications/initialized. A modern client is notified in each subscription that the
// server has acknowledged for the list; the notification has the id of the subscription (revision
// 2026-07-28, basic/patterns/subscriptions). Other clients are not notified, because they would
// treat the notification as an error.
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

// The lists, with the names of their capabilities.
const (
	Tools     List = "tools"
	Prompts   List = "prompts"
	Resources List = "resources"
)

var allLists = []List{Tools, Prompts, Resources}

// subscriptionKey is the _meta key of a notification in a subscription. Its value is the id of
// the subscriptions/listen request.
const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

// maxSubscriptions bounds the subscriptions of a connection. In a front, all clients of a user may share one.
const maxSubscriptions = 1000

// An Announce is the layer of one connection and its state. The zero value is ready to use.
type Announce struct {
	mu            sync.Mutex
	declared      []List // in the server's answer to initialize
	initialized   bool
	subscriptions []subscription
	prompts       listedNames
	resources     listedNames
}

// A subscription is a subscriptions/listen request that is not over.
type subscription struct {
	id    string // raw JSON
	lists []List // that the server has acknowledged
}

// Layer returns the layer.
func (a *Announce) Layer() middleware.Layer {
	return middleware.Layer{Name: "announce", Wrap: a.wrap}
}

func (a *Announce) wrap(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.MethodIs("tools/call"): // the most frequent method needs no further comparison
		case m.MethodIs("notifications/cancelled"): // from the server too: it ends a subscription so
			a.end(m.Get("params", "requestId").Raw)
		case m.From == wire.Server:
			if m.MethodIs("notifications/subscriptions/acknowledged") {
				a.acknowledge(m)
			}
		case m.MethodIs("initialize"):
			a.restart()
			middleware.CallFrom(ctx).OnReply(a.declare)
		case m.MethodIs("prompts/list"):
			middleware.CallFrom(ctx).OnReply(a.keepNames(&a.prompts, "prompts", "name"))
		case m.MethodIs("resources/list"):
			middleware.CallFrom(ctx).OnReply(a.keepNames(&a.resources, "resources", "uri"))
		case m.MethodIs("resources/templates/list"):
			middleware.CallFrom(ctx).OnReply(a.keepNames(&a.resources, "resourceTemplates", "uriTemplate"))
		case m.MethodIs("notifications/initialized"):
			a.ready()
		case m.MethodIs("subscriptions/listen") && m.Kind() == wire.Request:
			a.begin(m.ID())
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

// declare reads the server's capabilities in its answer to initialize.
func (a *Announce) declare(_ context.Context, reply *wire.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range allLists {
		if isTrue(reply.Get("result", "capabilities", string(l), "listChanged")) {
			a.declared = append(a.declared, l)
		}
	}
	return nil
}

// listedNames holds the names or URIs that the client has received in a list. It keeps names
// that a later list no longer contains, which may cause a needless notification.
type listedNames struct {
	names map[string]bool
	more  bool // whether names were left out
}

const (
	maxNames      = 10_000
	maxNameLength = 1 << 10
)

func (a *Announce) keepNames(in *listedNames, member, key string) middleware.ReplyHook {
	return func(_ context.Context, reply *wire.Message) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if in.names == nil {
			in.names = map[string]bool{}
		}
		for entry := range reply.Get("result", member).Elements() {
			if name := entry.Get(key).Text(); len(name) > maxNameLength || len(in.names) >= maxNames {
				in.more = true
			} else {
				in.names[name] = true
			}
		}
		in.more = in.more || reply.TooLarge()
		return nil
	}
}

// Shows reports whether the client has received, or may have received, a list of prompts or
// resources with a name or URI that satisfies match.
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

func (a *Announce) begin(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.subscriptions) < maxSubscriptions && len(id) <= maxNameLength {
		a.subscriptions = append(a.subscriptions, subscription{id: string(id)})
	}
}

// acknowledge records for which lists the server has acknowledged a subscription. The client may have
// cancelled that before.
func (a *Announce) acknowledge(m *wire.Message) {
	id := string(m.Get("params", "_meta", subscriptionKey).Raw)
	var lists []List
	for _, l := range allLists {
		if isTrue(m.Get("params", "notifications", string(l)+"ListChanged")) {
			lists = append(lists, l)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.subscriptions {
		if a.subscriptions[i].id == id {
			a.subscriptions[i].lists = lists
		}
	}
}

func (a *Announce) end(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subscriptions = slices.DeleteFunc(a.subscriptions, func(s subscription) bool { return s.id == string(id) })
}

func isTrue(v wire.Value) bool { return bytes.Equal(v.Raw, []byte("true")) }

// Changed returns the notifications of changed lists that the client expects. The caller must
// send them.
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

func tag(id string) []byte {
	params := wire.AppendQuote([]byte(`{"_meta":{`), subscriptionKey)
	return append(append(append(params, ':'), id...), "}}"...)
}
