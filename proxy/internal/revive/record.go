package revive

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

// errNotReady is returned for a server that ended, or did not answer, before it was ready.
var errNotReady = errors.New("it ended, or did not answer, before it was ready")

// errOther is returned for a server that differs from the one that the client knows.
var errOther = errors.New("another server")

// A Record has what a new server must know before it gets the client's frames, and what the
// last server has declared. The zero value is ready to use. Its methods may be called from
// any goroutine.
type Record struct {
	armed atomic.Bool // read without the lock

	mu            sync.Mutex
	initialize    []byte // the params as sent to the server; nil in the modern era
	answered      bool   // initialize has a result
	initialized   bool   // notifications/initialized has passed
	version       []byte
	capabilities  []byte
	level         []byte // params of the last logging/setLevel
	subscriptions []subscription
	lists         Pages
	meta          []byte // of the last request for a list in the modern era
}

type subscription struct{ uri, params []byte }

// A State is a Record in a form that can be stored. Each field is JSON text.
type State struct {
	Initialize    string   // the params of initialize
	Version       string   // the protocol version of the server
	Capabilities  string   // of the server
	Level         string   // params of the last logging/setLevel; "" for none
	Subscriptions []string // params of the active resources/subscribe requests
}

// State returns the state of a session of the legacy era. It reports false before the server
// has answered initialize.
func (r *Record) State() (s State, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.subscriptions {
		s.Subscriptions = append(s.Subscriptions, string(one.params))
	}
	s.Initialize, s.Version, s.Capabilities, s.Level = string(r.initialize), string(r.version), string(r.capabilities), string(r.level)
	return s, r.answered
}

// Restore sets r to the state of a session.
func (r *Record) Restore(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.initialize, r.version, r.capabilities = []byte(s.Initialize), []byte(s.Version), []byte(s.Capabilities)
	r.answered, r.initialized, r.level, r.subscriptions = true, true, nil, nil
	if s.Level != "" {
		r.level = []byte(s.Level)
	}
	for _, params := range s.Subscriptions {
		r.subscriptions = append(r.subscriptions, subscription{wire.Value{Raw: []byte(params)}.Get("uri").Raw, []byte(params)})
	}
	r.armed.Store(true)
}

// Armed reports whether the handshake is over. From then on a server that ends is started
// again (R1).
func (r *Record) Armed() bool { return r.armed.Load() }

// maxSubscriptions bounds the recorded subscriptions of a client.
const maxSubscriptions = 1000

// Sent records a message on its way to the server. It returns a function to call with the
// reply, nil if the reply is not needed.
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
			r.armed.Store(r.answered) // false if the client did not wait for the result
		}
	case "logging/setLevel":
		params := bytes.Clone(m.Params().Raw)
		return r.result(func(*wire.Message) { r.level = params })
	case "resources/subscribe", "resources/unsubscribe":
		s := subscription{bytes.Clone(m.Get("params", "uri").Raw), bytes.Clone(m.Params().Raw)}
		return r.result(func(*wire.Message) { r.subscribe(s, method == "resources/subscribe") })
	case "server/discover", "ping":
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

// result returns a function that calls record, with r.mu held, if the reply is a result.
func (r *Record) result(record func(reply *wire.Message)) func(*wire.Message) {
	return func(reply *wire.Message) {
		if reply.Result().Exists() {
			r.mu.Lock()
			defer r.mu.Unlock()
			record(reply)
		}
	}
}

// begin begins the handshake of the legacy era.
func (r *Record) begin(params wire.Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed.Store(false)
	r.initialize = append([]byte{}, params.Raw...)
	r.answered, r.initialized, r.version, r.capabilities, r.level, r.subscriptions = false, false, nil, nil, nil, nil
}

// arm ends the handshake at the first result after it (R1). The modern era has no handshake. A legacy
// client may send no notifications/initialized, as those of mcp-golang: then the first result after
// that of initialize counts. The caller holds r.mu.
func (r *Record) arm() {
	if r.initialize == nil || r.answered {
		r.armed.Store(true)
	}
}

func (r *Record) subscribe(s subscription, on bool) {
	r.subscriptions = slices.DeleteFunc(r.subscriptions, func(old subscription) bool { return bytes.Equal(old.uri, s.uri) })
	if on && len(r.subscriptions) < maxSubscriptions {
		r.subscriptions = append(r.subscriptions, s)
	}
}

// Initialize returns the params of initialize. It reports false in the modern era, which has
// no initialize.
func (r *Record) Initialize() (params []byte, legacy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.initialize, r.initialize != nil
}

// A Request is a request for a new server.
type Request struct {
	Method string
	Params []byte
}

// Requests returns the requests that a new server gets after notifications/initialized (R5).
func (r *Record) Requests() (all []Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.level != nil {
		all = append(all, Request{"logging/setLevel", r.level})
	}
	for _, s := range r.subscriptions {
		all = append(all, Request{"resources/subscribe", s.params})
	}
	return all
}

// Same returns errOther if the reply to initialize shows that the server differs from the one
// that the client knows (R12): it has another protocol version, or lacks a capability. It
// returns errNotReady if initialize did not reach a remote server.
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

// missing returns the name of a member of before that after lacks, or that is true only in
// before. It returns "" if there is none.
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
