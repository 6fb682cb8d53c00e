package remote

import (
	"net/http"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

// maxSessionID is how long the id of a session may be, in bytes. Some servers put a token
// of several KiB into it.
const maxSessionID = 16 << 10

// A session is what the server and the client have agreed on in a legacy revision. The zero
// value is that before initialize.
type session struct {
	mu sync.Mutex

	id         string // empty: none, or the server has given none
	version    string // negotiated; empty before
	generation int    // how often the client has opened a session
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
	values := []string{t.id, t.version} // of both, as each request has them
	if t.id != "" {
		h["Mcp-Session-Id"] = values[:1:1]
	}
	// The header came with 2025-06-18; servers before it know none.
	if t.version >= "2025-06-18" {
		h["Mcp-Protocol-Version"] = values[1:]
	}
}

// begin notes the client's initialize, which opens a new session, and returns the one
// before, if there is any.
func (s *session) begin() (before ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = ticket{s.id, s.version, s.generation}
	s.id, s.version = "", ""
	s.generation++
	return before
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
	if s.id == "" && generation > 0 && s.generation == generation {
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

// agree notes the result of the initialize that was sent in a generation.
func (s *session) agree(result wire.Value, generation int) {
	version := result.Get("protocolVersion").Text()
	if !visible(version) {
		version = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation == generation { // the client has not begun another session meanwhile
		s.version = version
	}
}
