package remote

import (
	"net/http"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

// maxSessionID is how many bytes a session id may have. Some servers put a token of several KiB into
// it.
const maxSessionID = 16 << 10

// A session is what client and server have negotiated in a legacy revision. The zero value is the
// state before initialize.
type session struct {
	mu  sync.Mutex
	now ticket
}

// A ticket is the state of the session for one request.
type ticket struct {
	id         string // "" if the server has not set one, as servers without sessions do
	version    string // "" before it is negotiated
	generation int    // how often the client has sent initialize; 0 in 2026-07-28, which has no sessions
}

func (s *session) ticket() ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// headers sets the headers of a legacy request.
func (t ticket) headers(h http.Header) {
	values := []string{t.id, t.version} // one allocation for both, on the path of every request
	if t.id != "" {
		h["Mcp-Session-Id"] = values[:1:1]
	}
	// Revision 2025-06-18 has introduced the header. Versions are dates, so they compare as texts.
	if t.version >= "2025-06-18" {
		h["Mcp-Protocol-Version"] = values[1:]
	}
}

// begin begins a new session, because the client has sent initialize, and returns the one before it.
func (s *session) begin() (before ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The new ticket has no id: initialize is sent without one, and adopt takes the id that its answer brings.
	before = s.now
	s.now = ticket{generation: before.generation + 1}
	return before
}

// adopt takes the session id from an answer of the server. It keeps an id that is already set, and ignores
// the answer to a request of an earlier session.
func (s *session) adopt(h http.Header, generation int) {
	id := h.Get("Mcp-Session-Id")
	if id == "" || len(id) > maxSessionID || !visible(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.id == "" && generation > 0 && s.now.generation == generation {
		s.now.id = id
	}
}

// visible reports whether s consists of visible ASCII characters, as a session id must.
func visible(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < 0x21 || c > 0x7E })
}

// agree sets the negotiated version from the result of the initialize of that generation. A version that
// no header can hold, or that is too long, counts as none.
func (s *session) agree(result wire.Value, generation int) {
	version := result.Get("protocolVersion").Text()
	if !visible(version) || len(version) > maxMirroredText {
		version = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.generation == generation { // else the client has opened another session
		s.now.version = version
	}
}
