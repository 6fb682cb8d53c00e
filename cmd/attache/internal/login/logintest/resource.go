package logintest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// protect passes requests with a valid token to Protected.
func (s *Server) protect(w http.ResponseWriter, r *http.Request) {
	token, sent := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	need := ""
	if s.Needs != nil {
		need = s.Needs(r)
	}
	s.mu.Lock()
	f := s.tokens[token]
	valid := f != nil && f.access == token && !f.revoked && (s.Lifetime == 0 || time.Now().Before(f.expires))
	enough := valid && (need == "" || slices.Contains(strings.Fields(f.scope), need)) && !s.Refuses
	if enough {
		s.events["served"]++
	}
	s.mu.Unlock()
	challenge := "Bearer "
	if !s.NoHeader && s.PRM != "none" {
		const prm = "/.well-known/oauth-protected-resource"
		path := cmp.Or(map[string]string{"root": prm, "named": "/named"}[s.PRM], prm+"/mcp")
		challenge += fmt.Sprintf("resource_metadata=%q, ", s.URL+path)
	}
	switch {
	case enough:
		s.Protected.ServeHTTP(w, r)
	case valid:
		w.Header().Set("WWW-Authenticate", challenge+fmt.Sprintf(`error="insufficient_scope", scope=%q`, need))
		http.Error(w, "too little", http.StatusForbidden)
	default:
		if sent {
			challenge += `error="invalid_token", `
		}
		w.Header().Set("WWW-Authenticate", strings.TrimSuffix(challenge, ", "))
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}
}

func (s *Server) resourceMetadata(w http.ResponseWriter) {
	resource := cmp.Or(map[string]string{"": s.MCP(), "named": s.MCP(), "root": s.URL}[s.PRM], s.PRM)
	reply(w, 200, map[string]any{"resource": resource, "authorization_servers": []string{s.Issuer()}, "scopes_supported": s.Scopes})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
