package remote

import (
	"net/http"
	"sync"

	"github.com/attache-mcp/attache/proxy/remote/internal/agreement"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A session is what the server and the client have agreed on in a legacy revision. The zero
// value is that before initialize.
type session struct {
	mu sync.Mutex

	id         string // empty: none, or the server has given none
	version    string // negotiated; empty before
	generation int    // how often the client has opened a session
	result     []byte // what the server has agreed to; nil before, and without an id
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
	s.id, s.version, s.result = "", "", nil
	s.generation++
	return before
}

// adopt takes the id that an answer of the server gives the session. The first one
// counts.
func (s *session) adopt(h http.Header, generation int) {
	id := h.Get("Mcp-Session-Id")
	if id == "" || len(id) > agreement.MaxID || !agreement.Visible(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == "" && generation > 0 && s.generation == generation {
		s.id = id
	}
}

// agree notes the result of the initialize that was sent in a generation.
func (s *session) agree(result wire.Value, generation int) {
	version := result.Get("protocolVersion").Text()
	if !agreement.Visible(version) {
		version = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation == generation { // the client has not begun another session meanwhile
		if s.version = version; s.id != "" {
			s.result = agreement.Of(result)
		}
	}
}
