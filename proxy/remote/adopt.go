package remote

import (
	"github.com/attache-mcp/attache/proxy/remote/internal/agreement"
	"github.com/attache-mcp/attache/proxy/wire"
)

// State returns what another process goes on with this session by, as JSON: see Options.Adopt.
// It is "" before the server has agreed to the session, and if the server has given it no id.
func (s *Server) State() string {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	if s.session.id == "" || s.session.result == nil || s.isLost() {
		return ""
	}
	return agreement.State(s.session.id, s.session.result)
}

// Keep has the end leave the session to another process.
func (s *Server) Keep() { s.keep.Store(true) }

// adopt takes the client's initialize for a session that another process had: the server has
// answered it there. It reports false if the session begins anew.
func (s *Server) adopt(m *wire.Message) bool {
	id, result, ok := agreement.Read(s.o.Adopt)
	if s.o.Adopt = ""; !ok || m.ID() == nil {
		return false
	}
	generation := s.session.begin().generation + 1
	s.session.mu.Lock()
	s.session.id = id
	s.session.mu.Unlock()
	s.session.agree(result, generation)
	s.reached.Store(true)
	s.adopted = true
	s.out.write(wire.ResultReply(m.ID(), result.Raw).Line())
	return true
}
