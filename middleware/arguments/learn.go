package arguments

import (
	"maps"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// maxPages bounds the listing that attache asks for itself.
const maxPages = 100

// A listing is attache's own walk through the pages of tools/list.
type listing struct {
	ready chan struct{} // closed when the walk is over, however it ended
	tools map[string]*tool
	pages int
	until time.Time
	stale bool // the tools changed meanwhile: begin again. Guarded by Arguments.mu
}

// tool returns what is known of a tool. known is false while no whole list has
// been seen; a tool that a whole list does not have is known to be nothing.
func (a *Arguments) tool(name string) (t *tool, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t, ok := a.tools[name]; ok {
		return t, true
	}
	if t, ok := a.partial[name]; ok {
		return t, true
	}
	return nil, a.tools != nil
}

// learn takes a page of the client's own listing. A whole list is one whose
// pages came in sequence from the first; any other page only adds its tools to
// what is known.
func (a *Arguments) learn(page map[string]*tool, first, last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if first {
		a.partial = map[string]*tool{}
	}
	if a.partial == nil {
		if a.tools != nil {
			maps.Copy(a.tools, page)
		}
		return
	}
	maps.Copy(a.partial, page)
	if last {
		a.tools, a.partial = a.partial, nil
	}
}

// forget drops what is known: the upstream says that its tools changed. A
// listing under way begins again, as servers announce changes while they start.
func (a *Arguments) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tools, a.partial = nil, nil
	if a.ask == nil {
		return
	}
	select {
	case <-a.ask.ready:
		a.ask = nil
	default:
		a.ask.stale = true
	}
}

// askList asks the upstream for its tools, once. It returns a channel to wait
// for, nil if asking is not possible or has been tried. A legacy upstream may be
// asked once the client has said that it is initialized; a modern one is asked
// with the client's own _meta.
func (a *Arguments) askList(call *middleware.Call, m *wire.Message, view *sessionstate.Context) <-chan struct{} {
	modern := view != nil && view.Modern
	if !modern && !a.initialized && !a.o.Initialized() {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ask != nil {
		select {
		case <-a.ask.ready:
			return nil
		default:
			return a.ask.ready
		}
	}
	l := &listing{ready: make(chan struct{}), tools: map[string]*tool{}, until: time.Now().Add(askTime)}
	a.ask = l
	var meta []byte
	if modern {
		meta = listMeta(m.Meta())
	}
	a.askPage(call, l, meta, nil)
	return l.ready
}

// listMeta copies what a modern request must carry, and nothing that belongs to
// the call alone, such as its progress token.
func listMeta(meta wire.Value) []byte {
	out := []byte{'{'}
	for _, key := range []string{
		"io.modelcontextprotocol/protocolVersion",
		"io.modelcontextprotocol/clientCapabilities",
		"io.modelcontextprotocol/clientInfo",
	} {
		if v := meta.Get(key); v.Exists() {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(wire.AppendQuote(out, key), ':'), v.Raw...)
		}
	}
	return append(out, '}')
}

func (a *Arguments) askPage(call *middleware.Call, l *listing, meta, cursor []byte) {
	params := []byte{'{'}
	if meta != nil {
		params = append(append(params, `"_meta":`...), meta...)
	}
	if cursor != nil {
		if len(params) > 1 {
			params = append(params, ',')
		}
		params = append(append(params, `"cursor":`...), cursor...)
	}
	params = append(params, '}')
	call.Ask(wire.Server, "tools/list", params, time.Until(l.until), func(reply *wire.Message) {
		a.takePage(call, l, meta, reply)
	})
}

// takePage takes a page of attache's own listing and asks for the next. It runs
// on the goroutine that read the reply, one page after the other.
func (a *Arguments) takePage(call *middleware.Call, l *listing, meta []byte, reply *wire.Message) {
	if reply == nil || !reply.Get("result", "tools").IsArray() {
		a.o.Log.Warn("the server did not list its tools; arguments are not filled until it does")
		close(l.ready)
		return
	}
	for entry := range reply.Get("result", "tools").Elements() {
		name, t := a.read(entry)
		l.tools[name] = t
	}
	cursor := reply.Get("result", "nextCursor")
	a.mu.Lock()
	again := l.stale
	l.stale = false
	done := !again && (!cursor.IsString() || l.pages >= maxPages)
	if done && a.tools == nil {
		a.tools = l.tools
	}
	a.mu.Unlock()
	l.pages++
	switch {
	case done, l.pages > maxPages:
		close(l.ready)
	case again:
		l.tools = map[string]*tool{}
		a.askPage(call, l, meta, nil)
	default:
		a.askPage(call, l, meta, cursor.Raw)
	}
}
