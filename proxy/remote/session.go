package remote

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	// maxSessionID is how long the id of a session may be, in bytes. Some servers put
	// a token of several KiB into it.
	maxSessionID = 16 << 10
	// maxSubscriptions is how many subscriptions are kept for a session that is lost.
	maxSubscriptions = 1000
	// maxReplayed is how long a message may be that is kept for a session that is
	// lost, in bytes.
	maxReplayed = 64 << 10
)

// A session is what the server and the client have agreed on in a legacy revision: its
// id, and what it takes to begin it again. The zero value is that before initialize.
type session struct {
	mu sync.Mutex

	id         string // empty: none, or the server has given none
	version    string // negotiated; empty before
	generation int    // how often a session has begun

	// Messages of the client, as they left. A session that the server has lost begins
	// again with them.
	initialize, initialized, level []byte
	subscriptions                  map[string][]byte // by URI

	capabilities any      // what the server said it can, decoded
	renewal      *renewal // not nil while a lost session begins again
}

// A ticket is the session as one request goes by it.
type ticket struct {
	id, version string
	generation  int
}

func (s *session) ticket() ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ticket{s.id, s.version, s.generation}
}

// headers sets the headers of a legacy request.
func (t ticket) headers(h http.Header) {
	if t.id != "" {
		h["Mcp-Session-Id"] = []string{t.id}
	}
	// The header came with 2025-06-18; servers before it know none.
	if t.version >= "2025-06-18" {
		h["Mcp-Protocol-Version"] = []string{t.version}
	}
}

// begin notes the client's initialize, which opens a new session, and returns the id of
// the one before, if there is any.
func (s *session) begin(line []byte) (before ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = ticket{s.id, s.version, s.generation}
	s.id, s.version, s.capabilities = "", "", nil
	s.initialize, s.initialized, s.level, s.subscriptions = line, nil, nil, nil
	s.generation++
	return before
}

// keep keeps a message that a session which begins again needs.
func (s *session) keep(m *wire.Message, line []byte) {
	switch m.Method() {
	case "notifications/initialized", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
	default:
		return
	}
	if len(line) > maxReplayed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Method() {
	case "notifications/initialized":
		s.initialized = line
	case "logging/setLevel":
		s.level = line
	case "resources/subscribe":
		if s.subscriptions == nil {
			s.subscriptions = map[string][]byte{}
		}
		if uri := m.Get("params", "uri").Text(); len(s.subscriptions) < maxSubscriptions {
			s.subscriptions[uri] = line
		}
	case "resources/unsubscribe":
		delete(s.subscriptions, m.Get("params", "uri").Text())
	}
}

// adopt takes the id that an answer of the server gives the session. The first one
// counts.
func (s *session) adopt(h http.Header, generation int) {
	id := h.Get("Mcp-Session-Id")
	if id == "" || len(id) > maxSessionID || !visible(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == "" && s.initialize != nil && s.generation == generation {
		s.id = id
	}
}

// visible reports whether s has visible ASCII alone, as the id of a session must.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7E {
			return false
		}
	}
	return true
}

// agree notes the result of the initialize that was sent in a generation. It reports false
// if the session that begins again is another than the client knows.
func (s *session) agree(result wire.Value, generation int) bool {
	version := result.Get("protocolVersion").Text()
	if !visible(version) {
		version = ""
	}
	var capabilities any
	_ = json.Unmarshal(result.Get("capabilities").Raw, &capabilities)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.generation != generation:
		return true // the client has begun another session meanwhile
	case s.version != "":
		return s.version == version && reflect.DeepEqual(s.capabilities, capabilities)
	}
	s.version, s.capabilities = version, capabilities
	return true
}

// replay returns the messages that a session which begins again needs, after
// initialize and in order.
func (s *session) replay() (lines [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range [][]byte{s.initialized, s.level} {
		if line != nil {
			lines = append(lines, bytes.Clone(line))
		}
	}
	for _, line := range s.subscriptions {
		lines = append(lines, bytes.Clone(line))
	}
	return lines
}

// announces returns the notifications of changed lists that the server can send.
func (s *session) announces() (methods []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, _ := s.capabilities.(map[string]any)
	for _, list := range []string{"tools", "prompts", "resources"} {
		if one, _ := all[list].(map[string]any); one["listChanged"] == true {
			methods = append(methods, "notifications/"+list+"/list_changed")
		}
	}
	return methods
}
