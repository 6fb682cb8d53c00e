package remote

import (
	"bytes"

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
	return `{"id":` + string(wire.Quote(s.session.id)) + `,"result":` + string(s.session.result) + `}`
}

// Keep has the end leave the session to another process.
func (s *Server) Keep() { s.keep.Store(true) }

// adopt takes the client's initialize for a session that another process had: the server has
// answered it there. It reports false if the session begins anew.
func (s *Server) adopt(m *wire.Message) bool {
	state := wire.Value{Raw: []byte(s.o.Adopt)}
	id, result := state.Get("id").Text(), state.Get("result")
	if s.o.Adopt = ""; id == "" || !visible(id) || !result.IsObject() || m.ID() == nil {
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

// agreement returns what a session goes on with of the result of initialize, nil if that is
// too long.
func agreement(result wire.Value) []byte {
	var b []byte
	for _, name := range []string{"protocolVersion", "capabilities", "serverInfo"} {
		if v := result.Get(name); v.Exists() {
			b = append(append(append(append(b, ','), wire.Quote(name)...), ':'), v.Raw...)
		}
	}
	if len(b) == 0 || len(b) > maxSessionID {
		return nil
	}
	b[0] = '{'
	return append(bytes.Clone(b), '}')
}
