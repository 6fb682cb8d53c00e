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

	mu          sync.Mutex
	state       State    // the params of initialize as sent to the server
	uris        []string // of state.Subscriptions, in the same order
	legacy      bool     // there was an initialize, which the modern era does not have
	answered    bool     // initialize has a result
	initialized bool     // notifications/initialized has passed
	lists       Pages
	meta        []byte // of the last request for a list in the modern era, in which the server demands it
}

// A State is the part of a Record that can be stored. Each field is JSON text.
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
	s = r.state
	s.Subscriptions = slices.Clone(s.Subscriptions)
	return s, r.answered
}

// Restore sets r to the state of a session.
func (r *Record) Restore(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.uris = s, nil
	r.state.Subscriptions = slices.Clone(s.Subscriptions)
	for _, params := range s.Subscriptions {
		r.uris = append(r.uris, string(wire.Value{Raw: []byte(params)}.Get("uri").Raw))
	}
	r.legacy, r.answered, r.initialized = true, true, true
	r.armed.Store(true)
}

// Armed reports whether the handshake is over. From then on a server that ends is started
// again (R1).
func (r *Record) Armed() bool { return r.armed.Load() }

const (
	// maxSubscriptions bounds the recorded subscriptions of a client.
	maxSubscriptions = 1000
	// maxSubscription is the length in bytes of the longest params of one.
	maxSubscription = 16 << 10
	// maxHandshake is the length in bytes of the longest params of initialize, and of the longest version and
	// capabilities in its result. A session with longer ones ends with its server.
	maxHandshake = 1 << 20
)

// Sent records a message on its way to the server. It returns a function to call with the
// reply, nil if the reply is not needed. If keeps is false, the function keeps no text of m, because
// there is no room for more texts of unanswered requests.
func (r *Record) Sent(m *wire.Message, keeps bool) func(reply *wire.Message) {
	switch method := m.Method(); method {
	case "initialize":
		// The next server must get what this one got, which the layers may have edited.
		if r.begin(m.Params()); len(m.Params().Raw) > maxHandshake {
			return nil
		}
		return r.result(func(reply *wire.Message) {
			version, capabilities := reply.Get("result", "protocolVersion").Raw, reply.Get("result", "capabilities").Raw
			if len(version)+len(capabilities) > maxHandshake {
				return
			}
			r.answered = true
			r.armed.Store(r.initialized)
			r.state.Version, r.state.Capabilities = string(version), string(capabilities)
		})
	case "notifications/initialized":
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.initialized = true; r.legacy {
			r.armed.Store(r.answered) // false if the client did not wait for the result
		}
	// The next server gets only what the last one accepted.
	case "logging/setLevel":
		if !keeps {
			return nil
		}
		params := string(m.Params().Raw)
		return r.result(func(*wire.Message) { r.state.Level = params })
	case "resources/subscribe", "resources/unsubscribe":
		if !keeps {
			return nil
		}
		uri, params := string(m.Get("params", "uri").Raw), string(m.Params().Raw)
		return r.result(func(*wire.Message) { r.subscribe(uri, params, method == "resources/subscribe") })
	// A client that only probes the server must see that it has ended, so these end no handshake.
	case "server/discover", "ping":
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		if !keeps {
			return r.result(func(*wire.Message) { r.arm() })
		}
		cursor, meta := bytes.Clone(m.Get("params", "cursor").Raw), bytes.Clone(m.Meta().Raw)
		return r.result(func(reply *wire.Message) {
			if r.arm(); !r.legacy {
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
	r.state, r.uris = State{}, nil
	if len(params.Raw) <= maxHandshake {
		r.state.Initialize = string(params.Raw)
	}
	r.legacy, r.answered, r.initialized = true, false, false
}

// arm ends the handshake at the first result after it (R1). The modern era has no handshake. A legacy
// client may send no notifications/initialized, as those of mcp-golang: then the first result after
// that of initialize counts. The caller holds r.mu.
func (r *Record) arm() {
	if !r.legacy || r.answered {
		r.armed.Store(true)
	}
}

func (r *Record) subscribe(uri, params string, on bool) {
	all := &r.state.Subscriptions
	if i := slices.Index(r.uris, uri); i >= 0 {
		r.uris, *all = slices.Delete(r.uris, i, i+1), slices.Delete(*all, i, i+1)
	}
	if on && len(r.uris) < maxSubscriptions && len(params) <= maxSubscription {
		r.uris, *all = append(r.uris, uri), append(*all, params)
	}
}

// Initialize returns the params of initialize. It reports false in the modern era, which has
// no initialize.
func (r *Record) Initialize() (params []byte, legacy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return []byte(r.state.Initialize), r.legacy
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
	if r.state.Level != "" {
		all = append(all, Request{"logging/setLevel", []byte(r.state.Level)})
	}
	for _, params := range r.state.Subscriptions {
		all = append(all, Request{"resources/subscribe", []byte(params)})
	}
	return all
}

// Same returns errOther if the reply to initialize shows that the server differs from the one
// that the client knows (R12): it has another protocol version, or lacks a capability. It
// returns errNotReady if initialize did not reach a remote server.
func (r *Record) Same(reply *wire.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Package remote answers a request itself that it could not send.
	if reply.ErrorObject().Get("data", "source").Text() == "attache" {
		return fmt.Errorf("%w: %s", errNotReady, reply.ErrorObject().Get("message").Text())
	}
	if !reply.Result().Exists() {
		return fmt.Errorf("%w: it refuses initialize: %s", errOther, reply.ErrorObject().Get("message").Text())
	}
	if v := reply.Get("result", "protocolVersion").Raw; string(v) != r.state.Version {
		return fmt.Errorf("%w: it speaks protocol version %s, and the one before spoke %s", errOther, v, r.state.Version)
	}
	if name := missing(wire.Value{Raw: []byte(r.state.Capabilities)}, reply.Get("result", "capabilities")); name != "" {
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
		// A capability may change in other ways, as those in experimental do.
		if !v.Exists() || string(m.Value.Raw) == "true" && string(v.Raw) != "true" {
			return name
		}
		if inner := missing(m.Value, v); inner != "" { // "" for a value that is no object
			return name + "." + inner
		}
	}
	return ""
}
