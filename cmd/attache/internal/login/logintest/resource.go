package logintest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// knows reports whether the authorization server gives tokens for the resource in the parameters.
func (s *Server) knows(params url.Values) bool {
	resource := params.Get("resource")
	switch s.Resource {
	case "":
		return resource != "" && strings.HasPrefix(s.MCP(), resource)
	case "-":
		return !params.Has("resource")
	}
	return resource == s.Resource
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
