package middleware

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"github.com/attache-mcp/attache/internal/kept"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Tool is one entry of tools/list, as the server sent it. It never changes: when a
// changed entry is listed, the catalogue creates a new Tool.
type Tool struct {
	Name string
	// InputSchema, OutputSchema, Annotations and Meta are raw JSON, nil if the entry has
	// no such member. Annotations are also nil if they are larger than 4 KiB or not an
	// object.
	InputSchema, OutputSchema, Annotations, Meta []byte
	// Passed reports whether the entry was in a list that the client asked for, so that
	// the client has seen the entry as the layers edited it. It is false if only attache
	// asked for the list.
	Passed bool

	list int // the number of the last list that contained it
}

// A Catalog holds the tools that tools/list returned on one connection: those of the last
// complete list and of the pages since. It reads the lists that the client asks for, and asks the
// server itself if a layer needs a list earlier. When the server announces that its tools have
// changed, the catalogue becomes empty.
//
// A Catalog is the innermost layer, so it reads a list before other layers edit it. It edits
// nothing. It is kept when rules are reloaded. The zero value is ready to use.
type Catalog struct {
	mu      sync.Mutex
	tools   map[string]*Tool
	size    int    // bytes in tools
	whole   bool   // tools contains every tool of the server
	list    int    // the number of the current list
	next    []byte // the cursor of the next page of the list; nil if there is none
	cut     bool   // a tool of the list did not fit
	ask     *listing
	retried bool          // the server ended while attache asked, so attache asks once more
	pause   time.Duration // after the last request that got no reply in time
	again   time.Time     // the end of pause

	// initialized means that a legacy server answers requests: the client has sent
	// notifications/initialized, or got a list without it, as the clients of mcp-golang do.
	initialized atomic.Bool
	answered    atomic.Bool // the server has answered initialize, server/discover or tools/list
}

// Bounds of a catalogue. Tools beyond them are dropped.
const (
	maxTools       = 10_000
	maxToolBytes   = 4 << 20
	maxAnnotations = 4 << 10
	maxPages       = 100 // of a list that attache asks for
)

// ListTimeout bounds the time for which attache itself asks the server for its tools.
// StartTimeout applies instead if the server has not answered anything yet: a call may be the first
// message, or come without a wait for the handshake, and servers under npx take seconds to start.
const (
	ListTimeout  = 2 * time.Second
	StartTimeout = time.Minute
)

// A request that got no reply in time is repeated by a call after latePause, then after twice that time,
// and so on, up to maxPause.
const (
	latePause = 5 * time.Second
	maxPause  = 5 * time.Minute
)

// Tool returns the tool with that name, or nil. known reports whether the answer is certain:
// the catalogue holds the tool, or a complete list without it.
func (c *Catalog) Tool(name string) (t *Tool, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t = c.tools[name]
	return t, t != nil || c.whole
}

// Any reports whether the catalogue holds a tool for whose name is returns true. is must not use the
// catalogue.
func (c *Catalog) Any(is func(name string) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.tools {
		if is(name) {
			return true
		}
	}
	return false
}

// Layer returns the catalogue as a layer, which must be the innermost.
func (c *Catalog) Layer() Layer { return Layer{Name: "catalog", Wrap: c.wrap} }

func (c *Catalog) wrap(next Handler) Handler {
	return func(ctx context.Context, m *wire.Message) error {
		switch {
		case m.From == wire.Server:
			if m.MethodIs("notifications/tools/list_changed") {
				c.Forget()
			}
		case m.MethodIs("tools/list"):
			at, modern := pageKey(cursor(m.Get("params", "cursor"))), m.Meta().Get(versionKey).Exists()
			CallFrom(ctx).OnReply(func(_ context.Context, reply *wire.Message) error {
				c.answered.Store(true)
				if !modern && reply.Result().Exists() {
					c.initialized.Store(true)
				}
				c.learn(at, reply, true)
				return nil
			})
		case m.MethodIs("server/discover"), m.MethodIs("initialize"):
			CallFrom(ctx).OnReply(func(context.Context, *wire.Message) error {
				c.answered.Store(true)
				return nil
			})
		case m.MethodIs("notifications/initialized"):
			c.initialized.Store(true)
		}
		return next(ctx, m)
	}
}

// cursor returns the raw cursor v, or nil if it is absent, null or empty.
func cursor(v wire.Value) []byte {
	if !v.IsString() || v.Equals("") {
		return nil
	}
	return bytes.Clone(v.Raw)
}

// pageKey returns a cursor in the form in which it is kept until the reply: the client may send many long ones,
// and the server may answer none. The pageKey of a pageKey is the same.
func pageKey(cursor []byte) []byte {
	if len(cursor) <= kept.Max {
		return cursor
	}
	return []byte(kept.Text(string(cursor)))
}

// learn adds the tools of a page of tools/list and returns the cursor of the next page. at is
// the cursor of this page or its pageKey, nil for the first. A list is complete if its pages arrived in order
// from the first to the last; a page out of order only adds its tools.
func (c *Catalog) learn(at []byte, reply *wire.Message, passed bool) (next []byte) {
	list := reply.Get("result", "tools")
	if !list.IsArray() || !reply.Plain() {
		return nil
	}
	next = cursor(reply.Get("result", "nextCursor"))
	c.mu.Lock()
	defer c.mu.Unlock()
	inOrder := at == nil || bytes.Equal(pageKey(at), pageKey(c.next))
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
		// The list is complete, so the server no longer has the tools that only earlier lists contained.
		for name, t := range c.tools {
			if t.list != c.list {
				c.size -= t.size()
				delete(c.tools, name)
			}
		}
	}
	return next
}

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
	same := old != nil && old.equals(raw)
	if same && (old.Passed || !passed) {
		old.list = c.list
		return
	}
	// Layers may hold the old Tool, so it stays as it is, even if only Passed differs.
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

// equals reports whether t has these members.
func (t *Tool) equals(raw [4]string) bool {
	return string(t.InputSchema) == raw[0] && string(t.OutputSchema) == raw[1] &&
		string(t.Annotations) == raw[2] && string(t.Meta) == raw[3]
}

func (t *Tool) size() int {
	return len(t.Name) + len(t.InputSchema) + len(t.OutputSchema) + len(t.Annotations) + len(t.Meta)
}

// Forget empties the catalogue. If attache is asking the server for its tools, it starts
// again with the first page, because servers announce changes while they start.
func (c *Catalog) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools, c.size, c.whole, c.next = nil, 0, false, nil
	switch {
	case c.ask == nil:
	case c.ask.done:
		c.ask = nil
	default:
		c.ask.stale = true
	}
}

// A listing is the state of attache's own requests for the pages of tools/list.
type listing struct {
	ready chan struct{} // closed when done is set
	call  *Call
	meta  []byte // the _meta of its requests, nil for none
	until time.Time
	pages int

	// Guarded by Catalog.mu:
	done  bool // all pages have arrived, or no more are asked for
	stale bool // the tools have changed since the first request
	late  bool // no reply arrived in time
}

// Ask asks the server for its tools on behalf of the call whose message is m. It returns a
// channel that is closed when the tools are known, or [ListTimeout] or [StartTimeout] has
// passed. It returns nil if there is nothing to wait for, because the server was asked before
// or may not be asked yet: a legacy server may be asked after notifications/initialized or a list,
// a modern one at any time with a copy of the client's _meta. If the server ended before it answered,
// the next call asks again, but only once: the request itself may end the server.
func (c *Catalog) Ask(call *Call, m *wire.Message) (ready <-chan struct{}) {
	c.mu.Lock()
	l := c.ask
	switch {
	case l == nil || l.late && time.Now().After(c.again):
	case l.done:
		c.mu.Unlock()
		return nil
	default:
		c.mu.Unlock()
		return l.ready
	}
	limit := ListTimeout
	if !c.answered.Load() {
		limit = StartTimeout
	}
	l = &listing{ready: make(chan struct{}), call: call, until: time.Now().Add(limit)}
	if !c.initialized.Load() {
		if l.meta = listMeta(m.Meta()); l.meta == nil {
			c.mu.Unlock()
			return nil
		}
	}
	c.ask = l
	c.mu.Unlock()
	c.askPage(l, nil)
	return l.ready
}

// AskUnknown is like Ask, but returns nil if the catalogue knows the tool with that name. It is for
// rules that read annotations.
func (c *Catalog) AskUnknown(name string, call *Call, m *wire.Message) (ready <-chan struct{}) {
	if _, known := c.Tool(name); known {
		return nil
	}
	return c.Ask(call, m)
}

// AskTime is how long a call waits for the channel of Ask at most. It is longer than the timeout of the
// request, so that the request has ended when the call continues.
const AskTime = StartTimeout + ListTimeout/4

const versionKey = "io.modelcontextprotocol/protocolVersion"

// listMeta copies the members of _meta that a modern request must have, without those of
// one call, such as its progress token. It returns nil for a request that is not of the
// modern era.
func listMeta(meta wire.Value) []byte {
	if !meta.Get(versionKey).Exists() {
		return nil
	}
	out := []byte{'{'}
	for _, key := range []string{versionKey, "io.modelcontextprotocol/clientCapabilities", "io.modelcontextprotocol/clientInfo"} {
		if v := meta.Get(key); v.Exists() {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(wire.AppendQuote(out, key), ':'), v.Raw...)
		}
	}
	return append(out, '}')
}

// askPage asks for the page with cursor at, nil for the first.
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

// takePage learns from a page that attache asked for, and asks for the next. It runs on the
// goroutine that read the reply, one page after the other.
func (c *Catalog) takePage(l *listing, at []byte, reply *wire.Message) {
	c.mu.Lock()
	stale := l.stale
	l.stale = false
	c.mu.Unlock()
	l.pages++
	var next []byte
	if reply != nil {
		c.answered.Store(true)
	}
	if reply != nil && !stale {
		next = c.learn(at, reply, false)
	}
	c.mu.Lock()
	// After a change of the tools, also one while the page was read, the list begins again.
	l.done = reply == nil || l.pages >= maxPages || next == nil && !stale && !l.stale
	if l.done {
		close(l.ready)
		l.late = reply == nil && !time.Now().Before(l.until)
		switch {
		case reply != nil:
			c.retried, c.pause = false, 0
		case l.late:
			c.pause = min(max(2*c.pause, latePause), maxPause)
			c.again = time.Now().Add(c.pause)
		case !c.retried: // the server has ended, so the next call asks again
			c.ask, c.retried = nil, true
		}
	}
	c.mu.Unlock()
	if !l.done {
		c.askPage(l, next)
	}
}
