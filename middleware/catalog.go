package middleware

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Tool is what one entry of tools/list says, as the server sent it. It is never
// changed: a tool that is listed again is a new Tool, unless nothing of it has changed.
type Tool struct {
	Name string
	// InputSchema, OutputSchema, Annotations and Meta are raw JSON, nil for a member
	// that is not there. Annotations over 4 KiB, or that are no object, are nil.
	InputSchema, OutputSchema, Annotations, Meta []byte
	// Passed reports whether this entry was in a list that the client asked for. Of a
	// tool that attache asked for itself, the client has not seen what a layer makes
	// of the entry.
	Passed bool

	list int // the list that had it last
}

// A Catalog holds what tools/list returned on one connection: the tools of the last whole list
// and of the pages since. It learns from lists that pass, and asks the server itself when a
// layer needs a list earlier than the client. When the server says that its tools have
// changed, the catalogue becomes empty.
//
// A Catalog is the innermost layer, so it reads a list before other layers edit it, and its
// hooks run first. It edits nothing. It is kept when rules are reloaded. The zero value is
// ready.
type Catalog struct {
	mu          sync.Mutex
	tools       map[string]*Tool
	size        int    // bytes in tools
	whole       bool   // every tool of the server's is in tools
	list        int    // counts the lists
	next        []byte // the cursor of the page that continues list; nil if none does
	cut         bool   // a tool of list was left out, as there was no room
	initialized bool   // a legacy client has said that it is
	ask         *listing
}

// Bounds of a catalogue. Tools beyond them are not kept.
const (
	maxTools       = 10_000
	maxToolBytes   = 4 << 20
	maxAnnotations = 4 << 10
	maxPages       = 100 // of a list that attache asks for
)

// ListTimeout bounds how long attache's own question for the server's tools takes.
const ListTimeout = 2 * time.Second

// Tool returns the tool of that name, nil if none is known. known reports whether
// the catalogue can tell: it holds the tool, or a whole list that does not have it.
func (c *Catalog) Tool(name string) (t *Tool, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t = c.tools[name]
	return t, t != nil || c.whole
}

// Layer returns the catalogue as a layer. It stands innermost.
func (c *Catalog) Layer() Layer { return Layer{Name: "catalog", Wrap: c.wrap} }

func (c *Catalog) wrap(next Handler) Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From == wire.Server:
			if m.MethodIs("notifications/tools/list_changed") {
				c.Forget()
			}
		case m.MethodIs("tools/list"):
			at := cursor(m.Get("params", "cursor"))
			CallFrom(ctx).OnReply(func(_ context.Context, reply *wire.Message) error {
				c.learn(at, reply, true)
				return nil
			})
		case m.MethodIs("notifications/initialized"):
			c.mu.Lock()
			c.initialized = true
			c.mu.Unlock()
		}
		return next(ctx, m)
	}
}

// cursor returns the raw cursor of a page. An empty one and null are none.
func cursor(v wire.Value) []byte {
	if !v.IsString() || v.Equals("") {
		return nil
	}
	return bytes.Clone(v.Raw)
}

// learn takes the page of the server's tools that was asked for with cursor at, nil
// for the first, and returns the cursor of the next page. A list is whole when its
// pages came in order from the first to the last; any other page only adds its tools.
func (c *Catalog) learn(at []byte, reply *wire.Message, passed bool) (next []byte) {
	list := reply.Get("result", "tools")
	if !list.IsArray() || !reply.Plain() {
		return nil
	}
	next = cursor(reply.Get("result", "nextCursor"))
	c.mu.Lock()
	defer c.mu.Unlock()
	inOrder := at == nil || bytes.Equal(at, c.next)
	if at == nil {
		c.list++
		c.cut = false
	}
	gjson.ParseBytes(list.Raw).ForEach(func(_, entry gjson.Result) bool {
		c.add(entry, passed)
		return true
	})
	if !inOrder {
		return next
	}
	c.next = next
	if next == nil {
		c.whole = !c.cut
		c.drop(func(t *Tool) bool { return t.list != c.list })
	}
	return next
}

// add keeps one entry of a list.
func (c *Catalog) add(entry gjson.Result, passed bool) {
	name := entry.Get("name")
	if name.Type != gjson.String {
		return
	}
	annotations := entry.Get("annotations")
	if !annotations.IsObject() || len(annotations.Raw) > maxAnnotations {
		annotations.Raw = ""
	}
	raw := [...]string{entry.Get("inputSchema").Raw, entry.Get("outputSchema").Raw, annotations.Raw, entry.Get("_meta").Raw}
	old := c.tools[name.Str]
	same := old != nil && old.says(raw)
	if same && (old.Passed || !passed) {
		old.list = c.list
		return
	}
	t := &Tool{Name: strings.Clone(name.Str), Passed: passed, list: c.list}
	text := []byte(strings.Join(raw[:], ""))
	for i, member := range []*[]byte{&t.InputSchema, &t.OutputSchema, &t.Annotations, &t.Meta} {
		if n := len(raw[i]); n > 0 {
			*member, text = slices.Clip(text[:n]), text[n:]
		}
	}
	if old != nil {
		c.size -= old.size()
	}
	if c.size+t.size() > maxToolBytes || old == nil && len(c.tools) >= maxTools {
		delete(c.tools, name.Str)
		c.cut, c.whole = true, false
		return
	}
	if c.tools == nil {
		c.tools = map[string]*Tool{}
	}
	c.tools[t.Name] = t
	c.size += t.size()
}

// says reports whether t has just these members.
func (t *Tool) says(raw [4]string) bool {
	return string(t.InputSchema) == raw[0] && string(t.OutputSchema) == raw[1] &&
		string(t.Annotations) == raw[2] && string(t.Meta) == raw[3]
}

func (t *Tool) size() int {
	return len(t.Name) + len(t.InputSchema) + len(t.OutputSchema) + len(t.Annotations) + len(t.Meta)
}

// drop removes the tools that gone returns true for.
func (c *Catalog) drop(gone func(*Tool) bool) {
	for name, t := range c.tools {
		if gone(t) {
			c.size -= t.size()
			delete(c.tools, name)
		}
	}
}

// Forget empties the catalogue. A question that is under way begins again, as servers
// announce changes while they start.
func (c *Catalog) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools, c.size, c.whole, c.next = nil, 0, false, nil
	if c.ask != nil && c.ask.over() {
		c.ask = nil
	} else if c.ask != nil {
		c.ask.stale = true
	}
}

// A listing is attache's own walk through the pages of tools/list.
type listing struct {
	ready chan struct{} // closed when the walk is over, however it ended
	call  *Call
	meta  []byte // the _meta of its requests, nil for none
	until time.Time
	pages int
	stale bool // the tools changed meanwhile; guarded by Catalog.mu
}

func (l *listing) over() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// Ask asks the server for its tools on behalf of the call whose message is m. It
// returns a channel that is closed when the answer was learnt, or none came within
// [ListTimeout]; nil if there is nothing to wait for, as the server was asked before
// or may not be asked yet. A legacy server may be asked once the client has said that
// it is initialized; a modern one is asked with the client's own _meta.
func (c *Catalog) Ask(call *Call, m *wire.Message) (ready <-chan struct{}) {
	c.mu.Lock()
	l := c.ask
	if l != nil {
		defer c.mu.Unlock()
		if l.over() {
			return nil
		}
		return l.ready
	}
	l = &listing{ready: make(chan struct{}), call: call, until: time.Now().Add(ListTimeout)}
	if !c.initialized {
		l.meta = listMeta(m.Meta())
	}
	may := c.initialized || l.meta != nil
	if may {
		c.ask = l
	}
	c.mu.Unlock()
	if !may {
		return nil
	}
	c.askPage(l, nil)
	return l.ready
}

// listMeta copies what a modern request must carry, and nothing that belongs to one
// call alone, such as its progress token. It returns nil for a request that is not
// of the modern era.
func listMeta(meta wire.Value) []byte {
	const version = "io.modelcontextprotocol/protocolVersion"
	if !meta.Get(version).Exists() {
		return nil
	}
	out := []byte{'{'}
	for _, key := range []string{version, "io.modelcontextprotocol/clientCapabilities", "io.modelcontextprotocol/clientInfo"} {
		if v := meta.Get(key); v.Exists() {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(wire.AppendQuote(out, key), ':'), v.Raw...)
		}
	}
	return append(out, '}')
}

// askPage asks for the page at a cursor, nil for the first.
func (c *Catalog) askPage(l *listing, at []byte) {
	var members [][]byte
	if l.meta != nil {
		members = append(members, append([]byte(`"_meta":`), l.meta...))
	}
	if at != nil {
		members = append(members, append([]byte(`"cursor":`), at...))
	}
	params := slices.Concat([]byte{'{'}, bytes.Join(members, []byte{','}), []byte{'}'})
	l.call.Ask(wire.Server, "tools/list", params, time.Until(l.until), func(reply *wire.Message) { c.takePage(l, at, reply) })
}

// takePage takes a page that attache asked for, and asks for the next. It runs on the
// goroutine that read the reply, one page after the other.
func (c *Catalog) takePage(l *listing, at []byte, reply *wire.Message) {
	c.mu.Lock()
	stale := l.stale
	l.stale = false
	c.mu.Unlock()
	l.pages++
	var next []byte
	if reply != nil && !stale {
		next = c.learn(at, reply, false)
	}
	c.mu.Lock()
	over := reply == nil || l.pages >= maxPages || next == nil && !stale && !l.stale
	if over {
		close(l.ready)
	}
	c.mu.Unlock()
	if !over {
		c.askPage(l, next)
	}
}
