package revive

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Record has what a new server has to be told before the client's frames reach it, and
// what the old one said of itself. The zero value is ready; its methods may be called
// from any goroutine.
type Record struct {
	armed atomic.Bool // read without the lock

	mu           sync.Mutex
	initialize   []byte // the params, as they were sent to the server; nil in the modern era
	answered     bool   // initialize has a result
	initialized  bool   // notifications/initialized has passed
	version      []byte
	capabilities []byte
	level        []byte // params of the last logging/setLevel
	subscribed   []subscription
	lists        Pages
	meta         []byte // of a list that the client asked for in the modern era
}

type subscription struct{ uri, params []byte }

// A State is a Record in a form that can be kept: see sessions.Session.
type State struct {
	Initialize, Version, Capabilities, Level string
	Subscriptions                            []string
}

// State returns what is recorded of a session with a handshake, and false before the server
// has agreed to one.
func (r *Record) State() (s State, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.subscribed {
		s.Subscriptions = append(s.Subscriptions, string(one.params))
	}
	s.Initialize, s.Version, s.Capabilities, s.Level = string(r.initialize), string(r.version), string(r.capabilities), string(r.level)
	return s, r.answered
}

// Restore makes r the record of a session whose State is s.
func (r *Record) Restore(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.initialize, r.version, r.capabilities = []byte(s.Initialize), []byte(s.Version), []byte(s.Capabilities)
	r.answered, r.initialized, r.level, r.subscribed = true, true, nil, nil
	if s.Level != "" {
		r.level = []byte(s.Level)
	}
	for _, params := range s.Subscriptions {
		r.subscribed = append(r.subscribed, subscription{wire.Value{Raw: []byte(params)}.Get("uri").Raw, []byte(params)})
	}
	r.armed.Store(true)
}

// Armed reports whether the handshake is over, so that a server that ends is started
// again (R1).
func (r *Record) Armed() bool { return r.armed.Load() }

// maxSubscriptions bounds what is remembered of a client that subscribes without end.
const maxSubscriptions = 1000

// Sent takes a message on its way to the server. It returns what is to be told of the
// reply, nil for nothing.
func (r *Record) Sent(m *wire.Message) func(reply *wire.Message) {
	switch method := m.Method(); method {
	case "initialize":
		r.begin(m.Params())
		return r.result(func(reply *wire.Message) {
			r.answered = true
			r.armed.Store(r.initialized)
			r.version = bytes.Clone(reply.Get("result", "protocolVersion").Raw)
			r.capabilities = bytes.Clone(reply.Get("result", "capabilities").Raw)
		})
	case "notifications/initialized":
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.initialized = true; r.initialize != nil {
			r.armed.Store(r.answered) // a client that does not wait has no result yet
		}
	case "logging/setLevel":
		params := bytes.Clone(m.Params().Raw)
		return r.result(func(*wire.Message) { r.level = params })
	case "resources/subscribe", "resources/unsubscribe":
		s := subscription{bytes.Clone(m.Get("params", "uri").Raw), bytes.Clone(m.Params().Raw)}
		return r.result(func(*wire.Message) { r.subscribe(s, method == "resources/subscribe") })
	case "server/discover":
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		cursor, meta := bytes.Clone(m.Get("params", "cursor").Raw), bytes.Clone(m.Meta().Raw)
		return r.result(func(reply *wire.Message) {
			if r.arm(); r.initialize == nil {
				r.meta = meta
			}
			r.lists.Page(method, cursor, reply)
		})
	default:
		if m.Kind() == wire.Request && !r.Armed() {
			return r.result(func(*wire.Message) { r.arm() })
		}
	}
	return nil
}

// result returns what takes a reply that is a result. The function runs under r.mu.
func (r *Record) result(take func(reply *wire.Message)) func(*wire.Message) {
	return func(reply *wire.Message) {
		if reply.Result().Exists() {
			r.mu.Lock()
			defer r.mu.Unlock()
			take(reply)
		}
	}
}

// begin begins the handshake of the legacy era.
func (r *Record) begin(params wire.Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed.Store(false)
	r.initialize = append([]byte{}, params.Raw...)
	r.answered, r.initialized, r.version, r.capabilities, r.level, r.subscribed = false, false, nil, nil, nil, nil
}

// arm ends the handshake of the modern era, which is the first result (R1).
func (r *Record) arm() {
	if r.initialize == nil {
		r.armed.Store(true)
	}
}

func (r *Record) subscribe(s subscription, on bool) {
	r.subscribed = slices.DeleteFunc(r.subscribed, func(old subscription) bool { return bytes.Equal(old.uri, s.uri) })
	if on && len(r.subscribed) < maxSubscriptions {
		r.subscribed = append(r.subscribed, s)
	}
}

// Initialize returns the params of initialize, and false in the modern era, which has
// none.
func (r *Record) Initialize() (params []byte, legacy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.initialize, r.initialize != nil
}

// A Request is one that a new server gets.
type Request struct {
	Method string
	Params []byte
}

// Requests returns what a new server gets behind notifications/initialized (R5).
func (r *Record) Requests() (all []Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.level != nil {
		all = append(all, Request{"logging/setLevel", r.level})
	}
	for _, s := range r.subscribed {
		all = append(all, Request{"resources/subscribe", s.params})
	}
	return all
}

// Same returns errOther if the server that answers initialize so is another one than the
// client knows (R12): the protocol version differs, or something is missing among what it
// can do. A remote server that initialize did not reach is not ready.
func (r *Record) Same(reply *wire.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reply.ErrorObject().Get("data", "source").Text() == "attache" {
		return fmt.Errorf("%w: %s", errNotReady, reply.ErrorObject().Get("message").Text())
	}
	if !reply.Result().Exists() {
		return fmt.Errorf("%w: it refuses initialize: %s", errOther, reply.ErrorObject().Get("message").Text())
	}
	if v := reply.Get("result", "protocolVersion").Raw; !bytes.Equal(v, r.version) {
		return fmt.Errorf("%w: it speaks protocol version %s, and the one before spoke %s", errOther, v, r.version)
	}
	if name := missing(wire.Value{Raw: r.capabilities}, reply.Get("result", "capabilities")); name != "" {
		return fmt.Errorf("%w: it lacks the capability %s that the one before had", errOther, name)
	}
	return nil
}

// missing returns the name of a member of before that after lacks, or that is true there
// and not here.
func missing(before, after wire.Value) string {
	for m := range before.Members() {
		name := m.Key.Text()
		v := after.Get(name)
		switch {
		case !v.Exists(), string(m.Value.Raw) == "true" && string(v.Raw) != "true":
			return name
		}
		if inner := missing(m.Value, v); m.Value.IsObject() && inner != "" {
			return name + "." + inner
		}
	}
	return ""
}
